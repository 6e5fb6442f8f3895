"""Bad input to `HDPTopicVB`: an error that names parameter, value and remedy, and a model left as it was."""

import copy
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from sklearn_bnp import Birth, Delete, DPMixtureVB, HDPTopicVB, Merge, TopicBirth, TopicDelete
from tests.estimators import (
    BAD_VALUES,
    TOPICS,
    assert_same_state,
    cases,
    documents,
    grouped_rows,
    names,
    public_state,
)

X, _ = documents(30)
ROWS, GROUPS, _ = grouped_rows(10, 12)
N, V = X.shape


def with_value(value):
    """Counts with one of them replaced."""
    counts = X.astype(float)
    counts[7, 1] = value
    return counts


@cache
def model_of_words():
    """Not to be changed."""
    return HDPTopicVB(random_state=0).fit(X)


@pytest.fixture
def fitted():
    return copy.deepcopy(model_of_words())


@pytest.fixture(scope="module")
def admixture():
    return HDPTopicVB(observation="gaussian", random_state=0).fit(ROWS, groups=GROUPS)


# ---------------------------------------------------------------------- parameters

PARAMETERS = {
    **BAD_VALUES,
    "observation": ["gauss", 3, None, ["multinomial"]],
    "allocation": ["dp", 3, None, ["hdp"]],
    "topic_word_prior": [0, -1.0, np.nan, "one", [1.0, 2.0], [-1.0] * V, np.ones((V, 1))],
    "doc_topic_prior": [0, -1.0, np.nan, "one", [1.0]],
    "weight_concentration_prior": [0, -1.0, np.nan, "one", [1.0]],
    "proposals": ["split", ("birth", "split"), 3, [3], (TopicBirth,), {"birth"}, {"birth": 1}],
    "n_nonzero_resp": [0, 1.5, "all"],
    "warm_start_docs": ["yes", 2, None],
    "doc_restarts": [-1, 1.5, None],
    "max_doc_update_iter": [0, 1.5, None],
    "doc_tol": [0, -1.0, np.nan, None],
    "init_params": ["kmeans", 3, None],
    "learning_decay": [0.5, 1.1, "slow"],
}


def test_every_parameter_is_tested():
    assert set(PARAMETERS) == set(HDPTopicVB().get_params(deep=False))


@pytest.mark.parametrize(("name", "value"), cases(PARAMETERS))
def test_parameter_is_refused_by_name(name, value):
    model = HDPTopicVB(**{name: value})
    shown = [] if np.ndim(value) or isinstance(value, (set, dict, tuple)) else [value]
    with pytest.raises(ValueError, match=names(name, *shown)):
        model.fit(X)
    with pytest.raises(ValueError, match=names(name)):
        model.partial_fit(X)
    assert not hasattr(model, "n_features_in_")  # as unfitted as before


NESTED = {
    TopicBirth: {
        "n_seeds": [1, 2.5, "ten"],
        "n_first_seeds": [1, 2.5],
        "max_targets": [0, "all"],
        "min_tokens": [-1, "few"],
    },
    TopicDelete: {"max_targets": [0, "all"], "n_absorbers": [0, "all"]},
    Merge: {"max_members": [1, "all"], "pairs_per_component": [0], "n_neighbors": [0]},
}


@pytest.mark.parametrize("part", NESTED, ids=lambda part: part.__name__)
def test_nested_parameter_is_refused_by_name(part):
    assert set(NESTED[part]) == set(part().get_params(deep=False))
    for name, values in NESTED[part].items():
        for value in values:
            with pytest.raises(ValueError, match=names(name)):
                HDPTopicVB(proposals=[part(**{name: value})]).fit(X)


def test_proposals_of_mixtures():
    for proposal, instead in ((Birth(), "TopicBirth()"), (Delete(), "TopicDelete()")):
        with pytest.raises(ValueError, match=names("proposals", proposal, instead)):
            HDPTopicVB(proposals=(proposal,)).fit(X)
    with pytest.raises(ValueError, match=names("proposals", "TopicBirth()", "use Birth()")):
        DPMixtureVB(proposals=TopicBirth()).fit(ROWS)


