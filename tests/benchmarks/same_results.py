"""Exact results of small fits, so that two trees of the package can be compared bit by bit.

Each case is a small fit by public names of ``sklearn_bnp`` alone: internals may move. Of each are
recorded the number of components, the bound, the number of laps, and hashes of the bits of the
labels, of every fitted attribute, and of what the methods say of the data. Seconds are left out.

Write the results of one tree, and compare another one with them on the same machine. Processors and
versions of NumPy and SciPy round in ways of their own, so results of another machine say little.

    python tests/benchmarks/same_results.py --seeds 2 --write baseline.json
    python tests/benchmarks/same_results.py --compare baseline.json
    python tests/benchmarks/same_results.py --compare baseline.json --only hmm_ --tolerant

The first line that is printed says which copy of the package is measured: that of ``PYTHONPATH``,
or the installed one. The exit status is 0 only if every case is the same in all bits; with
``--tolerant``, if numbers of components and labels are the same. Cases that only one of the two
trees has are named, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import pickle
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import sklearn_bnp
from sklearn_bnp import (
    HDPHMMVB,
    AutoregressiveObservation,
    BernoulliObservation,
    Birth,
    CategoricalObservation,
    ColumnObservation,
    Delete,
    DPMixtureVB,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    Merge,
    MultinomialObservation,
    PoissonObservation,
    StateBirth,
    StateDelete,
    StateMerge,
    TopicBirth,
    TopicDelete,
)

# The shares of the kinds of rows in the data. Kinds overlap, and have heavier tails than any of the
# likelihoods: proposals are then accepted and refused for many laps.
SHARES = (0.24, 0.18, 0.16, 0.12, 0.1, 0.08, 0.07, 0.05)
N_KINDS = len(SHARES)


class Fit(NamedTuple):
    """A fitted model, the data that its methods are asked about, and how these are called."""

    model: Any
    X: Any
    named: dict[str, Any]


CASES: dict[str, Callable[[int], Fit]] = {}


def case(*variants):
    """Decorator that enters a function of the seed, and of a variant if there are any, as cases."""

    def enter(function):
        if not variants:
            CASES[function.__name__] = function
        for variant in variants:
            CASES[f"{function.__name__}/{variant}"] = partial(function, variant=variant)
        return function

    return enter


# ------------------------------------------------------------------ rows


def clouds(rng, labels):
    """Tilted clouds; columns have different scales, far from the origin."""
    centers = 3.5 * rng.normal(size=(N_KINDS, 3))
    tilts = np.eye(3) + 0.4 * rng.normal(size=(N_KINDS, 3, 3))
    noise = rng.standard_t(5, size=(len(labels), 3))
    x = centers[labels] + np.einsum("nij,nj->ni", tilts[labels], noise)
    return x * [1.0, 20.0, 0.05] + [7.0, -300.0, 0.2]


def balls(rng, labels):
    """Round clouds of different sizes."""
    centers, sizes = 3.5 * rng.normal(size=(N_KINDS, 3)), rng.uniform(0.5, 1.5, N_KINDS)
    noise = rng.standard_t(5, size=(len(labels), 3))
    return centers[labels] + sizes[labels, np.newaxis] * noise + 5.0


def rounded(rng, labels):
    """Clouds whose columns were recorded to a step."""
    step = np.array([0.5, 10.0, 0.025])
    return np.round(clouds(rng, labels) / step) * step


def lattice(rng, labels):
    """Clouds recorded to a step in each of two directions, which are not those of the columns."""
    x = np.round(2.0 * clouds(rng, labels)[:, :2] / [1.0, 20.0]) / 2.0
    return x @ np.array([[0.8, 0.6], [-0.6, 0.8]])


def flat(rng, labels):
    """Clouds about the origin, which differ in their directions alone."""
    sizes = np.exp(1.2 * rng.normal(size=(N_KINDS, 6)))
    return sizes[labels] * rng.standard_t(6, size=(len(labels), 6))


def switches(rng, labels):
    """Patterns of binary columns, which fade in some rows."""
    p = rng.beta(0.3, 0.3, size=(N_KINDS, 12))[labels]
    p += rng.beta(0.5, 2.0, size=(len(labels), 1)) * (0.5 - p)
    return (rng.random(p.shape) < p).astype(float)


def tallies(rng, labels):
    """Patterns of columns of counts, whose rates vary."""
    rates = 0.2 + rng.gamma(0.7, 5.0, size=(N_KINDS, 6))
    return rng.poisson(rates[labels] * rng.gamma(12.0, 1.0 / 12.0, size=(len(labels), 6)))


def bags(rng, labels):
    """Bags of 15 to 40 words of fifteen types."""
    topics = rng.dirichlet(np.full(15, 0.4), size=N_KINDS)
    shares = np.array([rng.dirichlet(60.0 * topics[k] + 0.05) for k in labels])
    return rng.multinomial(rng.integers(15, 41, size=len(labels)), shares)


N_ANSWERS = [2, 3, 4, 5, 3, 4]


def answers(rng, labels):
    """Patterns of columns of categories."""
    columns = []
    for size in N_ANSWERS:
        edges = np.cumsum(rng.dirichlet(np.full(size, 0.4), size=N_KINDS), axis=1)[:, :-1]
        columns.append((rng.random((len(labels), 1)) > edges[labels]).sum(axis=1))
    return np.column_stack(columns)


def table(rng, labels):
    """Numbers, categories and counts, one column beside another."""
    numbers, codes, counts = clouds(rng, labels), answers(rng, labels), tallies(rng, labels)
    return np.column_stack([numbers[:, 0], codes[:, 2], counts[:, :2], numbers[:, 1], codes[:, 3]])


def swings(rng, labels):
    """Rows that each turn or pull the row before them in a way of its kind."""
    angles, intercepts = np.linspace(0.2, 2.6, N_KINDS), rng.normal(size=(N_KINDS, 2))
    turns = [0.95 * np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
    noise = rng.uniform(0.1, 0.4, N_KINDS)
    x = np.zeros((len(labels), 2))
    for t in range(1, len(x)):
        k = labels[t]
        x[t] = turns[k] @ x[t - 1] + intercepts[k] + noise[k] * rng.standard_t(5, size=2)
    return x * [1.0, 20.0] + [7.0, -300.0]


def columns(covariance_type="full"):
    """The likelihood of `table`."""
    return ColumnObservation(
        [
            ("size", GaussianObservation(covariance_type), [4, 0]),
            ("kind", CategoricalObservation(n_categories=[4, 5]), [1, 5]),
            ("tally", "poisson", slice(2, 4)),
        ]
    )


# Name -> how rows are drawn given the kind of each, and the likelihood that suits them.
FAMILIES = {
    "full": (clouds, "gaussian"),
    "diag": (balls, GaussianObservation("diag")),
    "spherical": (balls, GaussianObservation("spherical")),
    "full_zero_mean": (flat, GaussianObservation("full", zero_mean=True)),
    "diag_zero_mean": (flat, GaussianObservation("diag", zero_mean=True)),
    "full_rounded": (rounded, GaussianObservation("full", reg_covar=1e-4)),
    "full_lattice": (lattice, "gaussian"),
    "fixed_variance": (balls, "fixed_variance_gaussian"),
    "given_variance": (
        balls,
        FixedVarianceGaussianObservation(
            variance=[0.5, 1.0, 2.0], mean_prior=[5.0, 5.0, 4.0], mean_variance_prior=9.0
        ),
    ),
    "bernoulli": (switches, "bernoulli"),
    "bernoulli_prior": (switches, BernoulliObservation(prior=(np.linspace(0.3, 2.0, 12), 0.7))),
    "poisson": (tallies, "poisson"),
    "poisson_prior": (tallies, PoissonObservation(prior=(np.linspace(0.5, 2.0, 6), 0.3))),
    "multinomial": (bags, "multinomial"),
    "multinomial_prior": (bags, MultinomialObservation(prior=np.linspace(0.1, 1.5, 15))),
    "categorical": (answers, CategoricalObservation(n_categories=N_ANSWERS)),
    "columns": (table, columns()),
    "columns_diag": (table, columns("diag")),
    "autoregressive": (swings, "autoregressive"),
    "autoregressive_2": (swings, AutoregressiveObservation(2, reg_covar=1e-4)),
}
LEADING = ("full", "diag", "spherical", "fixed_variance", "bernoulli", "poisson", "multinomial",
           "categorical", "columns")  # fmt: skip
OF_MIXTURES = [name for name in FAMILIES if not name.startswith("autoregressive")]


def likelihood(family):
    """An observation model, or its name, that no other model has."""
    return copy.deepcopy(FAMILIES[family][1])


def kinds(rng, n_rows):
    """Kinds of rows, in random order."""
    return rng.choice(N_KINDS, size=n_rows, p=SHARES)


def rows(family, seed, n_rows=600):
    """Rows of a mixture and their kinds."""
    rng = np.random.default_rng(seed)
    labels = kinds(rng, n_rows)
    return FAMILIES[family][0](rng, labels).astype(float), labels


def holed(x, seed, share=0.15):
    """A copy of rows in which entries are missing, and one row altogether."""
    x = np.where(np.random.default_rng(100 + seed).random(x.shape) < share, np.nan, x)
    x[17] = np.nan
    return x


def weights(n, seed):
    """Weights, of which some are 0 and most are no whole numbers."""
    rng = np.random.default_rng(200 + seed)
    return np.where(rng.random(n) < 0.1, 0.0, rng.gamma(2.0, 0.7, size=n))


def one_hot(labels, blur=0.0):
    """Responsibilities (n, K), a share ``blur`` of which is everywhere."""
    return (1.0 - blur) * np.eye(N_KINDS)[labels] + blur / N_KINDS


def means(X, labels):
    """Means of the rows of each kind, or of all rows where there are none."""
    there = [X[labels == k] if np.any(labels == k) else X for k in range(N_KINDS)]
    return np.array([x.mean(axis=0) for x in there])


def grouped(family, seed, n_documents=30, n_rows=20):
    """Rows of documents that mix kinds, the document of each row, and its kind."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_documents), n_rows))
    shares = rng.dirichlet(4.0 * np.array(SHARES), size=n_documents)
    labels = np.array([rng.choice(N_KINDS, p=shares[d]) for d in groups])
    return FAMILIES[family][0](rng, labels).astype(float), groups, labels


