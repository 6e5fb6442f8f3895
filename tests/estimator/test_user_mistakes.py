"""Mistakes of users: each message names the parameter or method, the value, and the remedy.

Each line of a table is a call, the words that its message must hold, and the type of the error if that is
not a ValueError. Calls of fitted models must leave these as they were, to the last bit.
"""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_bnp import (
    HDPHMMVB,
    AutoregressiveObservation,
    BernoulliObservation,
    Birth,
    CategoricalObservation,
    Checkpoint,
    ColumnObservation,
    DPMixtureVB,
    FixedVarianceGaussianObservation,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
    Merge,
    MultinomialObservation,
    PitmanYorAllocation,
    PoissonObservation,
    TopicBirth,
    combine,
    load,
    open_batches,
)
from sklearn_bnp.inspection import (
    ComponentsDisplay,
    ConvergenceDisplay,
    StatesDisplay,
    TopicsDisplay,
    pyldavis_data,
)
from tests.estimators import assert_same_state, blobs, chains, documents, grouped_rows, names

X, _ = blobs(60)
N, D = X.shape
BITS = (X > 0).astype(float)
COUNTS = np.random.default_rng(0).poisson(3.0, size=(N, D))
WORDS, _ = documents(20, 20)
V = WORDS.shape[1]
ROWS, GROUPS, _ = grouped_rows(8, 10)
SEQUENCES = chains(3, 20)[0]
JOINED = np.concatenate(SEQUENCES)
LENGTHS = [len(sequence) for sequence in SEQUENCES]
TEXTS = ["the cat sat", "the dog ran"]


def put(x, value, row=7, column=1):
    """A copy of an array, in floats, with one value replaced."""
    x = np.array(x, dtype=float)
    x[row, column] = value
    return x


def frame(**columns):
    """A frame of pandas."""
    return pytest.importorskip("pandas").DataFrame(columns)


def mixture(x=X, **parameters):
    """A call of `DPMixtureVB.fit`."""
    return lambda: DPMixtureVB(**parameters).fit(x)


def topics(x=WORDS, groups=None, **parameters):
    """A call of `HDPTopicVB.fit`."""
    return lambda: HDPTopicVB(**parameters).fit(x, groups=groups)


def hmm(x=SEQUENCES, lengths=None, groups=None, **parameters):
    """A call of `HDPHMMVB.fit`."""
    return lambda: HDPHMMVB(**parameters).fit(x, lengths=lengths, groups=groups)


def bounded(x=ROWS, groups=GROUPS, **parameters):
    """A call of `MemoryBoundedTopicVB.fit`."""
    return lambda: MemoryBoundedTopicVB(**{"memory_bound": 900, **parameters}).fit(x, groups=groups)


