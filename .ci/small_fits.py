"""Small fits through every estimator and every kind of data, for builds with sanitizers.

Nothing is compared here: a sanitizer ends the process at the first fault that it sees.
"""

import warnings

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_bnp import (
    HDPHMMVB,
    ColumnObservation,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)

warnings.simplefilter("ignore", ConvergenceWarning)
rng = np.random.default_rng(0)

# More rows than a chunk of the kernels, and a number of columns that fills no vector register.
ROWS = rng.normal(size=(1100, 3)) + 8.0 * rng.integers(0, 3, size=(1100, 1))
INCOMPLETE = np.where(rng.random(ROWS.shape) < 0.1, np.nan, ROWS)
COUNTS = rng.poisson(3.0 * rng.dirichlet(np.ones(13), size=3)[rng.integers(0, 3, 1100)])
BINARY = np.minimum(COUNTS, 1)
# More documents than two of their chunks.
WORDS = sparse.csr_matrix(rng.multinomial(15, rng.dirichlet(np.full(13, 0.2), size=40)))
WORDS = sparse.vstack([WORDS, sparse.csr_matrix((1, 13), dtype=WORDS.dtype)], format="csr")  # empty
GROUPS = np.repeat(np.arange(22), 50)
SEQUENCES = [*np.split(ROWS[:1099], [1, 300, 302]), ROWS[:1]]
WEIGHT = rng.integers(0, 3, size=1100).astype(float)


def fit(model, data, method="predict", weight=None, **more):
    """Fit, predict and stream."""
    print(type(model).__name__, getattr(model, "observation", ""), type(data).__name__, flush=True)
    model.set_params(n_jobs=2, max_iter=2)
    model.fit(data, **more, **({} if weight is None else {"sample_weight": weight}))
    getattr(model, method)(data, **more)
    for _ in range(2):
        if getattr(model, "learning_method", "memoized") != "full":
            model.partial_fit(data, **more)


def mixtures():
    for covariance_type in ("full", "diag", "spherical"):
        observation = GaussianObservation(covariance_type)
        for x in (ROWS, ROWS.astype(np.float32), INCOMPLETE):
            fit(DPMixtureVB(observation=observation, random_state=0), x, weight=WEIGHT)
        fit(DPMixtureVB(9, observation=observation, n_nonzero_resp=2, random_state=0), ROWS)
    fit(DPMixtureVB(observation="fixed_variance_gaussian", random_state=0), ROWS)
    for observation, x in (("multinomial", COUNTS), ("poisson", COUNTS), ("bernoulli", BINARY)):
        for data in (x, sparse.csr_matrix(x), sparse.csr_matrix(x.astype(np.float32))):
            fit(DPMixtureVB(observation=observation, random_state=0), data)
    fit(DPMixtureVB(observation="categorical", random_state=0), COUNTS[:, :3])
    blocks = [("first", "gaussian", [0]), ("others", "poisson", [1, 2])]
    table = np.column_stack([ROWS[:, 0], COUNTS[:, :2]])
    fit(DPMixtureVB(observation=ColumnObservation(blocks), random_state=0), table)
    fit(DPMixtureVB(5, learning_method="stochastic", random_state=0), ROWS)


def topics():
    # Words in other forms are sparse doubles before a kernel meets them, whatever the parameters.
    for x in (WORDS, WORDS.astype(np.float32), WORDS.toarray()):
        fit(HDPTopicVB(4, random_state=0), x, "transform")
    for params in ({"n_nonzero_resp": 2}, {"learning_method": "stochastic", "proposals": None}):
        fit(HDPTopicVB(4, random_state=0, **params), WORDS, "transform")
    fit(HDPTopicVB(random_state=0), WORDS, "transform", weight=WEIGHT[: WORDS.shape[0]])
    for x in (ROWS, INCOMPLETE):
        fit(HDPTopicVB(observation="gaussian", random_state=0), x, "transform", groups=GROUPS)
    fit(MemoryBoundedTopicVB(150), ROWS, groups=GROUPS)
    fit(MemoryBoundedTopicVB(150, observation="multinomial"), COUNTS, groups=GROUPS)


def sequences():
    missing = [np.where(rng.random(x.shape) < 0.1, np.nan, x) for x in SEQUENCES]
    for params in ({}, {"low_memory": True}, {"allocation": "dirichlet", "proposals": None}):
        for x in (SEQUENCES, missing):
            fit(HDPHMMVB(3, random_state=0, **params), x)
    fit(HDPHMMVB(random_state=0), SEQUENCES, weight=WEIGHT[: len(SEQUENCES)])
    fit(HDPHMMVB(3, observation="autoregressive", random_state=0), [ROWS[:300], ROWS[300:302]])
    fit(HDPHMMVB(3, observation="multinomial", random_state=0), sparse.csr_matrix(COUNTS))


if __name__ == "__main__":
    mixtures()
    topics()
    sequences()
    print("no fault in small fits")