def words(seed, n_documents=120, n_types=60, n_topics=8, longest=70):
    """Counts of words of documents that mix topics, and the topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_types, 0.1), size=n_topics)
    shares = rng.dirichlet(np.full(n_topics, 0.3), size=n_documents)
    lengths = rng.integers(10, longest, size=n_documents)
    return rng.multinomial(lengths, shares @ topics).astype(float), topics


def chains(family, seed, n_sequences=8, length=90, stay=0.93):
    """Sequences of unequal lengths, a list, and all their kinds in one array."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(length // 2, 3 * length // 2, size=n_sequences)
    labels = kinds(rng, lengths.sum())
    for t in np.flatnonzero(rng.random(len(labels)) < stay):
        labels[t] = labels[max(t - 1, 0)]
    x = FAMILIES[family][0](rng, labels).astype(float)
    return np.split(x, np.cumsum(lengths)[:-1]), labels


# ------------------------------------------------------------------ fits and streams


def fitted(model, X, sample_weight=None, **named):
    """The model fitted to X."""
    weight = {} if sample_weight is None else {"sample_weight": sample_weight}
    return Fit(model.fit(X, **named, **weight), X, named)


def visited(model, batches, order, X, *, by_name=True, **named):
    """The model after visits of batches in this order; each holds arguments of `partial_fit`."""
    for i in order:
        name = {"batch_id": i} if by_name else {}
        model.partial_fit(**batches[i], **name)
    return Fit(model, X, named)


def epochs(n_epochs, n_batches):
    """The order of visits that goes over the batches again and again."""
    return list(range(n_batches)) * n_epochs


def cut(X, n_batches, sample_weight=None):
    """Rows, documents or sequences as batches."""
    parts = np.array_split(np.arange(X.shape[0] if hasattr(X, "shape") else len(X)), n_batches)
    batches = [{"X": [X[i] for i in p] if isinstance(X, list) else X[p]} for p in parts]
    if sample_weight is not None:
        for batch, part in zip(batches, parts, strict=True):
            batch["sample_weight"] = sample_weight[part]
    return batches


# ------------------------------------------------------------------ mixtures


def mixture(family, seed, *args, **settings):
    return DPMixtureVB(*args, observation=likelihood(family), random_state=seed, **settings)


@case(*OF_MIXTURES)
def mixture_births(seed, variant):
    """Births from one component, in one batch."""
    X, _ = rows(variant, seed)
    return fitted(mixture(variant, seed, n_batches=1), X)


@case(*LEADING)
def mixture_births_in_batches(seed, variant):
    """Births from one component, in five batches."""
    X, _ = rows(variant, seed, 800)
    return fitted(mixture(variant, seed, n_batches=5), X)


@case(*LEADING)
def mixture_fixed(seed, variant):
    """A fixed number of components under a finite Dirichlet distribution."""
    X, _ = rows(variant, seed)
    model = mixture(variant, seed, 7, allocation="dirichlet", proposals=None, max_iter=15)
    return fitted(model.set_params(n_batches=3), X)


@case("full", "diag", "bernoulli", "poisson", "multinomial", "columns")
def mixture_stochastic(seed, variant):
    """Stochastic steps with a fixed number of components."""
    X, _ = rows(variant, seed)
    model = mixture(variant, seed, 6, learning_method="stochastic", n_batches=5, max_iter=6)
    return fitted(model, X)


@case("full", "bernoulli")
def mixture_stochastic_start(seed, variant):
    """Stochastic steps from given responsibilities, whose order is kept."""
    X, labels = rows(variant, seed)
    model = mixture(variant, seed, learning_method="stochastic", n_batches=4, max_iter=3)
    return fitted(model.set_params(init_params=one_hot(labels, 0.3)), X)


