"""How time and memory are measured: warm up, wait for the device, take the median."""

import ctypes
import gc
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """How long some work takes, until the device is done with it."""
    synchronise(device)
    start = time.perf_counter()
    work()
    synchronise(device)
    return time.perf_counter() - start


def median(work: Callable[[], object], device: torch.device, rounds: int, warmup: int = 1) -> float:
    """Seconds of some work: the median of several rounds after a warm-up."""
    for _ in range(warmup):
        work()
    return statistics.median(seconds(work, device) for _ in range(rounds))


def device_median(work: Callable[[], object], device: torch.device, rounds: int, calls: int) -> float:
    """Seconds of one call, without what Python needs to start it: on a GPU the calls are replayed as a graph."""

    def often() -> None:
        for _ in range(calls):
            work()

    if device.type != "cuda":
        return median(often, device, rounds) / calls
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        often()
    return median(graph.replay, device, rounds) / calls


def clean_up(device: torch.device) -> None:
    """Forget what the last measurement left: garbage and cached memory."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch._C._cuda_clearCublasWorkspaces()  # or only the first measurement would count them
        torch.cuda.empty_cache()
    else:
        with suppress(AttributeError, OSError):  # only glibc has it
            ctypes.CDLL(None).malloc_trim(0)


class Memory:
    """Peak memory beyond what was in use when it was made: of tensors on a GPU, of the process on the CPU (Linux)."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.forget_peak()
        self.before = torch.cuda.memory_allocated(device) if device.type == "cuda" else of_process("VmRSS")

    def forget_peak(self) -> None:
        """The high-water mark starts again; what was in use at the beginning still counts as that."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")

    def peak_bytes(self) -> int | None:
        peak = torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else of_process("VmHWM")
        return None if peak is None or self.before is None else max(0, peak - self.before)

    def peak_gib(self) -> float | None:
        peak = self.peak_bytes()
        return None if peak is None else peak / 2**30


def of_process(name: str) -> int | None:
    """A figure of this process as the Linux kernel keeps it, bytes."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return None
