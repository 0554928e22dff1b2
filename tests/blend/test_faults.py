"""All that is wrong with a config is told at once, and the rest of it is read."""

from __future__ import annotations

import pytest

from playhead.blend.several import read_blends
from playhead.errors import ConfigError

GOOD = {"type": "nemo", "manifest_filepath": "a.json", "weight": 3}


def faults_of(config):
    faults = []
    blends = read_blends(config, faults=faults)
    with pytest.raises(ConfigError) as raised:
        read_blends(config)
    assert str(raised.value) in [str(fault) for fault in faults]
    return blends, [(fault.where, str(fault)) for fault in faults]


def test_entries_weights_and_options_are_all_told_and_the_good_entries_are_read():
    blends, faults = faults_of(
        {
            "batch_size": 0,
            "max_durration": 3,
            "tarred_audio_filepath": "x",
            "bucket_batch_size": [1, 2],
            "input_cfg": [
                GOOD,
                {"type": "nemmo", "manifest_filepath": "b.json", "weight": 1},
                {"type": "nemo", "manifest_filepath": "c.json"},
                {"type": "group", "weight": 1, "input_cfg": []},
                {"type": "group", "weight": 1, "input_cfg": [{**GOOD, "weight": -1}]},
            ],
        }
    )
    assert [where.partition(": ")[2] for where, _ in faults] == [
        "max_durration",
        "tarred_audio_filepath",
        "batch_size",
        "bucket_batch_size",
        "input_cfg[1].type",
        "input_cfg[3].input_cfg",
        "input_cfg[1]",
        "input_cfg[4].input_cfg[0]",
    ]
    blend = blends.parts[""]
    assert [str(spot) for spot in blend.spots] == [
        "config: input_cfg[0]",
        "config: input_cfg[2]",
        "config: input_cfg[4].input_cfg[0]",
    ]
    assert [leaf.paths["manifest"] for leaf in blend.leaves] == [
        ("a.json",),
        ("c.json",),
        ("a.json",),
    ]
    assert blend.options.batch_size is None
