"""Lhotse's choice of an audio library, made once and not for every sample."""

from __future__ import annotations

from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

from lhotse.audio.backend import (
    CompositeAudioBackend,
    LibsndfileBackend,
    get_current_audio_backend,
    get_default_audio_backend,
    set_current_audio_backend,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LibsndfileFirst", "quick_audio_backend"]

_KNOWN_ENDINGS = (".wav", ".flac", ".ogg", ".mp3")


class LibsndfileFirst(CompositeAudioBackend):
    """Lhotse's default backend, without looking for torchaudio before every read.

    Bytes and files of common formats go to libsndfile at once, where they would have gone in the
    end; all others, and what libsndfile refuses, take Lhotse's own way.
    """

    def __init__(self) -> None:
        super().__init__([get_default_audio_backend()])
        self._libsndfile = LibsndfileBackend()

    def read_audio(
        self,
        path_or_fd: Any,
        offset: float = 0.0,
        duration: float | None = None,
        force_opus_sampling_rate: int | None = None,
    ) -> tuple[NDArray[np.float32], int]:
        """Read a stretch of audio, in seconds: samples of shape (channels, samples) and rate."""
        if isinstance(path_or_fd, BytesIO) or str(path_or_fd).lower().endswith(_KNOWN_ENDINGS):
            try:
                return self._libsndfile.read_audio(path_or_fd, offset, duration)
            except (OSError, RuntimeError, ValueError):
                if isinstance(path_or_fd, BytesIO):
                    path_or_fd.seek(0)
        return super().read_audio(path_or_fd, offset, duration, force_opus_sampling_rate)


@contextmanager
def quick_audio_backend() -> Generator[None]:
    """Let Lhotse read with `LibsndfileFirst`, unless the user chose a backend."""
    current = get_current_audio_backend()
    if current is not get_default_audio_backend():
        yield
        return
    set_current_audio_backend(LibsndfileFirst())
    try:
        yield
    finally:
        set_current_audio_backend(current)