def test_parameters_that_exclude_each_other():
    with pytest.raises(ValueError, match=names("batch_size=5", "n_batches=3", "set one")):
        HDPTopicVB(batch_size=5, n_batches=3).fit(X)
    with pytest.raises(ValueError, match=names("topic_word_prior=0.1", "Gaussian", "multinomial")):
        HDPTopicVB(observation="gaussian", topic_word_prior=0.1).fit(ROWS, groups=GROUPS)
    with pytest.raises(ValueError, match=names("memoize=False", "stochastic")):
        HDPTopicVB(memoize=False).partial_fit(X)


@pytest.mark.parametrize("init_params", ["random", "k-means++"])
def test_more_topics_than_documents(init_params):
    model = HDPTopicVB(4, init_params=init_params)
    corpus = np.vstack([X[:3], np.zeros((5, V))])  # of which three have words
    for method in (model.fit, model.partial_fit):
        with pytest.raises(
            ValueError, match=names("n_components=4", init_params, "has 3", "fewer")
        ):
            method(corpus)
    with pytest.raises(ValueError, match=names("n_components=13", "12 word types", "fewer")):
        HDPTopicVB(13, init_params="anchor").fit(X)
    with pytest.raises(ValueError, match=names("n_components=2", "0 word types")):
        HDPTopicVB(2, init_params="anchor").fit(np.eye(4))  # no two tokens in a document
    with pytest.raises(ValueError, match=names("n_components=121", "n_samples=120")):
        HDPTopicVB(121, observation="gaussian").fit(ROWS, groups=GROUPS)
    with pytest.raises(ValueError, match=names("anchor", "words", "k-means++")):
        HDPTopicVB(2, init_params="anchor", observation="gaussian").fit(ROWS, groups=GROUPS)


NNZ = np.count_nonzero(X)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones((3, V + 1)), [(3, V + 1), V, NNZ]),
        (np.ones(V), [(V,), NNZ]),
        (-TOPICS, ["negative", "proportions"]),
        (np.r_[TOPICS, np.zeros((1, V))], ["all zero"]),
        (np.full((NNZ, 2), 0.4), ["row 0", "0.8", "divide"]),
        (np.full((NNZ, 2), np.nan), ["NaN"]),
        ([["a", "b"]] * NNZ, ["numbers"]),
    ],
    ids=["width", "one axis", "negative", "empty topic", "sum", "nan", "strings"],
)
def test_initial_arrays(array, words):
    for init_params in (array, lambda x, n_components, random_state: array):
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=names("init_params", *words)):
                getattr(HDPTopicVB(init_params=init_params), method)(X)


def test_initial_responsibilities_of_rows():
    model = HDPTopicVB(observation="gaussian", init_params=np.ones((119, 1)))
    with pytest.raises(ValueError, match=names("init_params", (119, 1), 120)):
        model.fit(ROWS, groups=GROUPS)


# ---------------------------------------------------------------------- data

COUNTS = {
    "negative": (with_value(-2), ["Negative values in data passed to HDPTopicVB", "X holds -2"]),
    "nan": (with_value(np.nan), ["X", "NaN"]),
    "infinite": (with_value(np.inf), ["X", "infinity"]),
    "overflowing": (np.full((4, V), 1e308), ["X", "inf", "Rescale"]),
    "one axis": (X[0], ["2D array"]),
    "strings": (np.array([["a", "b"]] * 3), ["strings", "CountVectorizer"]),
    "complex": (X * 1j, ["Complex"]),
    "no documents": (X[:0], ["0 sample(s)", "minimum"]),
    "no words": (X[:, :0], ["0 feature(s)", "minimum"]),
}


DENSE_ALONE = {"one axis", "strings", "complex"}


@pytest.mark.parametrize(
    ("name", "form"),
    [(name, np.asarray) for name in COUNTS]
    + [(name, sparse.csr_matrix) for name in COUNTS if name not in DENSE_ALONE],
)
def test_counts(name, form, fitted):
    counts, words = COUNTS[name]
    before = public_state(fitted)
    for method in ("fit", "partial_fit", "transform", "score", "score_samples", "score_completion"):
        with pytest.raises(ValueError, match=names(*words)):
            getattr(fitted, method)(form(counts))
        assert_same_state(public_state(fitted), before)
    with pytest.raises(ValueError, match=names(*words)):
        HDPTopicVB().partial_fit(form(counts))


