"""Small blends of every kind as configs, and what their micro-batches hold, row by row."""

from __future__ import annotations

import json
import math
import random
import warnings
from dataclasses import dataclass

from hypothesis import strategies as st

import playhead
from playhead.datasets import Ids
from support.corpus import write_jsonl, write_tar

__all__ = [
    "G",
    "Letters",
    "SmallCorpus",
    "Trained",
    "configs",
    "loader_of",
    "quiet",
    "several",
    "trained_by",
]

G = 4
"""Micro-batches of every step."""

# Lines are about what a config says, not about what is tested.
_NOTES = ".*window_draws.*|.*shard_seed.*|.*parts that end.*|.*above.*|.*option.*|.*concurrent.*"


class Letters:
    """A tokenizer whose tokens are letters."""

    def text_to_ids(self, text):
        return [ord(letter) % 97 for letter in text]


class SmallCorpus:
    """Manifests with audio that nobody reads.

    Attributes
    ----------
    durations, texts
        Seconds and texts of the rows of each source, by its name.
    entries
        Their entries, by name.
    """

    def __init__(self, folder):
        self.folder = folder
        self.durations, self.texts, self.entries = {}, {}, {}

    @classmethod
    def write(cls, folder):
        rng = random.Random(7)
        corpus = cls(folder)
        for name, rows, longest in (("plain", 37, 12.0), ("other", 61, 20.0)):
            corpus._rows(rng, name, rows, longest)
            manifest = write_jsonl(folder / name / "manifest.json", corpus._lines(name))
            corpus.entries[name] = {
                "type": "nemo", "manifest_filepath": str(manifest), "name": name,
            }  # fmt: skip
        corpus._rows(rng, "tarred", 48, 15.0)
        for shard in range(3):
            rows = [row | {"shard_id": shard} for row in corpus._lines("tarred")[shard::3]]
            write_jsonl(folder / "tarred" / f"manifest_{shard}.json", rows)
            members = [(row["audio_filepath"], bytes(rng.randrange(500, 40_000))) for row in rows]
            write_tar(folder / "tarred" / f"audio_{shard}.tar", members)
        corpus.entries["tarred"] = {
            "type": "nemo_tarred", "name": "tarred",
            "manifest_filepath": str(folder / "tarred" / "manifest__OP_0..2_CL_.json"),
            "tarred_audio_filepaths": str(folder / "tarred" / "audio__OP_0..2_CL_.tar"),
        }  # fmt: skip
        lines = [f"line {'abc ' * rng.randrange(1, 12)}{number}" for number in range(29)]
        (folder / "lines.txt").write_text("".join(f"{line}\n" for line in lines))
        corpus.texts["lines"], corpus.durations["lines"] = lines, [None] * len(lines)
        corpus.entries["lines"] = {
            "type": "txt", "name": "lines", "paths": str(folder / "lines.txt"), "language": "en",
        }  # fmt: skip
        return corpus

    def _rows(self, rng, name, rows, longest):
        self.durations[name] = [round(rng.uniform(0.3, longest), 2) for _ in range(rows)]
        self.texts[name] = [
            f"{name} {'word ' * rng.randrange(1, 9)}{number}" for number in range(rows)
        ]

    def _lines(self, name):
        return [
            {"audio_filepath": f"{name}{at:04d}.wav", "duration": seconds, "text": text}
            for at, (seconds, text) in enumerate(
                zip(self.durations[name], self.texts[name], strict=True)
            )
        ]

    def row_of(self, name, row):
        """The row of a source's index in its manifest: those of shards stand shard after shard."""
        if name != "tarred":
            return row
        order = sorted(range(len(self.durations[name])), key=lambda at: at % 3)
        return order[row]

    def blend(self, names, weights, options):
        """A config of some sources."""
        entries = [
            self.entries[name] | {"weight": weight}
            for name, weight in zip(names, weights, strict=True)
        ]
        return {"input_cfg": entries, "micro_batches_per_step": G, "seed": 3, **options}