@case("full", "categorical")
def mixture_full_batch(seed, variant):
    """One batch of everything, by its own learning method, from more components than needed."""
    X, _ = rows(variant, seed)
    return fitted(mixture(variant, seed, 9, learning_method="full"), X)


@case("dirichlet", "dirichlet_1", "dp_8")
def mixture_allocation(seed, variant):
    """Births under other priors of the weights."""
    X, _ = rows("full", seed)
    family, _, concentration = variant.partition("_")
    concentration = float(concentration) if concentration else None
    prior = {"allocation": family, "weight_concentration_prior": concentration}
    return fitted(mixture("full", seed, n_batches=2, **prior), X)


def starts(X, labels):
    """How a mixture of Gaussians may start."""
    return {
        "k-means++": {"n_components": N_KINDS},
        "random": {"n_components": N_KINDS, "init_params": "random"},
        "responsibilities": {"init_params": one_hot(labels, 0.2)},
        "callable": {"init_params": lambda x, K, rng: rng.dirichlet(np.ones(K + 3), size=len(x))},
        "means": {"n_components": N_KINDS, "means_init": means(X, labels)},
    }


@case("k-means++", "random", "responsibilities", "callable", "means")
def mixture_start(seed, variant):
    """Each way to start, with proposals."""
    X, labels = rows("diag", seed)
    return fitted(mixture("diag", seed, n_batches=3, **starts(X, labels)[variant]), X)


@case("random", "responsibilities", "means")
def mixture_start_kept(seed, variant):
    """Each way to start with a fixed number of components, whose order is kept if it was given."""
    X, labels = rows("full", seed)
    start = starts(X, labels)[variant]
    return fitted(mixture("full", seed, proposals=None, max_iter=8, n_batches=2, **start), X)


@case(
    "full_zero_mean",
    "spherical",
    "fixed_variance",
    "bernoulli",
    "poisson",
    "multinomial",
    "categorical",
    "columns",
)
def mixture_start_means(seed, variant):
    """Given means of other likelihoods; of categories, which have none, rows."""
    X, labels = rows(variant, seed)
    given = X[:N_KINDS] if variant in ("categorical", "columns") else means(X, labels)
    model = mixture(variant, seed, N_KINDS, means_init=given, proposals=None)
    return fitted(model.set_params(max_iter=8), X)


@case("full", "means")
def mixture_one_global_step(seed, variant):
    """One global step on given responsibilities, and a fit that makes no lap from given means."""
    X, labels = rows("full", seed)
    start = starts(X, labels)["responsibilities" if variant == "full" else variant]
    return fitted(mixture("full", seed, proposals=None, max_iter=0, **start), X)


@case("full", "spherical", "poisson", "categorical")
def mixture_weights(seed, variant):
    """Rows have weights, of which some are 0."""
    X, _ = rows(variant, seed)
    return fitted(mixture(variant, seed, n_batches=2), X, weights(len(X), seed))


@case(
    "full", "diag", "spherical", "fixed_variance", "bernoulli", "poisson", "categorical", "columns"
)
def mixture_missing(seed, variant):
    """Entries are missing, in one batch."""
    X, _ = rows(variant, seed)
    return fitted(mixture(variant, seed, n_batches=1), holed(X, seed))


@case("full", "diag", "columns")
def mixture_missing_in_batches(seed, variant):
    """Entries are missing, in batches, and rows have weights."""
    X, _ = rows(variant, seed)
    return fitted(mixture(variant, seed, n_batches=4), holed(X, seed), weights(len(X), seed))


@case("bernoulli", "poisson", "multinomial")
def mixture_sparse(seed, variant):
    """Sparse rows, in batches."""
    X, _ = rows(variant, seed)
    return fitted(mixture(variant, seed, n_batches=3), sparse.csr_matrix(X))


@case("full", "bernoulli", "columns", "sparse")
def mixture_single_precision(seed, variant):
    """Rows in single precision."""
    family = "multinomial" if variant == "sparse" else variant
    X = rows(family, seed)[0].astype(np.float32)
    return fitted(mixture(family, seed), sparse.csr_matrix(X) if variant == "sparse" else X)


@case("frame", "memory_map", "integers", "by_columns")
def mixture_data(seed, variant):
    """A frame with names of colours, a memory map, whole numbers, and rows stored by columns."""
    rng = np.random.default_rng(seed)
    if variant == "frame":
        import pandas

        X, _ = rows("columns", seed)
        frame = pandas.DataFrame(X, columns=["a", "kind", "n", "m", "b", "colour"])
        frame["colour"] = np.array(["red", "green", "blue", "grey", "black"])[X[:, 5].astype(int)]
        frame.loc[rng.random(len(X)) < 0.1, "colour"] = None
        return fitted(mixture("columns", seed, n_batches=2), frame)
    X, _ = rows("full", seed)
    if variant == "memory_map":
        with tempfile.TemporaryFile() as file:
            X.tofile(file)
            return fitted(mixture("full", seed, n_batches=3), np.memmap(file, float, shape=X.shape))
    X = (
        np.round(X * [1.0, 1.0, 20.0]).astype(int)
        if variant == "integers"
        else np.asfortranarray(X)
    )
    return fitted(mixture("full", seed, n_batches=2), X)


@case(1, 2, 3)
def mixture_l_sparse(seed, variant):
    """At most so many components share a row."""
    X, _ = rows("full", seed)
    return fitted(mixture("full", seed, 8, n_nonzero_resp=variant, n_batches=2), X)


PROPOSALS = {
    "adopt": (Birth(strategy="adopt"), "merge", "delete"),
    "small_births": (Birth(n_seeds=4, max_rows=60, max_targets=1, min_rows=8), Merge(), Delete()),
    "births_alone": "birth",
    "merges_alone": ("merge",),
    "pairs_alone": (Merge(max_members=2, pairs_per_component=1),),
    "deletes_alone": (Delete(max_targets=2, n_absorbers=2, n_steps=2),),
    "none": None,
}


@case(*PROPOSALS)
def mixture_proposals(seed, variant):
    """Other proposals, in batches; those that only take away start from more than is needed."""
    X, _ = rows("full", seed, 800)
    K = 1 if variant in ("adopt", "small_births", "births_alone") else 12
    proposals = copy.deepcopy(PROPOSALS[variant])
    return fitted(mixture("full", seed, K, proposals=proposals, n_batches=4), X)


@case("diag", "multinomial")
def mixture_adopted(seed, variant):
    """Births of the other strategy in one batch."""
    X, _ = rows(variant, seed)
    proposals = (Birth(strategy="adopt"), "merge", "delete")
    return fitted(mixture(variant, seed, proposals=proposals), X)