LISTS = {
    "tables": ([X[:9], X[9:]], ["first entry has shape (9, 12)", "vstack", "partial_fit"]),
    "sparse tables": ([sparse.csr_array(X)] * 2, ["first entry has shape (30, 12)", "vstack"]),
    "ids of words": ([[0, 1, 1], [2]], ["1 to 3 entries", "CountVectorizer(analyzer=list)"]),
    "pairs": ([[(0, 1)], [(1, 2)]], ["pairs", "corpus2csc(X, num_terms=n_features).T"]),
    "empty ones": ([[], [(1, 2), (3, 1)]], ["pairs", "corpus2csc(X, num_terms=n_features).T"]),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_that_are_no_counts(name, fitted):
    x, words = LISTS[name]
    for method in ("fit", "partial_fit", "transform"):
        with pytest.raises(ValueError, match=names("X is a list", *words)):
            getattr(fitted, method)(x)


def test_hashed_words_with_signs():
    with pytest.raises(ValueError, match=names("Negative", "alternate_sign=False", "norm=None")):
        HDPTopicVB().fit(X * np.where(np.arange(V) % 2, 1, -1))


@pytest.mark.extended
def test_half_precision():
    expected = HDPTopicVB(random_state=0).fit(X)
    assert (
        HDPTopicVB(random_state=0).fit(X.astype(np.float16)).lower_bound_ == expected.lower_bound_
    )


def test_corpus_without_words(fitted):
    before = public_state(fitted)
    empty = np.zeros((5, V))
    with pytest.raises(ValueError, match=names("X", "all its counts are zero", "min_df")):
        fitted.fit(empty)
    with pytest.raises(ValueError, match=names("X", "all its counts are zero")):
        HDPTopicVB().partial_fit(empty)
    with pytest.raises(ValueError, match=names("X", "predicted", "zero")):
        fitted.score(empty)
    assert_same_state(public_state(fitted), before)
    fitted.partial_fit(empty)  # a batch of a stream may have none
    assert fitted.lower_bound_ == pytest.approx(before["lower_bound_"])


def test_vocabulary_that_changes(fitted):
    before = public_state(fitted)
    for method in ("partial_fit", "transform", "score"):
        with pytest.raises(ValueError, match=names("X has 11 features", f"{V} features")):
            getattr(fitted, method)(X[:, :11])
    with pytest.raises(ValueError, match=names("X has 3 columns", "topics")):
        HDPTopicVB(2, proposals=None).fit(X).inverse_transform(np.ones((4, 3)))
    assert_same_state(public_state(fitted), before)


def test_failure_leaves_names_of_features():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"w{v}" for v in range(V)])
    model = HDPTopicVB(random_state=0).fit(frame)
    with pytest.raises(ValueError, match="Negative"):
        model.fit(-frame.rename(columns=str.upper).iloc[:, :5])
    assert model.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns=str.upper))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (GROUPS[:-1], [119, 120, "one id"]),
        (np.where(GROUPS == 3, np.nan, GROUPS), ["NaN", "id of its document"]),
        (np.c_[GROUPS, GROUPS], ["one id"]),
        (3, ["one id"]),
        (np.array(["a", 1] * 60, dtype=object), ["sorted", "strings"]),
        (np.where(GROUPS == 3, None, GROUPS), ["None", "id of its document"]),
        ([*map(str, GROUPS[:-1]), None], ["None for row 119", "id of its document"]),
        ([*map(str, GROUPS[:-1]), np.nan], ["NaN for row 119", "id of its document"]),
        (np.full(120, "NaT", dtype="M8[D]"), ["NaT for row 0", "id of its document"]),
    ],
    ids=[
        "short",
        "nan",
        "two columns",
        "number",
        "mixed",
        "none",
        "none in a list",
        "nan among strings",
        "no time",
    ],
)
def test_groups(groups, words, admixture):
    before = public_state(admixture)
    for method in ("fit", "partial_fit", "predict", "transform", "score"):
        with pytest.raises(ValueError, match=names("groups", *words)):
            getattr(admixture, method)(ROWS, groups=groups)
    assert_same_state(public_state(admixture), before)