_LIMITS = st.one_of(
    st.fixed_dictionaries(
        {"batch_duration": st.sampled_from([25.0, 60.0])},
        optional={
            "quadratic_duration": st.just(20.0),
            "batch_size": st.sampled_from([3, 8]),
            "bucket_duration_bins": st.sampled_from([[4.0, 9.0], [6.0]]),
        },
    ),
    st.just({"bucket_duration_bins": [4.0, 9.0, 21.0], "bucket_batch_size": [6, 4, 2]}),
    st.just({"bucket_duration_bins": [4.0, 9.0], "bucket_batch_size": [6, 4]}),
    st.fixed_dictionaries({"batch_size": st.sampled_from([1, 5])}),
)
_SHAPES = st.fixed_dictionaries(
    {"shuffle": st.booleans(), "use_bucketing": st.booleans(), "seed": st.integers(0, 99)},
    optional={
        "min_duration": st.sampled_from([0.5, 3.0]),
        "max_duration": st.just(14.0),
        "force_finite": st.just(True),
        "drop_last": st.just(True),
        "perturb_speed": st.just(True),
        "cut_into_windows_duration": st.just(5.0),
        "pad_min_duration": st.just(2.0),
        "truncate_duration": st.just(8.0),
        "window_draws": st.sampled_from([30, 77]),
        "locality": st.sampled_from(["rows", "shards"]),
    },
)


@st.composite
def configs(draw, corpus, names=("plain", "other", "tarred")):
    """A config of one blend of sources with audio."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    weights = [draw(st.sampled_from([0.2, 0.5, 1.0])) for _ in chosen]
    options = draw(_LIMITS) | draw(_SHAPES)
    if "bucket_batch_size" in options:
        options["use_bucketing"] = True
    elif not options["use_bucketing"]:
        options.pop("bucket_duration_bins", None)
    return corpus.blend(chosen, weights, options)


@st.composite
def several(draw, corpus):
    """A config of several blends, of which some may end."""
    top = {
        "multi_config": True,
        "seed": draw(st.integers(0, 99)),
        "shard_seed": 1,
        "shuffle": draw(st.booleans()),
        "sampler_fusion": draw(st.sampled_from(["round_robin", "randomized_round_robin", "zip"])),
        "micro_batches_per_step": G,
    }
    if draw(st.booleans()):
        top["force_finite"] = True
    parts = {}
    for name in ("one", "two", "three")[: draw(st.integers(2, 3))]:
        parts[name] = draw(configs(corpus))
        for only_at_the_top in ("seed", "shuffle", "force_finite"):
            parts[name].pop(only_at_the_top, None)
    if top["sampler_fusion"] == "randomized_round_robin":
        top["sampler_weights"] = {name: draw(st.sampled_from([1.0, 2.5])) for name in parts}
    return {**top, **parts}


def quiet(act):
    """Call something whose notes are no matter of the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return act()


@dataclass
class Trained:
    """One sample that a micro-batch holds."""

    leaf: str
    row: int
    pass_: int
    part: int
    repeated: bool
    length_us: int
    """As it is trained on; -1 of what has no audio."""


def trained_by(corpus, config, micro_batch, names):
    """The samples of a micro-batch, worked out from the manifests."""
    found = []
    for at, number in enumerate(micro_batch.leaf.tolist()):
        name, row = names[number], int(micro_batch.row[at])
        seconds = corpus.durations[name][corpus.row_of(name, row)]
        length = -1 if seconds is None else round(seconds * 1_000_000)
        if micro_batch.speed is not None and length >= 0:
            length = math.ceil(length * 1000 / int(micro_batch.speed[at]))
        if micro_batch.span_us is not None and int(micro_batch.span_us[at]) >= 0:
            length = int(micro_batch.span_us[at])
        if "pad_min_duration" in config and length >= 0:
            length = max(length, round(config["pad_min_duration"] * 1_000_000))
        found.append(
            Trained(
                name,
                row,
                int(micro_batch.pass_[at]),
                int(micro_batch.part[at]),
                bool(micro_batch.repeated[at]),
                length,
            )
        )
    return found


def loader_of(config, *, rank=0, world_size=1, **options):
    """A loader of ids."""
    return quiet(
        lambda: playhead.dataloader(
            json.loads(json.dumps(config)),
            dataset=Ids(),
            rank=rank,
            world_size=world_size,
            **options,
        )
    )