SETTINGS = {
    "at_most_3": {"max_components": 3},
    "n_init": {"n_init": 3, "n_components": 4, "proposals": None},
    "tol_0": {"tol": 0.0, "max_iter": 12},
    "batch_size": {"batch_size": 70},
    "decay": {
        "learning_method": "stochastic",
        "learning_decay": 0.55,
        "learning_offset": 1.0,
        "n_components": 5,
        "batch_size": 50,
        "max_iter": 4,
    },
}


@case(*SETTINGS)
def mixture_settings(seed, variant):
    """Other settings of mixtures of Gaussians."""
    X, _ = rows("full", seed)
    return fitted(mixture("full", seed, **SETTINGS[variant]), X)


@case("births", "merges", "adopt")
def mixture_many(seed, variant):
    """Forty clusters in the plane, so many that only neighbours are compared."""
    rng = np.random.default_rng(seed)
    X = 6.0 * rng.normal(size=(40, 2))[rng.integers(40, size=1500)] + 0.5 * rng.normal(
        size=(1500, 2)
    )
    settings = {
        "births": {"n_batches": 3},
        "merges": {"n_components": 60, "proposals": ("merge", "delete"), "max_iter": 10},
        "adopt": {"proposals": (Birth(strategy="adopt"), "merge"), "max_iter": 15, "n_batches": 3},
    }
    return fitted(DPMixtureVB(observation="gaussian", random_state=seed, **settings[variant]), X)


@case("full", "poisson")
def mixture_large(seed, variant):
    """More rows than a batch has by default."""
    X, _ = rows(variant, seed, 9000)
    return fitted(mixture(variant, seed, 4, max_iter=6), X)


@case("data", "given")
def mixture_prior(seed, variant):
    """Priors of Gaussians that are not found from the data."""
    X, _ = rows("full", seed)
    prior = "data" if variant == "data" else np.diag(X.var(axis=0))
    observation = GaussianObservation(
        covariance_prior=prior, mean_precision_prior=0.1, degrees_of_freedom_prior=9.0,
        mean_prior=X.mean(axis=0) + X.std(axis=0), resolution=None,
    )  # fmt: skip
    return fitted(DPMixtureVB(observation=observation, random_state=seed), X)


@case("complete", "missing")
def mixture_warm_start(seed, variant):
    """A fit that goes on from another one, on more data, which may have holes."""
    X, _ = rows("full", seed)
    model = mixture("full", seed, warm_start=True, n_batches=2).fit(X[:200])
    return fitted(model, X if variant == "complete" else holed(X, seed))


@case("full", "missing", "multinomial", "columns")
def mixture_threads(seed, variant):
    """Two threads, which change nothing."""
    family = "full" if variant == "missing" else variant
    X, _ = rows(family, seed, 800)
    X = holed(X, seed) if variant == "missing" else X
    return fitted(mixture(family, seed, n_jobs=2, n_batches=2), X)


@case(*LEADING)
def mixture_stream(seed, variant):
    """Batches that are visited again, known by their content."""
    X, _ = rows(variant, seed)
    order = epochs(3, 4)
    return visited(mixture(variant, seed), cut(X, 4), order, X, by_name=False)


@case("full", "poisson")
def mixture_stream_without_memory(seed, variant):
    """A stream that never ends: no batch is remembered."""
    X, _ = rows(variant, seed, 800)
    model = mixture(variant, seed, memoize=False)
    return visited(model, cut(X, 8), range(8), X)


@case("memoized", "forgetful", "adopt")
def mixture_stream_sorted(seed, variant):
    """Data come sorted: one kind after the other."""
    X, labels = rows("full", seed, 800)
    X = X[np.argsort(labels, kind="stable")]
    model = mixture("full", seed, memoize=variant != "forgetful")
    if variant == "adopt":
        model.set_params(proposals=(Birth(strategy="adopt"), "merge", "delete"))
    return visited(model, cut(X, 8), epochs(1 if variant == "forgetful" else 2, 8), X)


def goes_on(model, seed, variant):
    """What a stream of four batches may meet on its way; see `mixture_stream_change`."""
    X, _ = rows("full", seed, 800)
    batches, order = cut(X, 6), [*epochs(2, 4), 0]
    visited(model, batches, order, X)
    if variant == "new_batches":
        order = [4, 1, 5, *epochs(2, 6)]
    elif variant == "other_rows":
        batches, order = cut(X[::-1], 4), epochs(2, 4)
    elif variant == "holes":
        batches, order = cut(holed(X, seed), 6), epochs(2, 6)
    elif variant == "pickled":
        model, order = pickle.loads(pickle.dumps(model)), epochs(2, 4)
    elif variant == "settings":
        model.set_params(n_nonzero_resp=2, max_components=4)
        order = epochs(2, 6)
    return visited(model, batches, order, X)


@case("new_batches", "other_rows", "holes", "pickled", "settings")
def mixture_stream_change(seed, variant):
    """New batches in the middle of a lap, other rows under old names, holes, a pickle, settings."""
    return goes_on(mixture("full", seed, 3), seed, variant)


@case("diag_zero_mean", "spherical", "fixed_variance", "bernoulli", "categorical", "columns")
def mixture_stream_holes(seed, variant):
    """The first entries are missing when components have been found."""
    X, _ = rows(variant, seed)
    late = holed(X, seed)
    return visited(
        mixture(variant, seed), [*cut(X, 3), *cut(late, 3)], [0, 1, 2, 3, 4, 5] * 2, late
    )


@case("new_batches", "pickled")
def mixture_stream_adopted(seed, variant):
    """The same with components on trial, which adopt rows of later batches."""
    proposals = (Birth(strategy="adopt"), "merge", "delete")
    return goes_on(mixture("full", seed, proposals=proposals), seed, variant)


@case("full", "spherical")
def mixture_stream_weights(seed, variant):
    """Batches whose rows have weights."""
    X, _ = rows(variant, seed)
    return visited(mixture(variant, seed), cut(X, 4, weights(len(X), seed)), epochs(3, 4), X)


@case("sparse", "fixed", "threads")
def mixture_stream_variant(seed, variant):
    """Sparse batches, a fixed number of components, and two threads."""
    X, _ = rows("multinomial", seed)
    X = sparse.csr_matrix(X) if variant == "sparse" else X
    settings = {
        "sparse": {},
        "fixed": {"n_components": 6, "proposals": None},
        "threads": {"n_jobs": 2},
    }
    model = mixture("multinomial", seed, **settings[variant])
    return visited(model, cut(X, 4), epochs(3, 4), X)


@case("full", "poisson")
def mixture_stream_after_fit(seed, variant):
    """Batches add to the data of a fit."""
    X, _ = rows(variant, seed, 800)
    model = mixture(variant, seed, n_batches=2).fit(X[:300])
    return visited(model, cut(X[300:], 3), epochs(2, 3), X)


@case("full", "multinomial")
def mixture_stream_stochastic(seed, variant):
    """Stochastic steps on batches, of a population that is larger."""
    X, _ = rows(variant, seed)
    model = mixture(variant, seed, 5, learning_method="stochastic", total_samples=2000)
    return visited(model, cut(X, 5), epochs(2, 5), X)


