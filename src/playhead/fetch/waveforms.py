"""The waveforms of samples, one by one and as a padded batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from playhead.errors import AudioError
from playhead.fetch.audio import count_samples, decode, decode_into

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.formats import Example

__all__ = ["pad_waveforms", "waveform"]


def waveform(example: Example, sample_rate: int | None) -> tuple[NDArray[np.float32], int]:
    """Decode the audio of a sample.

    Parameters
    ----------
    example
        The sample.
    sample_rate
        The rate to resample to, in Hz; None keeps the file's.

    Returns
    -------
    samples
        Shape (channels, samples), from -1 to 1.
    rate
        In Hz.

    Raises
    ------
    AudioError
        If it cannot be decoded or has none.
    """
    cut = example.cut
    if example.audio is not None and _is_file(example):
        return decode(example.audio, sample_rate, example.place)
    if cut is None and example.audio is example.cut_data is None and not example.members:
        raise AudioError(
            "the sample has no audio", where=str(example.place), fix="Use a dataset that needs none"
        )
    from playhead.fetch.backend import quick_audio_backend  # noqa: PLC0415 - imports Lhotse, 2 s
    from playhead.fetch.cuts import to_cut  # noqa: PLC0415 - same

    if cut is None:
        cut = to_cut(example, sample_rate, {}, example.channel_selector)
    try:
        with quick_audio_backend():
            samples: Any = cut.load_audio()
    except MemoryError:
        raise
    except Exception as error:
        raise AudioError(
            f"Lhotse cannot load the cut: {type(error).__name__}: {str(error).splitlines()[0]}",
            where=str(example.place),
            fix="Restore its audio, or mark its row with _skipme",
        ) from error
    if samples is None:
        raise AudioError(
            "the cut has no recording", where=str(example.place), fix="Attach one to the cut"
        )
    return samples, cut.sampling_rate


def pad_waveforms(
    examples: Sequence[Example], sample_rate: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Decode the audio of samples into one tensor, padded with zeros at the end.

    Parameters
    ----------
    examples
        The samples, of one channel each.
    sample_rate
        The rate in Hz; None keeps that of the files, which must have the same.

    Returns
    -------
    audio
        Shape (B, T), float32, from -1 to 1.
    lengths
        Shape (B,), int64.

    Raises
    ------
    AudioError
        If audio cannot be decoded, has several channels, or rates differ.
    """
    loaded: dict[int, NDArray[np.float32]] = {}
    lengths = np.zeros(len(examples), np.int64)
    rates = np.zeros(len(examples), np.int64)
    for index, example in enumerate(examples):
        if example.audio is None or not _is_file(example):
            loaded[index], rates[index] = _single(example, sample_rate)
            lengths[index] = len(loaded[index])
        else:
            lengths[index], rates[index] = count_samples(example.audio, sample_rate, example.place)
    if sample_rate is None:
        _check_rates(examples, rates)
    audio = _empty(len(examples), int(lengths.max(initial=0)))
    rows = audio.numpy()
    facts = zip(examples, rows, lengths.tolist(), rates.tolist(), strict=True)
    for index, (example, row, length, rate) in enumerate(facts):
        if example.audio is None or not _is_file(example):
            row[:length] = loaded[index]
        else:
            decode_into(row[:length], example.audio, rate, example.place)
        row[length:] = 0
    return audio, torch.from_numpy(lengths)


def _is_file(example: Example) -> bool:
    """Whether what is heard is a stretch of a file, with nothing done to it."""
    return example.audio is not None and example.cut is None and not example.cut_steps


def _single(example: Example, sample_rate: int | None) -> tuple[NDArray[np.float32], int]:
    samples, rate = waveform(example, sample_rate)
    if len(samples) != 1:
        raise AudioError(
            f"the cut has {len(samples)} channels and one is wanted",
            where=str(example.place),
            fix="Choose one channel when the cuts are made, for instance with cut.with_channels(0)",
        )
    return samples[0], rate


def _check_rates(examples: Sequence[Example], rates: NDArray[np.int64]) -> None:
    other = np.flatnonzero(rates != rates[:1])
    if len(other):
        raise AudioError(
            f"the batch has audio at {rates[0]} Hz and at {rates[other[0]]} Hz",
            where=f"{examples[0].place}; {examples[int(other[0])].place}",
            fix="Set sample_rate, for instance sample_rate: 16000",
        )


def _empty(num_rows: int, length: int) -> torch.Tensor:
    if get_worker_info() is None:
        return torch.empty(num_rows, length, dtype=torch.float32)
    # What a worker returns goes through shared memory: made there, it need not be copied.
    storage: Any = torch.UntypedStorage._new_shared(4 * num_rows * length)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (as torch's own collation does)
    audio: Any = torch.empty(0, dtype=torch.float32)
    return audio.set_(storage, 0, (num_rows, length))
