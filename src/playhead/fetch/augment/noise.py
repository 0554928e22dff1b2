"""Noise under speech: which noise, which stretch of it and how loud, all from the sample's key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.blend import read_blend
from playhead.errors import ConfigError
from playhead.fetch.augment.draws import below, between, happens, pick
from playhead.fetch.missing_audio import demand_audio
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.index.build import open_leaves
from playhead.plan.batch import MicroBatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lhotse.cut import Cut

    from playhead.blend.leaf import Leaf
    from playhead.config import Options
    from playhead.fetch.augment.settings import Augmentation
    from playhead.formats import Example
    from playhead.index.pack import LeafPack, PackRef

__all__ = ["Noise", "NoiseDraw", "NoiseSpec", "mix_noise", "open_noise"]

_YAML = (".yaml", ".yml")
_CUTS = (".jsonl", ".jsonl.gz", ".jsonl.zst")
# What is left at the end of a sample when its last noise ends may stay without.
_SHORT_US = 50_000
_MOST_PIECES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseSpec:
    """Where noise comes from; paths and options only, so that it travels between processes."""

    leaves: tuple[Leaf, ...]
    """The leaves of noise."""
    packs: tuple[PackRef, ...]
    """Their columns."""
    notes: tuple[str, ...] = ()
    """What people should be told once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseDraw:
    """What is mixed into one sample."""

    snr: float
    """Signal-to-noise ratio, dB."""
    rows: tuple[tuple[int, int], ...]
    """Leaf and row of every piece, one after the other."""


def open_noise(
    options: Options,
    *,
    data_blend_dir: str | None = None,
    command: str = "playhead index CONFIG",
    pack_dir: str | None = None,
) -> NoiseSpec | None:
    """Open the columns of the noise that a section names, building what is missing.

    `noise_path` is a NeMo manifest, Lhotse cuts (`.jsonl`, also compressed), the YAML of a blend,
    or the keys of a config, such as `{manifest_filepath: …, tarred_audio_filepaths: …}`. Weights of
    a blend count.

    Parameters
    ----------
    options
        The section's; None comes of them if they name no noise.
    data_blend_dir
        What `${data_blend_dir}` stands for.
    command
        What errors tell people to run.
    pack_dir
        Where packs are kept; as for the section itself if None.

    Raises
    ------
    ConfigError
        If the noise cannot be used, or there is none in it.
    PlayheadError
        As `open_leaves` does.
    """
    path = options.noise_path
    if path is None or path is False:
        return None
    blend = read_blend(
        {"indexes_root": options.indexes_root, "batch_size": 1, **_keys_of(path)},
        data_blend_dir=data_blend_dir,
    )
    packs = open_leaves(
        blend.leaves, auto_index=options.auto_index, command=command, pack_dir=pack_dir
    )
    for leaf, pack in zip(blend.leaves, packs, strict=True):
        if leaf.weight > 0 and not (pack.duration_us > 0).any():
            raise ConfigError(
                "the noise has no row with a length above 0",
                where=f"noise_path, leaf {leaf.name}",
                fix="Add noise to it, or leave it out",
            )
    return NoiseSpec(
        leaves=blend.leaves, packs=tuple(pack.ref for pack in packs), notes=blend.notes
    )


def _keys_of(path: Any) -> Mapping[str, Any]:
    if isinstance(path, dict):
        return path
    if isinstance(path, list):
        return {"input_cfg": path}
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(
            f"`noise_path` is a {type(path).__name__}",
            fix="Write the path of a manifest, of cuts or of a YAML, or the keys of a config",
        )
    name = str(path)
    if name.lower().endswith(_YAML):
        return {"input_cfg": name}
    if name.lower().endswith(_CUTS):
        return {"cuts_path": name}
    return {"manifest_filepath": name}


class Noise:
    """Finds and reads noise; opens packs and files when it first must.

    Parameters
    ----------
    spec
        Where it comes from.
    """

    def __init__(self, spec: NoiseSpec) -> None:
        self._spec = spec
        self._timings = Timings()
        self._reader = Reader(spec.leaves, spec.packs, self._timings)
        self._opened: dict[int, LeafPack] = {}
        self._weights = [leaf.weight for leaf in spec.leaves]

    def draw(self, key: int, duration_us: int, augmentation: Augmentation) -> NoiseDraw | None:
        """Choose what is mixed into a sample; None where its key says none.

        Rows are drawn, each independently, until they are as long as the sample: leaves by weight,
        then a row of the leaf, all alike.

        Parameters
        ----------
        key
            The sample's.
        duration_us
            How much must be covered (µs).
        augmentation
            Probability and range of the signal-to-noise ratio.
        """
        if not happens(key, "noise", augmentation.noise_mix_prob):
            return None
        rows: list[tuple[int, int]] = []
        covered = 0
        for piece in range(_MOST_PIECES):
            leaf = pick(key, f"noise leaf {piece}", self._weights)
            pack = self._pack(leaf)
            row = below(key, f"noise row {piece}", len(pack.duration_us))
            length = int(pack.duration_us[row])
            if length <= 0:
                continue
            rows.append((leaf, row))
            covered += length
            if covered >= duration_us - _SHORT_US:
                break
        snr = between(key, "noise snr", augmentation.noise_snr)
        return NoiseDraw(snr=snr, rows=tuple(rows))

    def read(self, draws: Sequence[NoiseDraw | None]) -> list[list[Example]]:
        """Read the noise of every draw, all of it together; an empty list for None."""
        wanted = [row for draw in draws if draw is not None for row in draw.rows]
        if not wanted:
            return [[] for _ in draws]
        read = self._reader.read(_references(wanted), with_audio=True)
        demand_audio(read)
        found = iter(read)
        return [[] if draw is None else [next(found) for _ in draw.rows] for draw in draws]

    def _pack(self, leaf: int) -> LeafPack:
        if leaf not in self._opened:
            self._opened[leaf] = self._spec.packs[leaf].open()
        return self._opened[leaf]


def mix_noise(cut: Cut, draw: NoiseDraw, noises: Sequence[Cut], key: int, place: slice) -> Cut:
    """Mix noise into a stretch of a cut; the cut keeps its id, its length and its texts.

    One noise follows the other; one that is longer than what is left gives a stretch of itself, at
    a place that the key draws. The ratio holds for each by itself.

    Parameters
    ----------
    cut
        The speech.
    draw
        What `Noise.draw` chose.
    noises
        Its noises, of one channel each and at the rate of the cut.
    key
        The sample's.
    place
        First sample that is covered, and the one after the last.
    """
    rate = cut.sampling_rate
    at, end = place.start, place.stop
    for piece, noise in enumerate(noises):
        left = end - at
        if left <= 0:
            break
        found = noise.num_samples
        if found > left:
            offset = below(key, f"noise offset {piece}", found - left + 1)
            noise = noise.truncate(offset=offset / rate, duration=left / rate, preserve_id=True)  # noqa: PLW2901
            found = left
        cut = cut.mix(
            noise.drop_supervisions(),
            offset_other_by=at / rate,
            snr=draw.snr,
            preserve_id="left",
            tag="noise",
        )
        at += found
    return cut


def _references(rows: Sequence[tuple[int, int]]) -> MicroBatch:
    count = len(rows)
    return MicroBatch(
        leaf=np.array([leaf for leaf, _ in rows], np.int32),
        pass_=np.zeros(count, np.int64),
        row=np.array([row for _, row in rows], np.int64),
        part=np.zeros(count, np.int32),
        repeated=np.zeros(count, np.bool_),
        step=0,
        slot=0,
        key=0,
        sample_keys=np.zeros(count, np.uint64),
    )