# ------------------------------------------------------------------ topics of words


def topics(seed, *args, **settings):
    return HDPTopicVB(*args, random_state=seed, **settings)


@case("hdp", "dirichlet")
def topics_births(seed, variant):
    """Births from one topic, in one batch."""
    X, _ = words(seed)
    return fitted(topics(seed, allocation=variant, n_batches=1), X)


@case("hdp", "dirichlet")
def topics_births_in_batches(seed, variant):
    """Births from one topic, in five batches of sparse rows."""
    X, _ = words(seed)
    return fitted(topics(seed, allocation=variant, n_batches=5), sparse.csr_matrix(X))


@case("random", "k-means++", "anchor", "topics", "responsibilities")
def topics_start(seed, variant):
    """Each way to start, with a fixed number of topics under a finite Dirichlet distribution."""
    X, truth = words(seed)
    given = {"topics": truth}
    if variant == "responsibilities":
        n_entries = np.count_nonzero(X)
        given[variant] = np.random.default_rng(seed).dirichlet(np.full(8, 0.5), size=n_entries)
    model = topics(seed, 8, init_params=given.get(variant, variant), allocation="dirichlet")
    return fitted(model.set_params(proposals=None, max_iter=15, n_batches=2), X)


@case("anchor", "k-means++")
def topics_start_of_births(seed, variant):
    """Starts that proposals go on from."""
    X, _ = words(seed)
    return fitted(topics(seed, 8, init_params=variant, n_batches=2), X)


TOPIC_SETTINGS = {
    "full_batch": {"learning_method": "full"},
    "l_sparse_1": {"n_nonzero_resp": 1},
    "l_sparse_3": {"n_nonzero_resp": 3, "n_components": 8},
    "cold": {"warm_start_docs": False, "doc_restarts": 2, "n_batches": 2},
    "priors": {
        "topic_word_prior": np.linspace(0.05, 0.5, 60),
        "doc_topic_prior": 0.4,
        "weight_concentration_prior": 6.0,
    },
    "proposals": {
        "proposals": (
            TopicBirth(n_seeds=4, n_first_seeds=8, max_targets=2),
            TopicDelete(max_targets=2, n_absorbers=3),
            Merge(max_members=2),
        ),
        "n_batches": 3,
    },
    "deletes_alone": {"proposals": ("delete",), "n_components": 12, "n_batches": 2},
    "merges_alone": {"proposals": ("merge",), "n_components": 12, "n_batches": 2},
    "at_most_4": {"max_components": 4, "n_batches": 2},
    "threads": {"n_jobs": 2, "n_batches": 2, "max_iter": 4},
    "stochastic": {
        "learning_method": "stochastic",
        "n_components": 7,
        "n_batches": 5,
        "max_iter": 6,
    },
}


@case(*TOPIC_SETTINGS)
def topics_settings(seed, variant):
    """Other settings of topics of words."""
    X, _ = words(seed)
    return fitted(topics(seed, **copy.deepcopy(TOPIC_SETTINGS[variant])), X)


@case("births", "merges")
def topics_many(seed, variant):
    """Twenty topics; or fifty to begin with, so many that only neighbours are compared."""
    X, _ = words(seed, 250, 150, 20, longest=250)
    settings = {"births": {}, "merges": {"n_components": 50, "proposals": ("merge", "delete")}}
    return fitted(topics(seed, n_batches=2, max_iter=12, **settings[variant]), X)


@case("words", "rows")
def topics_stochastic_start(seed, variant):
    """Stochastic steps from given responsibilities, whose order is kept."""
    rng = np.random.default_rng(seed)
    settings = {"learning_method": "stochastic", "n_batches": 4, "max_iter": 3}
    if variant == "rows":
        X, groups, labels = grouped("diag", seed)
        model = topics_of("diag", seed, init_params=one_hot(labels, 0.3), **settings)
        return fitted(model, X, groups=groups)
    X, _ = words(seed)
    resp = rng.dirichlet(np.full(8, 0.5), size=np.count_nonzero(X))
    return fitted(topics(seed, init_params=resp, **settings), X)


@case("weights", "halves")
def topics_weights(seed, variant):
    """Documents have weights; or words are halves of tokens."""
    X, _ = words(seed)
    if variant == "halves":
        return fitted(topics(seed, n_batches=2), 0.5 * X)
    return fitted(topics(seed, n_batches=2), X, weights(len(X), seed))


@case("hdp", "dirichlet", "weights", "anchor", "by_content")
def topics_stream(seed, variant):
    """Batches of documents that are visited again."""
    X, _ = words(seed)
    allocation = "dirichlet" if variant == "dirichlet" else "hdp"
    start = {"n_components": 5, "init_params": "anchor"} if variant == "anchor" else {}
    weight = weights(len(X), seed) if variant == "weights" else None
    model, by_name = topics(seed, allocation=allocation, **start), variant != "by_content"
    return visited(model, cut(X, 4, weight), epochs(3, 4), X, by_name=by_name)


@case("new_batches", "after_fit", "pickled")
def topics_stream_change(seed, variant):
    """New batches in the middle of a lap, batches that add to a fit, and a pickle."""
    X, _ = words(seed, 150)
    model, batches = topics(seed, n_batches=2), cut(X, 6)
    if variant == "after_fit":
        model.fit(X[:60])
        return visited(model, batches, [3, 4, 5, 3, 4, 5], X)
    visited(model, batches, [*epochs(2, 4), 0], X)
    if variant == "pickled":
        model = pickle.loads(pickle.dumps(model))
    return visited(model, batches, [4, 1, 5, *epochs(2, 6)], X)


@case("forgetful", "memory")
def topics_stream_stochastic(seed, variant):
    """Stochastic steps on batches of documents."""
    X, _ = words(seed)
    model = topics(seed, 6, learning_method="stochastic", total_samples=500, proposals=None)
    model.set_params(memoize=variant == "memory")
    return visited(model, cut(X, 5), epochs(2, 5), X)


# ------------------------------------------------------------------ topics of rows


def topics_of(family, seed, *args, **settings):
    return HDPTopicVB(*args, observation=likelihood(family), random_state=seed, **settings)


@case(*LEADING[:-3], "categorical", "columns")
def admixture_births(seed, variant):
    """Births from one topic of rows in documents, in one batch."""
    X, groups, _ = grouped(variant, seed)
    return fitted(topics_of(variant, seed, n_batches=1), X, groups=groups)


@case("full", "poisson", "columns")
def admixture_births_in_batches(seed, variant):
    """Births from one topic of rows in documents, in four batches."""
    X, groups, _ = grouped(variant, seed)
    return fitted(topics_of(variant, seed, n_batches=4), X, groups=groups)


@case("full", "diag", "poisson")
def admixture_missing(seed, variant):
    """Entries of rows in documents are missing."""
    X, groups, _ = grouped(variant, seed)
    return fitted(topics_of(variant, seed, n_batches=2), holed(X, seed), groups=groups)


