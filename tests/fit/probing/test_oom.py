"""What counts as memory that ran out. The texts are those of real reports."""

from __future__ import annotations

import errno

import pytest
import torch

from playhead.fit.live_tensors import OutOfTensorMemoryError
from playhead.fit.probing.oom import judge, speaks_of_memory

CERTAIN = [
    torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 7.45 GiB. GPU 0 has a total capacity of 14.56 GiB "
        "of which 3.24 GiB is free."
    ),
    RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
    RuntimeError("CUDA driver error: out of memory"),
    RuntimeError("Triton Error [CUDA]: out of memory"),
    RuntimeError("HIP out of memory. Tried to allocate 20.00 MiB"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
    RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"),
    RuntimeError("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `x`"),
    RuntimeError(
        "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, unhandled cuda error, "
        "NCCL version 2.20.5\nncclUnhandledCudaError: Call to CUDA function failed.\n"
        "Last error:\nCuda failure 2 'out of memory'"
    ),
    RuntimeError("Last error:\nFailed to CUDA calloc 6291456 bytes"),
    RuntimeError("[CUDA_ERROR_OUT_OF_MEMORY] Call to cuMemAlloc results in it"),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 132426121216 bytes. Error code 12 (Cannot allocate memory)"
    ),
    RuntimeError("data. DefaultCPUAllocator: not enough memory: you tried to allocate 1 bytes."),
    MemoryError(),
    OutOfTensorMemoryError("tensors hold 2 bytes"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
]

DOUBTFUL = [
    RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    RuntimeError(
        "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a "
        "non-contiguous input."
    ),
    RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    RuntimeError("Unable to find a valid cuDNN algorithm to run convolution"),
    RuntimeError("GET was unable to find an engine to execute this computation"),
    RuntimeError("cuFFT error: CUFFT_INTERNAL_ERROR"),
    RuntimeError("cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate`"),
    RuntimeError("NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"),
]

OTHERS = [
    RuntimeError("CUDA error: device-side assert triggered"),
    RuntimeError("CUDA error: invalid configuration argument"),
    RuntimeError("CUDA error: an illegal memory access was encountered"),
    RuntimeError("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"),
    RuntimeError("Unable to handle autograd's threading in combination with fork"),
    ValueError("a batch that would run out of memory is refused"),
    IndexError("index out of range in self"),
    OSError(errno.ENOSPC, "No space left on device"),
    KeyboardInterrupt(),
    SystemExit(1),
]


@pytest.mark.parametrize("error", CERTAIN, ids=lambda error: str(error)[:40])
def test_memory_that_ran_out_is_seen(error):
    assert judge(error) == "oom"


@pytest.mark.parametrize("error", DOUBTFUL, ids=lambda error: str(error)[:40])
def test_what_libraries_say_of_much_is_doubtful(error):
    assert judge(error) == "doubt"


@pytest.mark.parametrize("error", OTHERS, ids=lambda error: str(error)[:40])
def test_all_else_is_a_fault(error):
    assert judge(error) == "fault"


def test_what_tidies_up_after_memory_ran_out_hides_nothing():
    def failing():
        try:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        except RuntimeError as error:
            raise ValueError("the step failed") from error

    def failing_again():
        try:
            failing()
        finally:
            raise KeyError("state")

    with pytest.raises(ValueError, match="step") as raised:
        failing()
    assert judge(raised.value) == "oom"
    with pytest.raises(KeyError) as raised_again:
        failing_again()
    assert judge(raised_again.value) == "oom"


def test_a_ring_of_causes_ends():
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__cause__, other.__cause__ = other, one
    assert judge(one) == "fault"


def test_a_real_allocation_that_no_machine_can_make_is_seen():
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**60, dtype=torch.uint8)
    assert judge(raised.value) == "oom"


def test_last_words_of_a_crash_are_read():
    assert speaks_of_memory("  what():  CUDA out of memory. Tried to allocate 2.00 GiB")
    assert not speaks_of_memory("Segmentation fault (core dumped)")