MIXTURE_PARAMETERS = {
    "observation misspelt": (
        mixture(observation="gausian"),
        ["observation='gausian'", "Did you mean 'gaussian'"],
    ),
    "observation in capitals": (
        mixture(observation="Gaussian"),
        ["observation='Gaussian'", "Did you mean 'gaussian'"],
    ),
    "observation of scikit-learn": (
        mixture(observation="full"),
        ["observation='full'", "covariance_type"],
    ),
    "covariances set as in scikit-learn": (
        lambda: DPMixtureVB().set_params(covariance_type="diag"),
        ["Invalid parameter 'covariance_type'", "observation__covariance_type"],
    ),
    "observation without a name": (
        mixture(observation="zzz"),
        ["observation='zzz'", "'gaussian'", "instance"],
    ),
    "class for an observation": (
        mixture(observation=GaussianObservation),
        ["observation=", "is a class", "GaussianObservation()"],
    ),
    "another estimator for an observation": (
        mixture(observation=Birth()),
        ["observation=Birth()", "instance"],
    ),
    "None for an observation": (mixture(observation=None), ["observation=None", "'gaussian'"]),
    "allocation without its end": (
        mixture(allocation="pitman"),
        ["allocation", "'pitman'", "Did you mean 'pitman-yor'"],
    ),
    "allocation of another estimator": (
        mixture(allocation="dirichlet_process"),
        ["allocation", "elsewhere is 'dp'"],
    ),
    "class for an allocation": (
        mixture(allocation=PitmanYorAllocation),
        ["allocation", "is a class", "PitmanYorAllocation()"],
    ),
    "proposal misspelt": (
        mixture(proposals=("birth", "mergee")),
        ["proposals", "'mergee'", "Did you mean 'merge'"],
    ),
    "proposals in one string": (
        mixture(proposals="birth, merge"),
        ["proposals", "'birth, merge'", "('birth', 'merge')"],
    ),
    "proposals misspelt, alone": (
        mixture(proposals="births"),
        ["proposals", "'births'", "Did you mean 'birth'"],
    ),
    "class for a proposal": (
        mixture(proposals=(Birth,)),
        ["proposals", "Birth is a class", "Birth()"],
    ),
    "proposals switched off by False": (mixture(proposals=False), ["proposals", "False", "None"]),
    "proposals of all kinds": (mixture(proposals="all"), ["proposals", "'all'", "merge"]),
    "a proposal twice": (mixture(proposals=("merge", Merge())), ["proposals", "twice", "once"]),
    "a proposal for topics": (
        mixture(proposals=(TopicBirth(),)),
        ["proposals", "TopicBirth()", "Birth()"],
    ),
    "init_params misspelt": (
        mixture(init_params="kmeans+"),
        ["init_params", "'kmeans+'", "Did you mean 'k"],
    ),
    "init_params with underscores": (
        mixture(init_params="k_means++"),
        ["init_params", "'k_means++'", "Did you mean 'k-means++'"],
    ),
    "init_params of wrong length": (
        mixture(init_params=np.full((N - 1, 2), 0.5)),
        ["init_params", (N - 1, 2), "one row"],
    ),
    "init_params that do not sum to one": (
        mixture(init_params=np.full((N, 2), 0.4)),
        ["init_params", "0.8", "divide"],
    ),
    "labels for init_params": (
        mixture(init_params=np.zeros(N, dtype=int)),
        ["init_params", (N,), "np.eye"],
    ),
    "negative responsibilities": (
        mixture(init_params=np.tile([1.5, -0.5], (N, 1))),
        ["init_params", "-0.5", "[0, 1]"],
    ),
    "means of wrong shape": (
        mixture(n_components=3, means_init=X[:2]),
        ["means_init", (2, D), (3, D)],
    ),
    "tuple for n_components": (
        mixture(n_components=(1, 10)),
        ["n_components", "(1, 10)", "whole number", "learned"],
    ),
    "automatic n_components": (
        mixture(n_components="auto"),
        ["n_components", "'auto'", "whole number", "learned"],
    ),
    "float for n_components": (mixture(n_components=3.0), ["n_components", "3.0", "whole number"]),
    "no n_components": (
        mixture(n_components=None),
        ["n_components", "None", "whole number", "learned"],
    ),
    "n_components of 0": (mixture(n_components=0), ["n_components", "0"]),
    "more components than rows": (
        mixture(n_components=N + 1),
        [f"n_components={N + 1}", f"n_samples={N}", "fewer"],
    ),
    "max_components too small": (
        mixture(n_components=5, max_components=3),
        ["n_components=5", "max_components=3", "raise"],
    ),
    "max_components of 0": (mixture(max_components=0), ["max_components", "0"]),
    "learning method of scikit-learn": (
        mixture(learning_method="online"),
        ["learning_method", "'online'", "elsewhere is 'stochastic'", "partial_fit"],
    ),
    "learning method misspelt": (
        mixture(learning_method="memoised"),
        ["learning_method", "'memoised'", "Did you mean 'memoized'"],
    ),
    "batch method": (mixture(learning_method="batch"), ["learning_method", "elsewhere is 'full'"]),
    "seed in quotes": (mixture(random_state="0"), ["random_state", "'0'", "int"]),
    "batch size of 0": (mixture(batch_size=0), ["batch_size", "0", "1"]),
    "two sizes of batches": (
        mixture(batch_size=5, n_batches=2),
        ["batch_size=5", "n_batches=2", "set one"],
    ),
    "negative tol": (mixture(tol=-1.0), ["tol", "-1.0"]),
    "float for max_iter": (mixture(max_iter=1e3), ["max_iter", "1000.0", "whole number"]),
    "weight of the prior is 0": (
        mixture(weight_concentration_prior=0),
        ["weight_concentration_prior", "0"],
    ),
    "weight of the prior beside an object": (
        mixture(allocation=PitmanYorAllocation(), weight_concentration_prior=1.0),
        ["weight_concentration_prior=1.0", "allocation__concentration"],
    ),
    "half-life with a memory": (
        lambda: DPMixtureVB(half_life=3.0).partial_fit(X),
        ["half_life=3.0", "memoize=False"],
    ),
    "window without a memory": (
        lambda: DPMixtureVB(max_batches=3, memoize=False).partial_fit(X),
        ["max_batches=3", "memoize=True"],
    ),
    "unknown nested parameter": (
        lambda: DPMixtureVB().set_params(observation__covariance="full"),
        ["covariance", "GaussianObservation", "covariance_type"],
    ),
    "covariance type of another kind": (
        mixture(observation=GaussianObservation("tied")),
        ["covariance_type", "'tied'", "all components share"],
    ),
    "covariance type misspelt": (
        mixture(observation=GaussianObservation("diagonal")),
        ["covariance_type", "'diagonal'", "Did you mean 'diag'"],
    ),
    "number of threads is 0": (mixture(n_jobs=0), ["n_jobs", "0", "-1"]),
}