ADMIXTURE_SETTINGS = {
    "dirichlet": {"allocation": "dirichlet", "n_components": 6, "proposals": None, "n_batches": 2},
    "stochastic": {
        "learning_method": "stochastic",
        "n_components": 6,
        "n_batches": 5,
        "max_iter": 5,
        "init_params": "k-means++",
    },
    "l_sparse": {"n_nonzero_resp": 2, "n_components": 7},
    "threads": {"n_jobs": 2, "n_batches": 2, "max_iter": 4},
}


@case(*ADMIXTURE_SETTINGS, "weights", "responsibilities")
def admixture_settings(seed, variant):
    """Other settings of topics of rows."""
    X, groups, labels = grouped("full", seed)
    model = topics_of("full", seed, **ADMIXTURE_SETTINGS.get(variant, {}))
    weight = weights(30, seed)[groups] if variant == "weights" else None
    if variant == "responsibilities":
        model.set_params(init_params=one_hot(labels, 0.1), proposals=None)
    return fitted(model, X, weight, groups=groups)


@case("full", "bernoulli", "stochastic", "holes")
def admixture_stream(seed, variant):
    """Batches of documents of rows that are visited again."""
    family = "bernoulli" if variant == "bernoulli" else "full"
    X, groups, _ = grouped(family, seed)
    model = topics_of(family, seed)
    if variant == "stochastic":
        model.set_params(learning_method="stochastic", n_components=6, memoize=False)
    parts = [groups % 3 == i for i in range(3)]
    late = holed(X, seed) if variant == "holes" else X
    batches = [{"X": X[p], "groups": groups[p]} for p in parts]
    batches += [{"X": late[p], "groups": groups[p]} for p in parts]
    order = [*epochs(2, 3), *([3, 4, 5] * 2 if variant == "holes" else [0, 1, 2])]
    return visited(model, batches, order, X, groups=groups)


# ------------------------------------------------------------------ sequences


def states(family, seed, *args, **settings):
    return HDPHMMVB(*args, observation=likelihood(family), random_state=seed, **settings)


@case(*LEADING, "autoregressive", "autoregressive_2")
def hmm_births(seed, variant):
    """Births from one state, in one batch of a list of sequences."""
    X, _ = chains(variant, seed)
    return fitted(states(variant, seed, n_batches=1), X)


@case("full", "autoregressive", "categorical", "poisson")
def hmm_births_in_batches(seed, variant):
    """Births from one state, in four batches of rows with ``lengths``."""
    X, _ = chains(variant, seed)
    lengths = [len(x) for x in X]
    return fitted(states(variant, seed, n_batches=4), np.concatenate(X), lengths=lengths)


@case("full", "autoregressive", "poisson")
def hmm_fixed(seed, variant):
    """A fixed number of states under finite Dirichlet distributions."""
    X, _ = chains(variant, seed)
    model = states(variant, seed, 6, allocation="dirichlet", proposals=None, max_iter=15)
    return fitted(model.set_params(n_batches=2, init_params="k-means++"), X)


@case("full", "autoregressive", "multinomial", "missing")
def hmm_low_memory(seed, variant):
    """No table of all rows and states, of which one sequence is long enough to be cut."""
    family = "full" if variant == "missing" else variant
    X, _ = chains(family, seed)
    X = [np.concatenate(X[:3]), *X[3:]]
    X = [holed(x, seed) for x in X] if variant == "missing" else X
    return fitted(states(family, seed, 4, low_memory=True, n_batches=2), X)


