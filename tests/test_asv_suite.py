"""Every benchmark of the asv suite runs, at a tiny size, and is where asv looks for it."""

import inspect
import itertools
import json
from pathlib import Path

import pytest

from .benchmarks import asv_suite

SUITE = [c for _, c in inspect.getmembers(asv_suite, inspect.isclass) if hasattr(c, "setup")]
BENCHMARKS = [
    (benchmark, name, values)
    for benchmark in SUITE
    for name in dir(benchmark)
    if name.startswith(("time_", "peakmem_"))
    for values in itertools.product(*getattr(benchmark, "params", ()))
]


def name_of(value):
    return getattr(value, "__name__", None) or str(value).strip("()").replace("'", "")


def is_repeated(benchmark, name):
    """Whether a measure of memory runs the code that a measure of time runs anyway."""
    kind, _, what = name.partition("_")
    return kind == "peakmem" and hasattr(benchmark, f"time_{what}")


@pytest.mark.quarter
@pytest.mark.distinct
@pytest.mark.parametrize(
    ("benchmark", "name", "values"),
    [
        pytest.param(
            *case, id="-".join(map(name_of, case)),
            marks=[pytest.mark.slow] * is_repeated(*case[:2]),
        )
        for case in BENCHMARKS
    ],
)  # fmt: skip
def test_benchmark_runs(benchmark, name, values, monkeypatch):
    for size, tiny in asv_suite.TINY.items():
        if hasattr(benchmark, size):
            monkeypatch.setattr(benchmark, size, tiny)
    assert len(getattr(benchmark, "param_names", ())) == len(values)
    instance = benchmark()
    instance.setup(*values)
    getattr(instance, name)(*values)
    if hasattr(instance, "teardown"):
        instance.teardown(*values)


def test_nothing_is_left_out():
    """Kernels, both toys of the thesis, predictions; seconds and memory."""
    assert {name for _, name, _ in BENCHMARKS} >= {
        "time_local_step", "time_summary_step", "time_union_entropies", "time_inverses",
        "time_forward_backward", "time_coarse_entropies", "time_fit", "peakmem_fit",
        "time_method", "peakmem_method",
    }  # fmt: skip
    methods = [name for c in SUITE for name in vars(c) if not name.startswith("_")]
    known = {"setup", "teardown", "params", "param_names", "timeout", *asv_suite.TINY}
    assert all(name in known or name.startswith(("time_", "peakmem_")) for name in methods)


def test_configuration_points_at_the_suite():
    root = Path(__file__).parents[1]
    settings = json.loads((root / "asv.conf.json").read_text())
    assert root / settings["benchmark_dir"] == Path(asv_suite.__file__).parent
