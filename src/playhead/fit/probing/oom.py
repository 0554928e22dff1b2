"""What counts as memory that ran out, among all that goes wrong in a training step."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Verdict", "chain", "judge", "speaks_of_memory"]

Verdict: TypeAlias = Literal["oom", "doubt", "fault"]
"""Memory ran out; it may have, or not; or something else went wrong."""

# Lower case. What the allocators, drivers and libraries write when nothing else can be meant.
_CERTAIN: Final = (
    # The caching allocators, the driver, Triton, and the last error of NCCL.
    "out of memory",
    "cuda_error_out_of_memory",
    "cudaerrormemoryallocation",
    "failed to cuda calloc",
    "cublas_status_alloc_failed",
    "cudnn_status_alloc_failed",
    "cudnn_status_internal_error_device_allocation_failed",
    "cudnn_status_internal_error_host_allocation_failed",
    "cufft_alloc_failed",
    "cusolver_status_alloc_failed",
    "cusparse_status_alloc_failed",
    "cusparse_status_insufficient_resources",
    "curand_status_allocation_failed",
    # Of the host.
    "defaultcpuallocator: can't allocate memory",
    "defaultcpuallocator: not enough memory",
    "cannot allocate memory",
    "std::bad_alloc",
)

# Libraries that find no room for a handle or a workspace say this, and say it of much else too.
_DOUBTFUL: Final = (
    "cublas_status_not_initialized",
    "cublas_status_execution_failed",
    "cublas_status_internal_error",
    "cudnn_status_not_initialized",
    "cudnn_status_not_supported",
    "cudnn_status_execution_failed",
    "cudnn_status_internal_error",
    "unable to find an engine",
    "unable to find a valid cudnn algorithm",
    "no valid convolution algorithms available",
    "cufft_internal_error",
    "cusolver_status_internal_error",
    "cusolver_status_not_initialized",
    "cusparse_status_not_initialized",
    # NCCL keeps the cause to itself unless it is told to talk.
    "unhandled cuda error",
)

_DEPTH: Final = 16


def judge(error: BaseException) -> Verdict:
    """Say whether an exception means that memory ran out.

    What it was raised from, and while what was handled, counts too: code that catches, tidies up
    and raises something else is common.

    Examples
    --------
    >>> judge(RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"))
    'oom'
    >>> judge(RuntimeError("cuFFT error: CUFFT_INTERNAL_ERROR"))
    'doubt'
    >>> judge(ValueError("running out of memory is not what this is about"))
    'fault'
    """
    verdicts = {_judge_one(link) for link in chain(error)}
    return "oom" if "oom" in verdicts else "doubt" if "doubt" in verdicts else "fault"


def speaks_of_memory(text: str) -> bool:
    """Say whether the last words of a process that crashed are those of memory that ran out.

    Examples
    --------
    >>> speaks_of_memory("terminate called after throwing an instance of 'std::bad_alloc'")
    True
    """
    lower = text.lower()
    return any(words in lower for words in _CERTAIN)


def chain(error: BaseException) -> Iterator[BaseException]:
    """Give an exception, then what it was raised from or after, and so on."""
    link: BaseException | None = error
    for _ in range(_DEPTH):
        if link is None:
            return
        yield link
        link = link.__cause__ or link.__context__


def _judge_one(error: BaseException) -> Verdict:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "oom"
    if isinstance(error, OSError):
        return "oom" if error.errno == errno.ENOMEM else "fault"
    # Libraries raise classes of their own for what a device says, but never these.
    if isinstance(error, ValueError | TypeError | LookupError | AttributeError | AssertionError):
        return "fault"
    text = str(error).lower()
    if speaks_of_memory(text):
        return "oom"
    return "doubt" if any(words in text for words in _DOUBTFUL) else "fault"
