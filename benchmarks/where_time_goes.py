"""Where the time of a training step goes: kernels on the GPU, operators on the CPU, counted and grouped by kind."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from torch.profiler import ProfilerActivity, profile

from benchmarks.plan import Plan, training_config
from benchmarks.timing import clean_up, synchronise
from benchmarks.training import make_step, settled

# The first that matches decides, so the special ones come first. Names are those of torch 2.11 on CUDA 12 and 13.
KERNELS = {
    "our crop and paste": r"^(crop|paste)_\w*kernel",
    "compiled matmul": r"^triton_tem_|^triton_mm",
    "compiled pointwise and reductions": r"^triton_",
    "optimiser": r"multi_tensor_apply|fusedadam|lpnorm",
    "convolution": r"conv|cudnn|fprop|dgrad|wgrad|nchwtonhwc|nhwctonchw",
    "matmul": r"gemm|gemv|nvjet|cublas|cutlass|splitk",
    "sorting and scans": r"sort|topk|radix|bitonic|scan|gathertopk",
    "random numbers": r"distribution|philox|random",
    "copies and fills": r"memcpy|memset|copy|fill|catarray",
    "indexing": r"index|gather|scatter",
    "other reductions": r"reduce|softmax",
    "other elementwise": r"elementwise|vectorized",
}
OPERATORS = {
    "optimiser": r"adam|foreach|norm$",
    "convolution": r"conv",
    "matmul": r"mm$|matmul|linear|dot$",
    "sampling (crop, paste)": r"grid_sampler|scatter_add",
    "sorting and scans": r"sort|topk|cumsum",
    "random numbers": r"normal_|uniform_|rand",
    "copies and fills": r"copy|fill|zero|ones|full|cat$|stack$|clone|contiguous|empty|resize|new_",
    "indexing": r"index|gather|scatter|select|slice|nonzero",
    "reductions": r"sum$|mean$|amax$|amin$|max$|min$|any$|argmax",
    "elementwise and other": r"",
}


@dataclass(frozen=True)
class KindRow:
    kind: str
    count: int
    us: float
    share: float
    """Of all kinds' time. Kernels side by side count twice, so the sum may exceed the step."""
    longest: str
    """The one that takes most of it."""


def kinds(plan: Plan) -> list[KindRow]:
    """One training step at medium density by kind of kernel (GPU) or operator (CPU), all of them last."""
    config = training_config(plan, "shapes-md")
    clean_up(plan.where)
    step, _ = make_step(plan, config)
    now = settled(config, plan)
    for number in range(3 if plan.device == "cuda" else 1):
        step(number, now)
    synchronise(plan.where)
    gpu = plan.device == "cuda"
    with profile(activities=[ProfilerActivity.CUDA if gpu else ProfilerActivity.CPU]) as seen:
        step(number + 1, now)
        synchronise(plan.where)
    return grouped(kernels(seen) if gpu else operators(seen), KERNELS if gpu else OPERATORS)


def kernels(seen: profile) -> list[tuple[str, float]]:
    """Name and microseconds of everything the device ran."""
    return [
        (event.name, event.time_range.elapsed_us())
        for event in seen.events()
        if event.device_type.name == "CUDA" and not getattr(event, "is_user_annotation", False)
    ]


def operators(seen: profile) -> list[tuple[str, float]]:
    """Name and microseconds of every operator that did work of its own. Views and the like are not counted."""
    calls = []
    for event in seen.events():
        if event.name.startswith(("aten::", "scalor::", "mkldnn::")) and event.self_cpu_time_total >= 1:
            calls.append((event.name.split("::", 1)[1], event.self_cpu_time_total))
    return calls


def grouped(calls: Iterable[tuple[str, float]], patterns: dict[str, str]) -> list[KindRow]:
    counts: Counter[str] = Counter()
    times: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, took in calls:
        kind = kind_of(name, patterns)
        counts[kind] += 1
        times[kind][name] += took
    whole = sum(sum(names.values()) for names in times.values())
    found = [
        KindRow(kind, counts[kind], sum(names.values()), sum(names.values()) / max(whole, 1e-9), short(names))
        for kind, names in times.items()
    ]
    return [*sorted(found, key=lambda row: -row.us), KindRow("all", sum(counts.values()), whole, 1.0, "")]


def kind_of(name: str, patterns: dict[str, str]) -> str:
    return next((kind for kind, pattern in patterns.items() if re.search(pattern, name.lower())), "other")


def short(names: dict[str, float]) -> str:
    """The name that took longest, without its template arguments."""
    name = max(names, key=lambda name: names[name])
    return re.sub(r"<.*", "", name.removeprefix("void "))[:60]
