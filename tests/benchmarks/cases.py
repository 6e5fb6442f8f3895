"""The cases of the studies: which data, how `DPMixtureVB` is set up on them, what is expected.

Three groups. ``recipes``: results that are known and have to come back. ``open``: cases that were
known to fail. ``new``: what no default was ever tuned on, among them data without any cluster, so
that over-tuning shows.

Only what the question itself fixes is set (a zero mean, the batches, where K starts); everything
else is left at its default. A case that is judged by ``accept=None`` has no right K: non-Gaussian
clusters are rightly split by the objective, and the gap to the oracle is what tells.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from sklearn_bnp import DPMixtureVB, GaussianObservation

from . import generators as g
from .generators import Dataset, gaussians


class Case(NamedTuple):
    name: str
    make: Callable[[int], Dataset]  # called with the seed
    accept: tuple[int, ...] | None  # the K that count as found; None: reported only
    target: str  # printed beside the figures
    params: dict[str, Any]  # of DPMixtureVB
    observation: dict[str, Any]  # of GaussianObservation
    slow: bool  # left out by --quick


def _case(
    name, make, accept=None, target="", *, observation=None, slow=False, **params
) -> tuple[str, Case]:
    return name, Case(name, make, accept, target, params, observation or {}, slow)


def _mixture(name, n_rows, n_features, n_components, separation, **shape) -> tuple[str, Case]:
    """A case of separated Gaussians that is found when K is right."""
    size = {"n_rows": n_rows, "n_features": n_features, "n_components": n_components}
    make = partial(gaussians, name=name, separation=separation, **size, **shape)
    return _case(name, make, (n_components,), str(n_components))


_ZERO_MEAN = {"zero_mean": True}
_DIAGONAL = {"covariance_type": "diag"}
_PATCHES_20K = partial(g.toy_patches, n_rows=20_000)
_1D = {"n_components": 5, "weight_concentration_prior": 10.0, "learning_method": "full"}

RECIPES = dict(
    [
        _case("asterisk", g.asterisk, (8,), "8, ARI 1"),
        _case("asterisk_b10", g.asterisk, (8,), "8, ARI 1", n_batches=10),
        _case("asterisk_b100", g.asterisk, (8,), "8, ARI 1", n_batches=100),
        _case("asterisk_from25", g.asterisk, (8,), "8, ARI 1", n_components=25),
        _case("patches20k", _PATCHES_20K, (8,), "8", observation=_ZERO_MEAN, batch_size=200),
        _case(
            *("patches20k_from25", _PATCHES_20K, (8,), "8"),
            observation=_ZERO_MEAN,
            batch_size=200,
            n_components=25,
        ),
        _case(
            *("patches100k", g.toy_patches, (8,), "8"),
            observation=_ZERO_MEAN,
            batch_size=1000,
            slow=True,
        ),
        _mixture("blobs", 2000, 2, 7, separation=8.0, condition=1.0),
        _case("one_gaussian_1d", g.one_gaussian_1d, (1,), "1", **_1D),
        _case("rare_1pct", partial(g.rare, share=0.01), (3,), "3, ARI 1"),
        _case("rare_005pct", partial(g.rare, share=0.0005), (3,), "3, ARI 1"),
        _case("random_a", g.random_problem, None, "gap 0"),
        _case("random_b", partial(g.random_problem, offset=1000), None, "gap 0"),
        _case("random_c", partial(g.random_problem, offset=2000), None, "gap 0", slow=True),
        _mixture("k30_d30", 6000, 30, 30, separation=10.0),
        _mixture("k5_d10_n150", 150, 10, 5, separation=8.0),
        _mixture("k3_d20_n100", 100, 20, 3, separation=12.0),
        _case("faithful", g.faithful_like, (2,), "2, ARI ~1"),
        _case("iris", g.iris, (3,), "3, ARI .90"),
        _case("wine", g.wine, (3,), "3, ARI .96"),
    ]
)

OPEN = dict(
    [
        _case("t_noise", g.t_noise, None, "4; was 9-11"),
        _case("outliers", g.outliers, (5, 6), "5 or 6; was 6-7"),
        _case("constant_duplicate", g.constant_and_duplicate, (4,), "4; was 3"),
        _mixture("k30_d2", 6000, 2, 30, separation=5.0),
        _case("iris_diag", g.iris, (3,), "3; was 4-6", observation=_DIAGONAL),
        _case("wine_diag", g.wine, (3,), "3; was 4-6", observation=_DIAGONAL),
        _case("identical_rows", g.identical_rows, None, "3, not 60"),
        _case("integers", g.integers, (3,), "3"),
        _case("likert", g.likert, None, "2"),
        _case("cancer", g.cancer, None, "2; was 5"),
        _case("digits_pca15", g.digits_pca, None, "10; was 24-30"),
    ]
)

NEW = dict(
    [
        _case("unequal", g.unequal, (6,), "6"),
        _mixture("elongated", 2500, 2, 5, separation=6.0, condition=400.0),
        _case("decades", g.decades, (5,), "5"),
        _mixture("overlap", 4000, 2, 4, separation=2.5, condition=4.0),
        _mixture("high_d", 1000, 100, 5, separation=15.0, condition=4.0),
        _mixture("many_d1", 5000, 1, 15, separation=5.0),
        _mixture("tiny_k2", 50, 2, 2, separation=8.0),
        _case("moons", g.moons, None, "few"),
        _case("null_2000_d10", partial(g.null_gaussian, n_rows=2000, n_features=10), (1,), "1"),
        _case("null_50_d3", partial(g.null_gaussian, n_rows=50, n_features=3), (1,), "1"),
        _case("null_30_d50", partial(g.null_gaussian, n_rows=30, n_features=50), (1,), "1"),
        _case("null_uniform", g.null_uniform, None, "few"),
        _case("digits", g.digits, None, "10"),
    ]
)

GROUPS: dict[str, dict[str, Case]] = {"recipes": RECIPES, "open": OPEN, "new": NEW}
CASES: dict[str, Case] = {**RECIPES, **OPEN, **NEW}


def select(names: list[str] | None, quick: bool = False) -> list[Case]:
    """The cases of that name or group, all by default; ``quick`` leaves out the slow ones."""
    chosen: dict[str, Case] = {}
    for name in names or GROUPS:
        if name not in GROUPS and name not in CASES:
            raise SystemExit(f"no case or group {name!r}; there are {[*GROUPS, *CASES]}")
        chosen |= GROUPS[name] if name in GROUPS else {name: CASES[name]}
    return [case for case in chosen.values() if not (quick and case.slow)]


def build(case: Case, seed: int, **params) -> DPMixtureVB:
    """The estimator of a case; ``params`` come last."""
    settings = {
        "observation": GaussianObservation(**case.observation),
        "random_state": seed,
        **case.params,
        **params,
    }
    return DPMixtureVB(**settings)