PRIORS = {
    "one number for Poisson": (
        mixture(COUNTS, observation=PoissonObservation(prior=1.0)),
        ["prior=1.0", "two numbers", "(1.0, 1.0)"],
    ),
    "zero for Poisson": (
        mixture(COUNTS, observation=PoissonObservation(prior=(0, 1))),
        ["prior=(0, 1)", "two numbers"],
    ),
    "one number for Bernoulli": (
        mixture(BITS, observation=BernoulliObservation(prior=1.0)),
        ["prior=1.0", "two numbers", "(1.0, 1.0)"],
    ),
    "negative for Bernoulli": (
        mixture(BITS, observation=BernoulliObservation(prior=(-1, 1))),
        ["prior=(-1, 1)", "two numbers"],
    ),
    "pair for words": (
        topics(observation=MultinomialObservation(prior=(1.0, 2.0))),
        ["prior", "(1.0, 2.0)", V],
    ),
    "negative for categories": (
        mixture(BITS, observation=CategoricalObservation(prior=-1.0)),
        ["prior", "-1.0"],
    ),
    "variance of 0": (
        mixture(observation=FixedVarianceGaussianObservation(variance=0.0)),
        ["variance", "0.0"],
    ),
    "mean prior of wrong length": (
        mixture(observation=GaussianObservation(mean_prior=[0.0, 0.0])),
        ["mean_prior", (2,), D],
    ),
    "a mean that is no number": (
        mixture(observation=GaussianObservation(mean_prior=[0.0, np.nan, 0.0])),
        ["mean_prior", "finite", "column 1 is nan"],
    ),
    "degrees of freedom too few": (
        mixture(observation=GaussianObservation(degrees_of_freedom_prior=1.0)),
        ["degrees_of_freedom_prior", "1.0", D - 1],
    ),
    "covariance prior of wrong shape": (
        mixture(observation=GaussianObservation(covariance_prior=np.eye(2))),
        ["covariance_prior", (2, 2), (D, D)],
    ),
    "reg_covar of 0": (
        mixture(observation=GaussianObservation(reg_covar=0.0)),
        ["reg_covar", "0.0"],
    ),
    "blocks are no list": (
        mixture(observation=ColumnObservation("gaussian")),
        ["blocks", "'gaussian'"],
    ),
    "block without columns": (
        mixture(observation=ColumnObservation([("a", "gaussian")])),
        ["blocks", "columns"],
    ),
    "block with an unknown name": (
        mixture(observation=ColumnObservation([("a", "gausian", [0, 1, 2])])),
        ["'a'", "'gausian'", "Did you mean 'gaussian'"],
    ),
    "block with a class": (
        mixture(observation=ColumnObservation([("a", GaussianObservation, [0, 1, 2])])),
        ["'a'", "is a class", "GaussianObservation()"],
    ),
    "column that is not there": (
        mixture(observation=ColumnObservation([("a", "gaussian", [0, 7])])),
        ["'a'", "7", D],
    ),
    "name of a column in an array": (
        mixture(observation=ColumnObservation([("a", "gaussian", ["age"])])),
        ["'a'", "age", "frame"],
    ),
    "misspelt name of a column": (
        lambda: mixture(
            frame(age=X[:, 0], size=X[:, 1]),
            observation=ColumnObservation([("a", "gaussian", ["agee"])]),
        )(),
        ["'a'", "agee", "Did you mean 'age'"],
    ),
    "column in two blocks": (
        mixture(
            observation=ColumnObservation([("a", "gaussian", [0, 1]), ("b", "gaussian", [1, 2])])
        ),
        ["'a'", "'b'", "1"],
    ),
    "autoregression of rows": (
        mixture(observation=AutoregressiveObservation()),
        ["observation=", "order", "HDPHMMVB"],
    ),
}

ROWS_OF_MIXTURES = {
    "infinite": (mixture(put(X, np.inf)), ["X", "infinity", "column 1", "row 7"]),
    "minus infinity": (mixture(put(X, -np.inf)), ["X", "infinity", "column 1", "row 7"]),
    "NaN among categories of words": (
        mixture(put(COUNTS, np.nan), observation="multinomial"),
        ["NaN", "column 1", "multinomial", "Fill them in"],
    ),
    "one column as a vector": (mixture(X[:, 0]), ["1D array", "reshape(-1, 1)"]),
    "three axes": (mixture(X[np.newaxis]), ["dim 3", "dim <= 2"]),
    "one row": (mixture(X[:1]), ["1 sample(s)", "minimum of 2", "give more rows"]),
    "no rows": (mixture(X[:0]), ["0 sample(s)", "minimum"]),
    "no columns": (mixture(X[:, :0]), ["0 feature(s)", "minimum"]),
    "strings": (mixture(TEXTS), ["X", "strings", "CountVectorizer"]),
    "strings in an array": (
        mixture(np.array([["a", "b"]] * 4)),
        ["X", "strings", "'a'", "DataFrame"],
    ),
    "frame with strings": (
        lambda: mixture(frame(a=X[:, 0], b=["x"] * N))(),
        ["Column 'b'", "'x'", "ColumnObservation"],
    ),
    "frame with dates": (
        lambda: mixture(frame(a=X[:, 0], b=np.arange(N).astype("datetime64[D]")))(),
        ["Column 'b'", "datetime64", "days since"],
    ),
    "None": (mixture(None), ["X", "None"]),
    "a dict": (mixture({"a": [1, 2]}), ["X", "dict", "DataFrame"]),
    "a generator": (mixture(row for row in X), ["X is a generator", "list(X)", "partial_fit"]),
    "complex": (mixture(X * 1j), ["X", "Complex", "X.real"]),
    "sparse for a Gaussian": (
        mixture(sparse.csr_array(X)),
        ["sparse", "toarray", "'gaussian'"],
        TypeError,
    ),
    "negative counts": (
        mixture(put(COUNTS, -2), observation="poisson"),
        ["-2", "poisson", "never negative"],
    ),
    "fractions for Poisson": (
        mixture(put(COUNTS, 0.5), observation="poisson"),
        ["0.5", "poisson", "whole numbers"],
    ),
    "fractions for words": (
        mixture(put(COUNTS, 0.5), observation="multinomial"),
        ["0.5", "multinomial", "whole numbers"],
    ),
    "fractions for Bernoulli": (
        mixture(X, observation="bernoulli"),
        ["bernoulli", "0 and 1", "Binarizer"],
    ),
    "fractions for categories": (
        mixture(X, observation="categorical"),
        ["categorical", "whole numbers"],
    ),
    "weights too few": (
        lambda: DPMixtureVB().fit(X, sample_weight=np.ones(N - 1)),
        ["sample_weight", (N - 1,), (N,)],
    ),
    "negative weights": (
        lambda: DPMixtureVB().fit(X, sample_weight=-np.ones(N)),
        ["sample_weight", "-1", "zero or more"],
    ),
    "weights of NaN": (
        lambda: DPMixtureVB().fit(X, sample_weight=np.full(N, np.nan)),
        ["sample_weight", "NaN"],
    ),
    "weights of zero": (
        lambda: DPMixtureVB().fit(X, sample_weight=np.zeros(N)),
        ["sample_weight", "zero"],
    ),
    "weights of strings": (
        lambda: DPMixtureVB().fit(X, sample_weight=["a"] * N),
        ["sample_weight", "numbers"],
    ),
    "groups for a mixture": (
        lambda: DPMixtureVB().fit(X, groups=np.zeros(N)),
        ["groups"],
        TypeError,
    ),
    "unfitted predict": (
        lambda: DPMixtureVB().predict(X),
        ["DPMixtureVB", "not fitted", "fit"],
        NotFittedError,
    ),
    "unfitted sample": (
        lambda: DPMixtureVB().sample(),
        ["DPMixtureVB", "not fitted", "fit"],
        NotFittedError,
    ),
    "unfitted forget": (
        lambda: DPMixtureVB().forget(0),
        ["DPMixtureVB", "not fitted", "fit"],
        NotFittedError,
    ),
}