def test_groups_or_none(fitted, admixture):
    with pytest.raises(ValueError, match=names("observation", "Gaussian", "groups", "multinomial")):
        HDPTopicVB(observation="gaussian").fit(ROWS)
    for method in ("partial_fit", "transform", "score"):
        with pytest.raises(ValueError, match=names("groups", "fitted without")):
            getattr(fitted, method)(X, groups=np.arange(N))
        with pytest.raises(ValueError, match=names("groups")):
            getattr(admixture, method)(ROWS)
    assert not hasattr(fitted, "predict")
    with pytest.raises(TypeError, match=names("Sparse", "toarray")):
        admixture.predict(sparse.csr_matrix(ROWS), groups=GROUPS)


def test_rows_far_out(admixture):
    before = public_state(admixture)
    with pytest.raises(ValueError, match=names("standard deviations", "units")):
        admixture.partial_fit(ROWS * 1e12, groups=GROUPS)
    assert_same_state(public_state(admixture), before)


def test_rows_that_the_likelihood_does_not_take():
    with pytest.raises(ValueError, match=names("bernoulli", "0 and 1")):
        HDPTopicVB(observation="bernoulli").fit(ROWS, groups=GROUPS)
    with pytest.raises(ValueError, match=names("multinomial", "whole numbers")):
        HDPTopicVB().fit(np.abs(ROWS), groups=GROUPS)


# ---------------------------------------------------------------------- calls


def test_calls(fitted):
    for call, words in {
        lambda: fitted.score_completion(X, by="word"): ["by='word'", "tokens"],
        lambda: fitted.score_completion(X, heldout=1.0): ["heldout=1.0", "between"],
        lambda: fitted.score_completion(X, heldout="all"): ["heldout='all'"],
        lambda: fitted.score_completion(X * 0.3, by="tokens"): ["by='tokens'", "whole", "types"],
        lambda: fitted.sample(0): ["n_samples=0"],
        lambda: fitted.sample(1, n_tokens=1.5): ["n_tokens=1.5"],
        lambda: fitted.top_words(n=0): ["n=0"],
        lambda: fitted.top_words(["a", "b"]): ["feature_names", (2,), (V,)],
    }.items():
        with pytest.raises(ValueError, match=names(*words)):
            call()
    with pytest.raises(TypeError, match=names("batch_id=[1]", "hashable")):
        fitted.partial_fit(X, batch_id=[1])


def test_words_of_rows(admixture):
    with pytest.raises(ValueError, match=names("top_words", "groups")):
        admixture.top_words()


def test_another_observation_in_mid_course(fitted):
    before = public_state(fitted)
    fitted.set_params(observation__prior=0.7)
    with pytest.raises(ValueError, match=names("observation", "0.7", "partial_fit", "begin anew")):
        fitted.partial_fit(X)
    assert_same_state(public_state(fitted), before)


@pytest.mark.parametrize(
    "prior, words",
    [
        (0.7, ["=0.7", "continues, 'auto';", "begin anew"]),
        (np.linspace(0.1, 0.5, V), ["=an array of mean 0.3", "continues, 'auto';", "begin anew"]),
        (np.full(V + 1, 0.2), [V + 1, "features"]),
    ],
    ids=["number", "array", "length"],
)
def test_another_prior_in_mid_course(fitted, prior, words):
    before = public_state(fitted)
    fitted.set_params(topic_word_prior=prior)
    with pytest.raises(ValueError, match=names("topic_word_prior", *words)):
        fitted.partial_fit(X)
    assert_same_state(public_state(fitted), before)


def test_priors_that_come_to_the_same(fitted):
    """None is learned; back from another value is not the default."""
    for prior in ("auto", None):
        assert fitted.set_params(topic_word_prior=prior).partial_fit(X).n_iter_ > 0
    other = HDPTopicVB(topic_word_prior=0.5, random_state=0).partial_fit(X)
    for prior in (np.full(V, 0.5), 0.5):
        assert other.set_params(topic_word_prior=prior).partial_fit(X).n_iter_ > 0
    with pytest.raises(ValueError, match=names("topic_word_prior=None, which is 'auto'", "0.5")):
        other.set_params(topic_word_prior=None).partial_fit(X)


