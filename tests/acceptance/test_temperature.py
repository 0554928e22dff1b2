"""Blends whose weights are tempered: what share of the samples comes from where."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice

import pytest

import playhead
from playhead.blend import read_blend
from playhead.datasets import Ids
from support.corpus import write_jsonl

DRAWN = 4000


@pytest.fixture
def leaf(tmp_path):
    """An entry whose samples are named after it; nothing of it is read but its rows."""

    def make(name: str, weight: float | None = None, rows: int = 10) -> dict:
        manifest = tmp_path / f"{name}.json"
        write_jsonl(
            manifest,
            [
                {"audio_filepath": f"{name}/{n}.wav", "duration": 1.0, "text": f"{n}"}
                for n in range(rows)
            ],
        )
        entry = {"type": "nemo", "manifest_filepath": str(manifest)}
        return entry if weight is None else {**entry, "weight": weight}

    return make


def group(*entries: dict, weight: float | None = None, **more) -> dict:
    made = {"type": "group", "input_cfg": list(entries), **more}
    return made if weight is None else {**made, "weight": weight}


def drawn(entries, temperature=None, **options) -> dict[str, float]:
    """The share of each source among the samples that are handed out."""
    config = {"input_cfg": entries, "batch_size": 40, "shuffle": True, "seed": 1, **options}
    if temperature is not None:
        config["reweight_temperature"] = temperature
    loader = playhead.dataloader(config, dataset=Ids())
    counts = Counter(
        name.partition("/")[0] for batch in islice(loader, DRAWN // 40) for name in batch["ids"]
    )
    return {name: count / DRAWN for name, count in counts.items()}


def declared(entries, temperature=None) -> list[float]:
    """The share of each leaf, as it was read."""
    config = {"input_cfg": entries, "batch_size": 1, "reweight_temperature": temperature}
    weights = [one.weight for one in read_blend(config).leaves]
    return [weight / sum(weights) for weight in weights]


def near(**shares):
    return pytest.approx(shares, abs=0.01)


def test_a_root_of_the_weights(leaf):
    assert drawn([leaf("a", 900), leaf("b", 100)], 0.5) == near(a=0.75, b=0.25)


def test_one_keeps_the_weights_as_does_none(leaf):
    for temperature in (1.0, 1, None):
        assert drawn([leaf("a", 900), leaf("b", 100)], temperature) == near(a=0.9, b=0.1)


def test_zero_makes_them_equal(leaf):
    entries = [leaf("a", 900), leaf("b", 90), leaf("c", 10)]
    assert drawn(entries, 0.0) == near(a=1 / 3, b=1 / 3, c=1 / 3)


def test_a_number_for_each_level(leaf):
    """The first is for the outermost."""
    entries = [
        group(leaf("a", 900), leaf("b", 100), weight=0.7),
        group(leaf("c", 600), leaf("d", 400), weight=0.3),
    ]
    assert drawn(entries, [1.0, 0.0]) == near(a=0.35, b=0.35, c=0.15, d=0.15)
    assert drawn(entries, [0.0, 1.0]) == near(a=0.45, b=0.05, c=0.3, d=0.2)


def test_three_levels(leaf):
    inner = group(leaf("a", 81), leaf("b", 16), weight=9)
    entries = [group(inner, group(leaf("c", 5), weight=1), weight=3), leaf("d", 1)]
    assert declared(entries, [1.0, 0.5, 0.25]) == pytest.approx(
        [0.75 * 0.75 * 3 / 5, 0.75 * 0.75 * 2 / 5, 0.75 * 0.25, 0.25]
    )
    assert drawn(entries, [1.0, 0.5, 0.25]) == near(a=0.3375, b=0.225, c=0.1875, d=0.25)


def test_a_leaf_beside_a_group(leaf):
    entries = [leaf("a", 9), group(leaf("b", 4), leaf("c", 1), weight=1)]
    assert drawn(entries, 0.5) == near(a=0.75, b=0.25 * 2 / 3, c=0.25 / 3)


def test_an_only_child_has_all_of_its_group(leaf):
    entries = [group(leaf("a", 0.001), weight=3), leaf("b", 1)]
    for temperature in (1.0, 0.5, 0.0):
        (outer, rest) = declared(entries, temperature)
        assert outer == pytest.approx(3**temperature / (3**temperature + 1))
        assert outer + rest == pytest.approx(1)


def test_one_number_is_for_all_levels(leaf):
    entries = [group(leaf("a", 9), leaf("b", 1), weight=9), leaf("c", 1)]
    assert declared(entries, 0.5) == declared(entries, [0.5, 0.5])


@pytest.mark.parametrize("temperature", [[1.0], [1.0, 1.0, 1.0], []])
def test_numbers_that_do_not_fit_the_levels(leaf, temperature):
    entries = [group(leaf("a", 9), leaf("b", 1), weight=9), leaf("c", 1)]
    with pytest.raises(ValueError, match="reweight_temperature"):
        declared(entries, temperature)


@pytest.mark.parametrize("weight", [-1, -0.5, "nan"])
def test_weights_below_zero(leaf, weight):
    with pytest.raises(ValueError, match="not a number of at least 0"):
        declared([leaf("a", weight), leaf("b", 1)], 0.5)


def test_a_weight_of_zero_leaves_a_source_out_at_any_temperature(leaf):
    for temperature in (1.0, 0.5, 0.0):
        assert declared([leaf("a", 0), leaf("b", 1), leaf("c", 1)], temperature)[-2:] == [0.5, 0.5]
        assert set(drawn([leaf("a", 0), leaf("b", 1), leaf("c", 1)], temperature)) == {"b", "c"}


def fits(entries, count: int) -> bool:
    try:
        declared(entries, [1.0] * count)
    except ValueError as error:
        if "reweight_temperature" not in str(error):
            raise
        return False
    return True


def depth_of(entries) -> int:
    """How many numbers fit; no other count does."""
    (depth,) = [count for count in range(1, 6) if fits(entries, count)]
    return depth


def test_how_deep_a_blend_is(leaf, tmp_path):
    flat = [leaf("a"), leaf("b")]
    assert depth_of(flat) == 1
    # Siblings share a level, and the deepest branch counts.
    assert depth_of([group(*flat), group(leaf("c"))]) == 2
    assert depth_of([group(*flat), group(group(leaf("c"))), leaf("d")]) == 3
    (tmp_path / "inner.yaml").write_text(json.dumps([group(leaf("e"), leaf("f")), leaf("g")]))
    named = {"type": "group", "input_cfg": str(tmp_path / "inner.yaml")}
    assert depth_of([named, leaf("h")]) == 3


def test_a_blend_of_nothing(leaf):
    for entries in ([], [group()]):
        with pytest.raises(playhead.ConfigError):
            declared(entries, 0.5)
    (tmp,) = [leaf("a")]
    missing = {"type": "group", "input_cfg": tmp["manifest_filepath"] + ".gone.yaml"}
    with pytest.raises(FileNotFoundError, match=r"gone\.yaml"):
        declared([missing, leaf("b")])