TOPICS = {
    "texts": (topics(TEXTS), ["X", "strings", "CountVectorizer"]),
    "texts in an array": (topics(np.array(TEXTS)), ["X", "strings", "CountVectorizer"]),
    "texts in a column": (
        topics(np.array(TEXTS)[:, np.newaxis]),
        ["X", "strings", "CountVectorizer"],
    ),
    "one text": (topics("the cat sat"), ["X", "string", "CountVectorizer"]),
    "texts in a frame": (lambda: topics(frame(text=TEXTS))(), ["X", "text", "CountVectorizer"]),
    "texts in a series": (
        lambda: topics(frame(text=TEXTS)["text"])(),
        ["X", "strings", "CountVectorizer"],
    ),
    "lists of words": (
        topics([["cat", "sat"], ["dog", "ran"]]),
        ["X", "strings", "CountVectorizer"],
    ),
    "NaN": (topics(put(WORDS, np.nan)), ["NaN", "row 7", "column 1", "0"]),
    "infinity": (topics(put(WORDS, np.inf)), ["infinity", "row 7", "column 1"]),
    "NaN in sparse counts": (
        topics(sparse.csr_array(put(WORDS, np.nan))),
        ["NaN", "row 7", "column 1"],
    ),
    "negative counts": (topics(put(WORDS, -1)), ["-1", "zero or more", "groups=...", "by name"]),
    "counts of zero": (topics(np.zeros((4, V))), ["no tokens", "stop_words"]),
    "one document as a vector": (topics(WORDS[0]), ["1D array", "reshape(1, -1)"]),
    "rows without groups": (
        topics(ROWS, observation="gaussian"),
        ["observation=GaussianObservation()", "groups", "one id per row"],
    ),
    "groups of wrong length": (
        topics(ROWS, GROUPS[1:], observation="gaussian"),
        ["groups", len(GROUPS) - 1, len(GROUPS)],
    ),
    "groups of NaN": (
        topics(ROWS, np.full(len(ROWS), np.nan), observation="gaussian"),
        ["groups", "NaN"],
    ),
    "groups of two columns": (
        topics(ROWS, np.zeros((len(ROWS), 2)), observation="gaussian"),
        ["groups", "one id"],
    ),
    "groups of several types": (
        topics(ROWS, np.array([1, "a"] * (len(ROWS) // 2), dtype=object), observation="gaussian"),
        ["groups", "several types"],
    ),
    "observation misspelt": (
        topics(observation="multinomal"),
        ["observation='multinomal'", "Did you mean 'multinomial'"],
    ),
    "proposal misspelt": (
        topics(proposals=("birth", "restrat")),
        ["proposals", "'restrat'", "Did you mean 'restart'"],
    ),
    "proposal of mixtures": (topics(proposals=(Birth(),)), ["proposals", "Birth(", "TopicBirth()"]),
    "class for a proposal": (
        topics(proposals=[TopicBirth]),
        ["proposals", "is a class", "TopicBirth()"],
    ),
    "learning method of scikit-learn": (
        topics(learning_method="online"),
        ["learning_method", "'online'", "elsewhere is 'stochastic'"],
    ),
    "automatic n_components": (
        topics(n_components="auto"),
        ["n_components", "'auto'", "whole number"],
    ),
    "init_params misspelt": (
        topics(init_params="randm"),
        ["init_params", "'randm'", "Did you mean 'random'"],
    ),
    "weights too few": (
        lambda: HDPTopicVB().fit(WORDS, sample_weight=[1.0]),
        ["sample_weight", (1,), "document"],
    ),
    "unfitted transform": (
        lambda: HDPTopicVB().transform(WORDS),
        ["HDPTopicVB", "not fitted"],
        NotFittedError,
    ),
    "unfitted top words": (
        lambda: HDPTopicVB().top_words(),
        ["HDPTopicVB", "not fitted"],
        NotFittedError,
    ),
}

SEQUENCES_OF_STATES = {
    "a vector": (hmm(X[:, 0]), ["X", "1D array", "reshape(-1, 1)"]),
    "a map": (hmm(map(np.copy, SEQUENCES)), ["X is a map", "list(X)"]),
    "list of vectors": (hmm([s[:, 0] for s in SEQUENCES]), ["X[0]", "reshape(-1, 1)"]),
    "list of unequal lists": (hmm([[1.0, 2.0], [1.0, 2.0, 3.0]]), ["X[0]", "reshape(-1, 1)"]),
    "widths that differ": (
        hmm([SEQUENCES[0], SEQUENCES[1][:, :2]]),
        ["X[1] has 2 features", "X[0] has 3"],
    ),
    "empty list": (hmm([]), ["X is an empty list"]),
    "empty sequence": (hmm([SEQUENCES[0], SEQUENCES[1][:0]]), ["X[1]", "leave out"]),
    "infinity in a sequence": (
        hmm([SEQUENCES[0], put(SEQUENCES[1], np.inf)]),
        ["X[1]", "infinity", "row 7", "column 1"],
    ),
    "strings": (hmm(["abab", "baba"]), ["X", "strings", "'abab'", "symbols", "DataFrame"]),
    "one string": (hmm("abab"), ["X", "string", "'abab'", "symbols", "DataFrame"]),
    "symbols in arrays": (
        hmm([np.array(["a", "b"])[:, np.newaxis]] * 2, observation="categorical"),
        ["X[0]", "'a'", "row 0", "DataFrame", "ColumnObservation"],
    ),
    "numbers in quotes in arrays": (
        hmm([np.array([["1.5"], ["2.5"]])]),
        ["X[0]", "'1.5'", "row 0", "must be numbers"],
    ),
    "lengths that do not sum up": (hmm(JOINED, lengths=[10, 10]), ["lengths", "20", len(JOINED)]),
    "lengths of floats": (
        hmm(JOINED, lengths=np.array(LENGTHS, dtype=float)),
        ["lengths", "whole numbers"],
    ),
    "one number for lengths": (hmm(JOINED, lengths=10), ["lengths=10", "list of whole numbers"]),
    "length of 0": (hmm(JOINED, lengths=[0, *LENGTHS]), ["lengths", "1 or more"]),
    "lengths and a list": (hmm(lengths=LENGTHS), ["lengths", "list of sequences", "leave"]),
    "lengths and groups": (
        hmm(JOINED, lengths=LENGTHS, groups=np.zeros(len(JOINED))),
        ["lengths and groups", "both", "otherwise groups"],
    ),
    "lengths in the place of y": (
        lambda: HDPHMMVB().fit(JOINED, LENGTHS),
        ["y", "lengths=...", "by name"],
    ),
    "lengths in the third place": (
        lambda: HDPHMMVB().fit(JOINED, None, LENGTHS),
        ["HDPHMMVB.fit", LENGTHS, "by name", "fit(X, lengths=...)"],
        TypeError,
    ),
    "groups of wrong length": (hmm(JOINED, groups=[0, 1]), ["groups", "2 ids", len(JOINED)]),
    "short sequence": (
        hmm([SEQUENCES[0], SEQUENCES[1][:1]], observation=AutoregressiveObservation()),
        ["Sequence 1", "1 row(s)", "needs 2 or more; leave short sequences out."],  # no lower order
    ),
    "short sequence for a greater order": (
        hmm([SEQUENCES[0], SEQUENCES[1][:2]], observation=AutoregressiveObservation(order=2)),
        ["Sequence 1", "2 row(s)", "needs 3 or more", "lower the order"],
    ),
    "short sequence of correlated rows": (
        hmm([SEQUENCES[0], SEQUENCES[1][:1]], observation="correlated_gaussian"),
        ["Sequence 1", "1 row(s)", "leave short sequences out."],  # it has no order
    ),
    "weights of rows that differ": (
        lambda: HDPHMMVB().fit(
            JOINED, lengths=LENGTHS, sample_weight=np.arange(1.0, len(JOINED) + 1)
        ),
        ["sample_weight", "row 0", "sequence", "same weight"],
    ),
    "weights too many": (
        lambda: HDPHMMVB().fit(SEQUENCES, sample_weight=np.ones(4)),
        ["sample_weight", (4,), (3,), "sequence"],
    ),
    "observation misspelt": (
        hmm(observation="auto_regressive"),
        ["observation='auto_regressive'", "Did you mean 'autoregressive'"],
    ),
    "proposal misspelt": (
        hmm(proposals=("brith",)),
        ["proposals", "'brith'", "Did you mean 'birth'"],
    ),
    "proposals of mixtures": (hmm(proposals=(Merge(), "regroup")), ["proposals", "Merge("]),
    "n_components as hmmlearn's covariance": (
        lambda: HDPHMMVB(3).set_params(observation__n_iter=50),
        ["n_iter", "GaussianObservation"],
    ),
    "automatic n_components": (
        hmm(n_components="auto"),
        ["n_components", "'auto'", "whole number"],
    ),
    "unfitted decode": (
        lambda: HDPHMMVB().decode(SEQUENCES),
        ["HDPHMMVB", "not fitted"],
        NotFittedError,
    ),
    "unfitted sample": (lambda: HDPHMMVB().sample(), ["HDPHMMVB", "not fitted"], NotFittedError),
}

BOUNDED = {
    "no groups": (bounded(groups=None), ["groups", "each row"]),
    "groups of wrong length": (
        bounded(groups=GROUPS[1:]),
        ["groups", len(GROUPS) - 1, len(GROUPS)],
    ),
    "groups with None": (
        bounded(groups=[*GROUPS[1:].astype(str), None]),
        ["groups", "None", len(GROUPS) - 1, "id of its document"],
    ),
    "memory of 0": (bounded(memory_bound=0), ["memory_bound", "0"]),
    "memory in words": (bounded(memory_bound="1 GB"), ["memory_bound", "'1 GB'", "whole number"]),
    "memory too small": (bounded(memory_bound=1), ["memory_bound=1", "at least"]),
    "texts": (bounded(TEXTS, [0, 1]), ["X", "strings", "CountVectorizer"]),
    "infinity": (bounded(put(ROWS, np.inf)), ["infinity", "row 7", "column 1"]),
    "observation misspelt": (
        bounded(observation="gaussain"),
        ["observation='gaussain'", "Did you mean 'gaussian'"],
    ),
    "class for an observation": (
        bounded(observation=GaussianObservation),
        ["observation=", "is a class", "GaussianObservation()"],
    ),
    "no points": (bounded(target_points=0), ["target_points", "0"]),
    "epochs of no documents": (bounded(documents_per_epoch=0), ["documents_per_epoch", "0"]),
    "unfitted": (
        lambda: MemoryBoundedTopicVB().transform(ROWS, groups=GROUPS),
        ["MemoryBoundedTopicVB", "not fitted"],
        NotFittedError,
    ),
}

UNFITTED = {
    "mixture": MIXTURE_PARAMETERS,
    "prior": PRIORS,
    "rows": ROWS_OF_MIXTURES,
    "topics": TOPICS,
    "states": SEQUENCES_OF_STATES,
    "bounded": BOUNDED,
}


class Loads:
    """A reference to a batch."""

    batch_id = 0

    def __init__(self, what):
        self._what = what

    def load(self):
        return self._what


def _text_file(folder):
    path = folder / "model.txt"
    path.write_text("not a model")
    return path


FITTED = {
    "mixture: fewer columns": (
        lambda m, f: m.mixture.predict(X[:, :2]),
        ["X has 2 features", "3 features"],
    ),
    "mixture: fewer columns in a batch": (
        lambda m, f: m.mixture.partial_fit(X[:, :2]),
        ["X has 2 features", "3 features"],
    ),
    "mixture: one row as a vector": (
        lambda m, f: m.mixture.predict(X[0]),
        ["1D array", "reshape(1, -1)"],
    ),
    "mixture: infinity": (
        lambda m, f: m.mixture.score_samples(put(X, np.inf)),
        ["infinity", "row 7", "column 1"],
    ),
    "mixture: strings": (
        lambda m, f: m.mixture.predict([["a", "b", "c"]]),
        ["X", "strings", "'a'"],
    ),
    "mixture: far outlier in a batch": (
        lambda m, f: m.mixture.partial_fit(1e12 * X),
        ["standard deviations", "begin anew"],
    ),
    "mixture: no samples": (lambda m, f: m.mixture.sample(0), ["n_samples", "0", "1 or more"]),
    "mixture: unknown batch": (
        lambda m, f: m.mixture.forget("monday"),
        ["batch_id='monday'", "memory"],
    ),
    "mixture: list for batch_id": (
        lambda m, f: m.mixture.partial_fit(X, batch_id=[1]),
        ["batch_id=[1]", "hashable", "tuple"],
        TypeError,
    ),
    "mixture: another observation in a stream": (
        lambda m, f: m.mixture.set_params(observation="poisson").partial_fit(COUNTS),
        ["observation=PoissonObservation()", "partial_fit", "begin anew"],
    ),
    "mixture: save to a folder": (
        lambda m, f: m.mixture.save(f),
        ["folder", "file"],
        (ValueError, IsADirectoryError),
    ),
    "mixture: save where there is no folder": (
        lambda m, f: m.mixture.save(f / "none" / "model.bnp"),
        ["none", "folder"],
        (ValueError, FileNotFoundError),
    ),
    "load: a text file": (lambda m, f: load(_text_file(f)), ["model.txt", "save"]),
    "load: a folder": (lambda m, f: load(f), ["folder", "file"], (ValueError, IsADirectoryError)),
    "load: nothing there": (lambda m, f: load(f / "model.bnp"), ["model.bnp"], FileNotFoundError),
    "load: an estimator": (lambda m, f: load(m.mixture), ["path", "DPMixtureVB"], TypeError),
    "combine: one model": (
        lambda m, f: combine(m.mixture),
        ["models", "list", "DPMixtureVB"],
        TypeError,
    ),
    "combine: nothing": (lambda m, f: combine([]), ["models=[]"]),
    "combine: an unfitted model": (
        lambda m, f: combine([m.mixture, DPMixtureVB()]),
        ["models[1]", "not fitted"],
        NotFittedError,
    ),
    "combine: topics": (
        lambda m, f: combine([m.mixture, m.topics]),
        ["models[1]", "DPMixtureVB"],
        TypeError,
    ),
    "combine: a class": (
        lambda m, f: combine([DPMixtureVB]),
        ["models[0]", "DPMixtureVB"],
        TypeError,
    ),
    "combine: other observations": (
        lambda m, f: combine([m.mixture, m.diag]),
        ["models[1]", "observation"],
    ),
    "combine: other columns": (
        lambda m, f: combine([m.mixture, m.narrow]),
        ["models[1]", "columns"],
    ),
    "mixture: a criterion of scikit-learn's mixtures": (
        lambda m, f: m.mixture.bic(X),
        ["'bic'", "lower_bound_", "score(X)"],
        AttributeError,
    ),
    "mixture: an attribute of KMeans": (
        lambda m, f: m.mixture.cluster_centers_,
        ["'cluster_centers_'", "means_"],
        AttributeError,
    ),
    "states: an attribute of hmmlearn": (
        lambda m, f: m.states.covars_,
        ["'covars_'", "covariances_"],
        AttributeError,
    ),
    "save: no path": (
        lambda m, f: m.mixture.save(None),
        ["path=None", "name of a file"],
        TypeError,
    ),
    "topics: predict on words": (
        lambda m, f: m.topics.predict(WORDS),
        ["predict", "words", "transform"],
        AttributeError,
    ),
    "topics: texts": (lambda m, f: m.topics.transform(TEXTS), ["X", "strings", "CountVectorizer"]),
    "topics: another vocabulary": (
        lambda m, f: m.topics.transform(WORDS[:, :5]),
        ["X has 5 features", f"{V} features"],
    ),
    "topics: another vocabulary in a batch": (
        lambda m, f: m.topics.partial_fit(WORDS[:, :5]),
        ["X has 5 features", f"{V} features"],
    ),
    "topics: groups for words": (
        lambda m, f: m.topics.transform(WORDS, groups=np.arange(20)),
        ["groups", "without groups", "Leave groups out"],
    ),
    "topics: NaN": (
        lambda m, f: m.topics.transform(put(WORDS, np.nan)),
        ["NaN", "row 7", "column 1"],
    ),
    "topics: too few names of words": (
        lambda m, f: m.topics.top_words(["a", "b"]),
        ["feature_names", 2, V],
    ),
    "topics: no words": (lambda m, f: m.topics.top_words(n=0), ["n=0", "1"]),
    "topics: completion by a wrong name": (
        lambda m, f: m.topics.score_completion(WORDS, by="token"),
        ["by='token'", "Did you mean 'tokens'"],
    ),
    "topics: all held out": (
        lambda m, f: m.topics.score_completion(WORDS, heldout=1.0),
        ["heldout=1.0", "0", "1"],
    ),
    "topics: shares of wrong width": (
        lambda m, f: m.topics.inverse_transform(np.ones((2, 17))),
        ["X", "17 columns", "as from transform"],
    ),
    **{
        f"grouped topics: groups by position, {method}": (
            lambda m, f, method=method: getattr(m.grouped, method)(ROWS, GROUPS),
            [f"HDPTopicVB.{method}", "array(", "groups by name", f"{method}(X, groups=...)"],
            TypeError,
        )
        for method in ("predict", "predict_proba", "transform", "score_samples", "perplexity")
    },
    "grouped topics: groups in the place of y": (
        lambda m, f: m.grouped.score(ROWS, GROUPS),
        ["groups=None", "give the document"],
    ),
    "mixture: weights in the third place": (
        lambda m, f: m.mixture.partial_fit(X, None, np.ones(N)),
        ["DPMixtureVB.partial_fit", "sample_weight", "by name"],
        TypeError,
    ),
    "grouped topics: no groups": (
        lambda m, f: m.grouped.transform(ROWS),
        ["groups=None", "each row"],
    ),
    "states: widths": (
        lambda m, f: m.states.predict([s[:, :2] for s in SEQUENCES]),
        ["X has 2 features", "3 features"],
    ),
    "states: lengths": (
        lambda m, f: m.states.predict(JOINED, lengths=[1]),
        ["lengths", "1", len(JOINED)],
    ),
    **{
        f"states: lengths by position, {method}": (
            lambda m, f, method=method: getattr(m.states, method)(JOINED, LENGTHS),
            [f"HDPHMMVB.{method}", LENGTHS, "lengths and groups by name", "lengths=..."],
            TypeError,
        )
        for method in ("predict", "predict_proba", "transform", "score_samples", "decode")
    },
    "states: lengths after y": (
        lambda m, f: m.states.score(JOINED, None, LENGTHS),
        ["HDPHMMVB.score", LENGTHS, "score(X, lengths=...)"],
        TypeError,
    ),
    "states: batch in the third place": (
        lambda m, f: m.states.partial_fit(SEQUENCES, None, "monday"),
        ["HDPHMMVB.partial_fit", "'monday'", "batch_id by name"],
        TypeError,
    ),
    "states: vector": (lambda m, f: m.states.decode(JOINED[:, 0]), ["1D array", "reshape"]),
    "states: list of vectors": (
        lambda m, f: m.states.partial_fit([s[:, 0] for s in SEQUENCES]),
        ["X[0]", "reshape(-1, 1)"],
    ),
    "states: infinity": (
        lambda m, f: m.states.partial_fit([put(SEQUENCES[0], np.inf)]),
        ["X[0]", "infinity", "column 1"],
    ),
    "states: several at once": (
        lambda m, f: m.states.predict_next(SEQUENCES),
        ["list of 3 sequences", "next rows of one"],
    ),
    "states: message of wrong length": (
        lambda m, f: m.states.predict_next(SEQUENCES[0], message=[1.0]),
        ["message=[1.0]", "predict_next", "message=None"],
    ),
    "states: no samples": (lambda m, f: m.states.sample(0), ["n_samples", "0"]),
    "bounded: groups": (lambda m, f: m.bounded.transform(ROWS), ["groups", "each row"]),
    "bounded: groups by position": (
        lambda m, f: m.bounded.predict(ROWS, GROUPS),
        ["MemoryBoundedTopicVB.predict", "array(", "predict(X, groups=...)"],
        TypeError,
    ),
    "bounded: widths": (
        lambda m, f: m.bounded.transform(ROWS[:, :2], groups=GROUPS),
        ["X has 2 features", "3 features"],
    ),
    "bounded: texts": (lambda m, f: m.bounded.partial_fit(TEXTS, groups=[0, 1]), ["X", "strings"]),
    "bounded: other rows without documents": (
        lambda m, f: m.bounded.similarity(ROWS, ROWS, groups=GROUPS),
        ["other_groups=None", "give other_groups"],
    ),
    "files: nothing there": (
        lambda m, f: open_batches(f / "rows.npy"),
        ["rows.npy"],
        FileNotFoundError,
    ),
    "files: a loader that returns nothing": (
        lambda m, f: m.mixture.fit([Loads(None)]),
        ["Chunk 0", "None", "frame"],
    ),
    "files: a loader of one row as a vector": (
        lambda m, f: m.mixture.fit([Loads(X[0])]),
        ["Chunk 0", "shape (3,)", "two dimensions"],
    ),
    "files: chunks for bounded memory": (
        lambda m, f: m.bounded.partial_fit([Loads(ROWS)], groups=GROUPS),
        ["MemoryBoundedTopicVB", "chunks", "partial_fit(**reference.load())"],
    ),
    "files: a series as a parameter": (
        lambda m, f: m.mixture.set_params(
            observation=GaussianObservation(mean_prior=frame(a=[0.0] * 3)["a"])
        ).save(f / "model.bnp"),
        ["observation__mean_prior", "Series", "np.asarray"],
    ),
    "files: a text file": (lambda m, f: open_batches(_text_file(f)), ["model.txt", ".npy"]),
    "files: batch size of 0": (
        lambda m, f: open_batches(_rows_file(f), batch_size=0),
        ["batch_size=0", "1 or more"],
    ),
    "files: a list of lists": (
        lambda m, f: open_batches([[1.0, 2.0]]),
        ["source", "path"],
        (TypeError, ValueError),
    ),
    "files: lengths that do not sum up": (
        lambda m, f: open_batches(_rows_file(f), lengths=[3]),
        ["lengths", "3", N],
    ),
    "checkpoint: a file": (
        lambda m, f: Checkpoint(_text_file(f)),
        ["folder", "model.txt"],
        (ValueError, NotADirectoryError),
    ),
    "display of laps: an unfitted model": (
        lambda m, f: ConvergenceDisplay.from_estimator(DPMixtureVB()),
        ["not fitted"],
        NotFittedError,
    ),
    "display of laps: a class": (
        lambda m, f: ConvergenceDisplay.from_estimator(DPMixtureVB),
        ["DPMixtureVB", "instance"],
        TypeError,
    ),
    "display of laps: too late": (
        lambda m, f: ConvergenceDisplay.from_estimator(m.mixture, first_lap=9999),
        ["first_lap=9999", "laps"],
    ),
    "display of components: other columns": (
        lambda m, f: ComponentsDisplay.from_estimator(m.mixture, X[:, :2]),
        ["2 features", "3 features"],
    ),
    "display of components: three features": (
        lambda m, f: ComponentsDisplay.from_estimator(m.mixture, X, features=[0, 1, 2]),
        ["features=[0, 1, 2]", "two"],
    ),
    "display of components: misspelt features": (
        lambda m, f: ComponentsDisplay.from_estimator(m.mixture, X, features="pcaa"),
        ["features='pcaa'", "'pca'"],
    ),
    "display of topics: a mixture": (
        lambda m, f: TopicsDisplay.from_estimator(m.mixture),
        ["DPMixtureVB", "HDPTopicVB"],
        TypeError,
    ),
    "display of topics: too few words": (
        lambda m, f: TopicsDisplay.from_estimator(m.topics, ["a"]),
        ["feature_names", 1, V],
    ),
    "display of topics: relevance": (
        lambda m, f: TopicsDisplay.from_estimator(m.topics, relevance=2.0),
        ["relevance=2.0", "0", "1"],
    ),
    "display of states: a mixture": (
        lambda m, f: StatesDisplay.from_estimator(m.mixture, SEQUENCES),
        ["DPMixtureVB", "HDPHMMVB"],
    ),
    "display of states: kind": (
        lambda m, f: StatesDisplay.from_estimator(m.states, SEQUENCES, kind="path"),
        ["kind='path'"],
    ),
    "pyLDAvis: a mixture": (
        lambda m, f: pyldavis_data(m.mixture, X),
        ["DPMixtureVB", "HDPTopicVB"],
        TypeError,
    ),
}


def _rows_file(folder):
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


@pytest.fixture(scope="module")
def fitted():
    """One fitted model of each kind."""
    short = {"max_iter": 3, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SimpleNamespace(
            mixture=DPMixtureVB(2, **short).fit(X),
            diag=DPMixtureVB(2, observation=GaussianObservation("diag"), **short).fit(X),
            narrow=DPMixtureVB(2, **short).fit(X[:, :2]),
            topics=HDPTopicVB(3, **short).fit(WORDS),
            grouped=HDPTopicVB(2, observation="gaussian", **short).fit(ROWS, groups=GROUPS),
            states=HDPHMMVB(2, **short).fit(SEQUENCES),
            bounded=MemoryBoundedTopicVB(2000, max_iter=3).fit(ROWS, groups=GROUPS),
        )


def all_unfitted():
    return [
        pytest.param(*entry[:2], entry[2] if len(entry) > 2 else ValueError, id=f"{part}: {name}")
        for part, table in UNFITTED.items()
        for name, entry in table.items()
    ]


@pytest.mark.parametrize(("call", "words", "error"), all_unfitted())
def test_mistake(call, words, error):
    with pytest.raises(error, match=names(*words)):
        call()


def state_of(model):
    """Fitted attributes without seconds, and parameters."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    found.pop("_learner_", None)
    found["history_"] = [record._replace(seconds=0.0) for record in found["history_"]]
    return found


@pytest.mark.parametrize(
    ("call", "words", "error"),
    [
        pytest.param(*entry[:2], entry[2] if len(entry) > 2 else ValueError, id=name)
        for name, entry in FITTED.items()
    ],
)
def test_mistake_leaves_models_as_they_were(call, words, error, fitted, tmp_path):
    before = {name: state_of(model) for name, model in vars(fitted).items()}
    parameters = {name: model.get_params(deep=False) for name, model in vars(fitted).items()}
    with pytest.raises(error, match=names(*words)):
        call(fitted, tmp_path)
    for name, model in vars(fitted).items():
        assert_same_state(state_of(model), before[name])
        model.set_params(**parameters[name])


def test_there_are_enough_mistakes():
    assert len(all_unfitted()) + len(FITTED) >= 200