def long_sequence(seed):
    """A sequence of more rows than low memory holds at once."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(kinds(rng, 500), 40)
    return clouds(rng, labels)


@case("table", "low_memory", "merges")
def hmm_long(seed, variant):
    """A few laps over one long sequence, which low memory cuts; also with proposals."""
    model = states("full", seed, 5, low_memory=variant != "table", proposals=None, max_iter=3)
    if variant == "merges":
        model.set_params(proposals=("merge", "delete"), n_components=12, max_iter=4)
    return fitted(model, long_sequence(seed))


@case("full", "autoregressive", "weights")
def hmm_large(seed, variant):
    """So many sequences that births see samples of them."""
    family = "full" if variant == "weights" else variant
    X, _ = chains(family, seed, 60, 80)
    proposals = (StateBirth(n_rows=300), "merge", "delete")
    model = states(family, seed, proposals=proposals, n_batches=6, max_iter=8)
    return fitted(model, X, weights(len(X), seed) if variant == "weights" else None)


HMM_SETTINGS = {
    "not_sticky": {"stickiness": 0.0},
    "sticky": {"stickiness": 400.0, "n_batches": 2},
    "concentrations": {
        "transition_concentration": 4.0,
        "start_concentration": 2.0,
        "weight_concentration_prior": 8.0,
    },
    "dirichlet": {"allocation": "dirichlet"},
    "full_batch": {"learning_method": "full", "n_components": 8},
    "k-means++": {"init_params": "k-means++", "n_components": 6, "n_batches": 2},
    "proposals": {
        "proposals": (
            StateBirth(max_states=4, n_rows=200, pairs_per_state=2),
            StateMerge(pairs_per_component=2),
            StateDelete(max_targets=2),
        ),
        "n_batches": 2,
    },
    "births_alone": {"proposals": ("birth",), "n_batches": 2},
    "merges_alone": {"proposals": ("merge",), "n_components": 25, "n_batches": 2},
    "deletes_alone": {"proposals": ("delete",), "n_components": 14, "n_batches": 2},
    "at_most_3": {"max_components": 3},
    "threads": {"n_jobs": 2, "n_batches": 2, "max_iter": 4},
    "stochastic": {
        "learning_method": "stochastic",
        "n_components": 6,
        "n_batches": 4,
        "max_iter": 5,
    },
}


@case(*HMM_SETTINGS)
def hmm_settings(seed, variant):
    """Other settings of states of sequences."""
    X, _ = chains("full", seed)
    return fitted(states("full", seed, **copy.deepcopy(HMM_SETTINGS[variant])), X)


@case("full", "diag", "autoregressive", "categorical", "columns")
def hmm_missing(seed, variant):
    """Entries of sequences are missing, and whole rows, which are gaps."""
    X, _ = chains(variant, seed)
    return fitted(states(variant, seed, n_batches=2), [holed(x, seed) for x in X])


@case("groups", "sparse", "single_precision", "weights", "responsibilities", "stochastic_start",
      "one_sequence")  # fmt: skip
def hmm_data(seed, variant):
    """Other forms of sequences, and starts from given responsibilities."""
    family = "multinomial" if variant == "sparse" else "full"
    X, labels = chains(family, seed)
    model = states(family, seed, n_batches=2)
    if variant == "groups":
        groups = np.repeat(np.arange(len(X)), [len(x) for x in X])
        order = np.random.default_rng(seed).permutation(len(groups))
        return fitted(model, np.concatenate(X)[order], groups=groups[order])
    if variant == "sparse":
        X = [sparse.csr_matrix(x) for x in X]
    elif variant == "single_precision":
        X = [x.astype(np.float32) for x in X]
    elif variant == "weights":
        return fitted(model, X, weights(len(X), seed))
    elif variant == "responsibilities":
        model.set_params(init_params=one_hot(labels, 0.1), proposals=None)
    elif variant == "stochastic_start":
        model.set_params(init_params=one_hot(labels, 0.3), learning_method="stochastic", max_iter=3)
    elif variant == "one_sequence":
        X = np.concatenate(X)
    return fitted(model, X)


@case("full", "autoregressive", "categorical")
def hmm_stream(seed, variant):
    """Batches of sequences that are visited again, known by their content."""
    X, _ = chains(variant, seed)
    return visited(states(variant, seed), cut(X, 4), epochs(3, 4), X, by_name=False)


HMM_STREAMS = {
    "forgetful": {"memoize": False},
    "fixed": {"n_components": 5, "proposals": None},
    "dirichlet": {"allocation": "dirichlet"},
    "low_memory": {"low_memory": True},
    "stochastic": {"learning_method": "stochastic", "n_components": 5, "total_samples": 60},
}


@case(*HMM_STREAMS, "weights")
def hmm_stream_settings(seed, variant):
    """Streams with other settings, and with weights of sequences."""
    X, _ = chains("full", seed)
    weight = weights(len(X), seed) + 0.1 if variant == "weights" else None
    model, order = states("full", seed, **HMM_STREAMS.get(variant, {})), epochs(2, 4)
    return visited(model, cut(X, 4, weight), order[:4] if variant == "forgetful" else order, X)


@case("new_batches", "after_fit", "holes", "pickled")
def hmm_stream_change(seed, variant):
    """New batches in the middle of a lap, batches after a fit, holes that come late, a pickle."""
    X, _ = chains("full", seed)
    model, batches, order = states("full", seed), cut(X, 4), [2, 0, 3, *epochs(1, 4)]
    if variant == "after_fit":
        model.fit(X[:4])
        return visited(model, batches, [2, 3, 2, 3], X)
    visited(model, batches, [0, 1, 0, 1, 0], X)
    if variant == "holes":
        batches = cut([holed(x, seed) for x in X], 4)
    elif variant == "pickled":
        model = pickle.loads(pickle.dumps(model))
    return visited(model, batches, order, X)


# ------------------------------------------------------------------ bounded memory


def bounded(family, *args, **settings):
    return MemoryBoundedTopicVB(*args, observation=likelihood(family), **settings)


@case(*LEADING)
def bounded_fit(seed, variant):
    """All documents in one epoch, all of which is kept."""
    X, groups, _ = grouped(variant, seed, 15, 16)
    return fitted(bounded(variant, None, tol=1e-4), X, groups=groups)


BOUNDED_SETTINGS = {
    "epochs": {"memory_bound": 700, "documents_per_epoch": 6},
    "document_groups": {
        "memory_bound": 400,
        "documents_per_epoch": 6,
        "max_document_groups": 5,
        "target_points": 2000.0,
        "target_documents": 120.0,
    },
    "at_most_3": {"max_components": 3, "doc_topic_prior_shape": 2.0, "doc_topic_prior_rate": 1.0},
    "threads": {"n_jobs": 2, "memory_bound": 700, "documents_per_epoch": 9},
}


@case(*BOUNDED_SETTINGS, "single_precision", "one_document")
def bounded_settings(seed, variant):
    """Other settings, rows in single precision, and rows without documents."""
    X, groups, _ = grouped("full", seed, 18, 16)
    model = bounded("full", tol=1e-4, **BOUNDED_SETTINGS.get(variant, {}))
    if variant == "one_document":
        groups = np.zeros(len(X), dtype=int)
    return fitted(
        model, X.astype(np.float32) if variant == "single_precision" else X, groups=groups
    )


@case("full", "diag", "poisson", "pickled", "less_memory")
def bounded_stream(seed, variant):
    """Epochs one after another; also with a pickle after each, and less memory for each."""
    family = variant if variant in FAMILIES else "full"
    X, groups, _ = grouped(family, seed, 32, 16)
    model = bounded(family, 700, tol=1e-4, max_document_groups=20)
    for epoch in range(4):
        if variant == "less_memory":
            model.set_params(memory_bound=(700, 400, 150, 60)[epoch])
        own = groups // 8 == epoch
        model.partial_fit(X[own], groups=groups[own])
        if variant == "pickled":
            model = pickle.loads(pickle.dumps(model))
    return Fit(model, X, {"groups": groups})


# ------------------------------------------------------------------ what is recorded


def _feed(bits, value):
    """Add the type and the bits of a value to a hash; TypeError if it is no number and no text."""
    if sparse.issparse(value):
        value = value.tocsr()
        value = (value.shape, value.data, value.indices, value.indptr)
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUST":
        value = value.tolist()
    if isinstance(value, np.ndarray):
        bits.update(f"array {value.dtype.str} {value.shape}".encode())
        bits.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        bits.update(f"dict {len(value)}".encode())
        for key in sorted(value, key=repr):
            bits.update(repr(key).encode())
            _feed(bits, value[key])
    elif isinstance(value, list | tuple):
        bits.update(f"list {len(value)}".encode())
        for item in value:
            _feed(bits, item)
    elif value is None or isinstance(value, str | bool | np.bool_):
        bits.update(f"name {value!s}".encode())
    elif isinstance(value, Integral):
        bits.update(f"int {int(value)}".encode())
    elif isinstance(value, Real):
        bits.update(f"float {float(value).hex()}".encode())
    else:
        raise TypeError(f"{type(value).__name__} has no bits to compare")


def digest(value):
    """Hash of the bits of numbers, in arrays, lists and dicts of any depth."""
    bits = hashlib.blake2b(digest_size=12)
    _feed(bits, value)
    return bits.hexdigest()


def without_seconds(history):
    """Records of laps or epochs as dicts, without what is never the same twice."""
    return [
        {name: value for name, value in record._asdict().items() if "seconds" not in name}
        for record in history
    ]


def attributes(model):
    """Hashes of the fitted attributes by name; those that hold no numbers are left out."""
    found = {}
    for name in sorted(dir(model)):
        if name.startswith("_") or not name.endswith("_") or not hasattr(model, name):
            continue
        value = getattr(model, name)
        try:
            found[name] = digest(without_seconds(value) if name == "history_" else value)
        except TypeError:
            continue
    return found


METHODS = ("predict_proba", "score_samples", "transform", "score", "decode", "perplexity",
           "score_completion", "similarity")  # fmt: skip


def methods(fit):
    """Hashes of what the methods say of the data, and of a sample, by name."""
    model, X, named = fit
    found = {
        name: digest(getattr(model, name)(X, **named)) for name in METHODS if hasattr(model, name)
    }
    if hasattr(model, "sample"):
        found["sample"] = digest(model.sample(5, random_state=0))
    if hasattr(model, "predict_next"):
        first = X[0] if isinstance(X, list) else X
        _, message = model.predict_next(first[:12])
        found["predict_next"] = digest(model.predict_next(first[12:20], message))
    return found


def labels_of(fit):
    """Labels of rows; of documents of words, which have none, the largest topics."""
    model, X, named = fit
    if hasattr(model, "predict"):
        return model.predict(X, **named)
    return model.transform(X, **named).argmax(axis=1)


def record(fit):
    """What is kept of a fit."""
    model = fit.model
    bound = model.free_energy_ if hasattr(model, "free_energy_") else model.lower_bound_
    return {
        "K": int(model.n_components_),
        "lower_bound": repr(float(bound)),
        "n_iter": int(model.n_iter_),
        "labels": digest(labels_of(fit)),
        "attributes": attributes(model),
        "methods": methods(fit),
    }


def run(name, seed):
    """The record of a case; of one that fails, its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return record(CASES[name](seed))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def versions():
    """What results may depend on beside the package."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{module.__name__: module.__version__ for module in (np, scipy, sklearn)},
    }


def results(names, seeds):
    """Records by case and seed; a line is printed for each as it is made."""
    found = {}
    for seed in seeds:
        for name in names:
            start = time.perf_counter()
            new = found.setdefault(name, {})[str(seed)] = run(name, seed)
            said = (
                new.get("error") or f"K={new['K']:<3} laps={new['n_iter']:<4} {new['lower_bound']}"
            )
            print(f"{name} seed {seed}: {time.perf_counter() - start:.2f} s  {said}", flush=True)
    return found


# ------------------------------------------------------------------ comparison

# From the worst to the best.
VERDICTS = (
    "failed",
    "other K",
    "same K, other labels",
    "same K and labels, other bits",
    "identical",
)


def bound_change(before, after):
    """Difference of the bounds of two records, relative to the first."""
    first, second = float(before["lower_bound"]), float(after["lower_bound"])
    return (second - first) / max(abs(first), 1e-300) if first != second else 0.0


def parts_that_differ(before, after):
    """Names of what differs in two records, those of attributes and methods among them."""
    names = [
        name for name in ("K", "n_iter", "labels", "lower_bound") if before[name] != after[name]
    ]
    for part in ("attributes", "methods"):
        old, new = before[part], after[part]
        names += [name for name in old if name in new and old[name] != new[name]]
        names += [f"-{name}" for name in old if name not in new]
        names += [f"+{name}" for name in new if name not in old]
    return names


def verdict(before, after):
    """One of `VERDICTS`."""
    if "error" in before or "error" in after:
        return "failed"
    if before["K"] != after["K"]:
        return "other K"
    if before["labels"] != after["labels"]:
        return "same K, other labels"
    return "same K and labels, other bits" if parts_that_differ(before, after) else "identical"


def row(name, seed, before, after):
    """A line of the table of differences."""
    if "error" in before or "error" in after:
        said = f"before: {before.get('error', 'fitted')}; now: {after.get('error', 'fitted')}"
        return [name, seed, "-", "-", "-", said]
    shown = [f"{a}" if a == b else f"{a} -> {b}" for a, b in zip(
        (before["K"], before["n_iter"]), (after["K"], after["n_iter"]), strict=True
    )]  # fmt: skip
    differing = ", ".join(parts_that_differ(before, after))
    return [name, seed, *shown, f"{bound_change(before, after):.1e}", differing]


def print_table(rows):
    """Rows as aligned text."""
    cells = [["case", "seed", "K", "laps", "bound", "what differs"], *rows]
    widths = [max(len(cell[j]) for cell in cells) for j in range(5)]
    for cell in cells:
        print(
            *(text.ljust(width) for text, width in zip(cell, [*widths, 0], strict=True)), sep="  "
        )


def compare(baseline, found, tolerant):
    """Print what differs between two sets of records, and return whether that is acceptable."""
    counts, rows_of, changes = dict.fromkeys(VERDICTS, 0), [], []
    for name, by_seed in found.items():
        for seed, after in by_seed.items():
            before = baseline[name][seed]
            kind = verdict(before, after)
            counts[kind] += 1
            if kind != "identical":
                rows_of.append(row(name, seed, before, after))
            if kind == "same K and labels, other bits":
                changes.append(bound_change(before, after))
    print()
    if rows_of:
        print_table(rows_of)
        print()
    for kind in reversed(VERDICTS):
        print(f"{counts[kind]:4d}  {kind}")
    if changes:
        largest, median = np.max(np.abs(changes)), np.median(np.abs(changes))
        print(
            f"Of those with other bits, bounds differ by {largest:.1e} of their values at most; "
            f"the median is {median:.1e}."
        )
    accepted = VERDICTS[-2:] if tolerant else VERDICTS[-1:]
    return sum(counts.values()) == sum(counts[kind] for kind in accepted)


def chosen(names, only):
    """The names that hold a text; none is an error."""
    found = [name for name in names if only in name]
    if not found:
        raise SystemExit(f"no case has {only!r} in its name")
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", metavar="FILE", help="write the results to this file")
    what.add_argument(
        "--compare", metavar="FILE", help="compare the results with those of this file"
    )
    parser.add_argument(
        "--only", default="", metavar="SUBSTRING", help="cases with this in their name"
    )
    parser.add_argument(
        "--seeds", type=int, help="seeds 0, 1, ... of data and fits (1, or all of the file)"
    )
    parser.add_argument(
        "--tolerant", action="store_true", help="accept other bits if K and the labels are the same"
    )
    args = parser.parse_args()
    print(f"sklearn_bnp of {sklearn_bnp.__path__[0]}", flush=True)
    limits = threadpool_limits(limits=1, user_api="blas")
    start, accepted, names = time.perf_counter(), True, chosen(CASES, args.only)
    if args.write:
        found = results(names, range(1 if args.seeds is None else args.seeds))
        with open(args.write, "w", encoding="utf-8") as file:
            json.dump({"versions": versions(), "results": found}, file, indent=1, sort_keys=True)
        failed = [name for name in found if any("error" in one for one in found[name].values())]
        accepted = not failed
        print(f"\n{len(names)} cases written, of which {len(failed)} failed: {', '.join(failed)}")
    else:
        with open(args.compare, encoding="utf-8") as file:
            saved = json.load(file)
        if saved["versions"] != versions():
            print(f"versions differ: {saved['versions']} before, now {versions()}")
        baseline = saved["results"]
        gone = sorted(name for name in baseline if args.only in name and name not in CASES)
        new = [name for name in names if name not in baseline]
        names = [name for name in names if name in baseline]
        n_seeds = min((len(baseline[name]) for name in names), default=0)
        seeds = range(n_seeds if args.seeds is None else min(args.seeds, n_seeds))
        accepted = compare(baseline, results(names, seeds), args.tolerant)
        if gone or new or not names:
            accepted = False
            print(f"not compared: gone {gone}, not in the file {new}")
    limits.restore_original_limits()
    print(f"{time.perf_counter() - start:.0f} s")
    return 0 if accepted else 1


if __name__ == "__main__":
    sys.exit(main())
