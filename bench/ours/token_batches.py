"""Playhead: batches of text, conversations and speech by their tokens, padded and packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lengths import TOKEN_SECONDS, mixed_tokens, speech_seconds
from meter import Settings, cpu_seconds, main
from playhead.audio_tokens import AudioTokens
from playhead.plan import Batching, LeafColumns, Shape, plan_window, start

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray

_LIMIT, _RANKS, _DIGEST = 16_384, 64, "0" * 16


def measure(settings: Settings) -> dict[str, float]:
    rows = 200_000 if settings.quick else 1_000_000
    seconds = speech_seconds(rows, seed=1)
    tokens = mixed_tokens(rows, seed=1)
    leaves = [
        _leaf("text", "text", tokens["text"], np.zeros(rows)),
        _leaf("conversation", "conversation", tokens["conversation"], np.zeros(rows)),
        _leaf("speech", "cut", tokens["speech"], seconds),
    ]
    audio = AudioTokens.of_duration(round(TOKEN_SECONDS * 1_000_000))
    shape = Shape(multimodal=True, tokens=_DIGEST, audio_tokens=audio.text)
    total = [
        tokens["text"],
        tokens["conversation"],
        tokens["speech"] + audio.count((seconds * 1e6).astype(np.int64)),
    ]
    return {
        f"{name}_{key}": value
        for name, packed in (("padded", False), ("packed", True))
        for key, value in _planned(leaves, shape, total, packed=packed).items()
    }


def _planned(
    leaves: list[LeafColumns], shape: Shape, total: list[NDArray[np.int64]], *, packed: bool
) -> dict[str, float]:
    batching = Batching(
        micro_batches_per_step=_RANKS, in_tokens=True, batch_tokens=_LIMIT, packed=packed
    )
    begin = cpu_seconds()
    position = start(leaves, shape, batching, seed=1)
    plan = plan_window(position, leaves, shape, batching)
    cpu = cpu_seconds() - begin
    used = room = above = samples = 0
    for step in range(plan.num_steps):
        for slot in range(_RANKS):
            batch = plan.micro_batch(step, slot)
            lengths = [total[leaf][row] for leaf, row in zip(batch.leaf, batch.row, strict=True)]
            padded = sum(lengths) if packed else len(lengths) * max(lengths)
            used += sum(lengths)
            room += _LIMIT if packed else padded
            above += padded > _LIMIT
            samples += len(lengths)
    return {
        "samples_per_s": samples / cpu,
        "full_pct": 100 * float(used) / float(room),
        "over_limit": float(above),
    }


def _leaf(
    name: str,
    kind: Literal["cut", "text", "conversation"],
    tokens: NDArray[np.int64],
    seconds: NDArray[np.float64],
) -> LeafColumns:
    counts = tokens.astype(np.uint32)
    before = np.zeros_like(counts) if kind != "conversation" else (counts * 2) // 3
    columns = {
        "tokens": counts,
        "input": before,
        "output": counts - before,
        "context": before,
        "answer": counts - before,
    }
    return LeafColumns(
        key=name,
        name=name,
        weight=1,
        duration_us=(seconds * 1e6).astype(np.int64),
        fingerprint=str,
        side=lambda _: columns,
        kind=kind,
    )


if __name__ == "__main__":
    main(measure)