def test_interruption_leaves_the_model(fitted):
    before = public_state(fitted)

    def interrupt(*args):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted.set_params(init_params=interrupt).fit(X[:, :5])
    assert_same_state(public_state(fitted), before)
    assert fitted.transform(X).shape == (N, fitted.n_components_)


# ---------------------------------------------------------------------- what is no count

CORPUS, _ = documents(
    120, n_tokens=25, seed=3, topics=np.random.default_rng(5).dirichlet(np.full(40, 0.2), 4)
)
WEIGHTED = {
    "tf-idf": {},
    "tf-idf l1": {"norm": "l1"},
    "tf": {"use_idf": False},
    "tf l1": {"use_idf": False, "norm": "l1"},
    "tf-idf without norm": {"norm": None},
    "not smooth, without norm": {"norm": None, "smooth_idf": False},
    "logarithms, without norm": {"norm": None, "sublinear_tf": True},
    "logarithms alone": {"norm": None, "sublinear_tf": True, "use_idf": False},
    "logarithms": {"sublinear_tf": True},
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [sparse.csr_matrix, lambda x: x.toarray()])
@pytest.mark.parametrize("settings", WEIGHTED.values(), ids=WEIGHTED)
def test_tf_idf_is_warned_of(settings, form, dtype):
    """In `fit` and where a stream begins: it is no error, but K says nothing then."""
    counts = CORPUS[:, CORPUS.any(axis=0)].astype(dtype)
    weighted = form(TfidfTransformer(**settings).fit_transform(counts))
    message = names("not whole", "tf-idf", "CountVectorizer")
    model = HDPTopicVB(max_iter=0, random_state=0)
    for method in ("fit", "fit_transform", "fit"):
        with pytest.warns(UserWarning, match=message):
            getattr(model, method)(weighted)
    with pytest.warns(UserWarning, match=message) as found:
        stream = HDPTopicVB(proposals=None, random_state=0).partial_fit(weighted)
    assert found[0].filename == __file__  # where the user's call is
    stream.partial_fit(weighted[:50])  # said once
    model.transform(weighted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logarithms_of_one_more_are_warned_of(dtype):
    """``log1p`` is as common as tf-idf, and was taken for counts without a word."""
    for form in (sparse.csr_matrix, np.asarray):
        with pytest.warns(
            UserWarning, match=names("not whole", "log(1 + count)", "CountVectorizer")
        ):
            HDPTopicVB(max_iter=0).fit(form(np.log1p(CORPUS.astype(dtype))))


def shares_of_tokens(counts):
    """As from another model: tokens are shared out between types."""
    rng = np.random.default_rng(0)
    return counts * rng.uniform(0.2, 1.0, size=counts.shape)


FRACTIONS = {
    "whole": lambda counts: counts,
    "half": lambda counts: 0.5 * counts,
    "times a number": lambda counts: counts / 3.7,
    "half for some words": lambda counts: (
        counts * np.where(np.arange(counts.shape[1]) % 2, 1.0, 0.5)
    ),
    "two factors": lambda counts: counts * np.where(np.arange(counts.shape[1]) % 2, 0.7, 0.3),
    "three words": lambda counts: counts * np.r_[0.31, 0.47, 0.7, np.ones(counts.shape[1] - 3)],
    "weights of documents": lambda counts: (
        counts * np.linspace(0.1, 2.0, len(counts))[:, np.newaxis]
    ),
    "shares": shares_of_tokens,
    "one": lambda counts: counts + (np.arange(counts.size).reshape(counts.shape) == 3) * 0.25,
    "large": lambda counts: 1e4 * shares_of_tokens(counts),
    "one hot": lambda counts: np.eye(counts.shape[1]),
    "percentages": lambda counts: 100.0 * counts / counts.sum(axis=1, keepdims=True),
}


@pytest.mark.parametrize("change", FRACTIONS.values(), ids=FRACTIONS)
def test_fractions_of_counts_are_counts(change):
    """A word that counts 0.5 is half a token; warnings are errors here."""
    for dtype in (np.float64, np.float32):
        counts = change(CORPUS.astype(float)).astype(dtype)
        assert np.isfinite(HDPTopicVB(max_iter=0, random_state=0).fit(counts).lower_bound_)
