"""Documents and sequences in chunks: whole ones in each chunk, the same bits wherever chunks lie."""

from __future__ import annotations

import gc
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from tests.estimators import (
    assert_same_state,
    chains,
    documents,
    grouped_rows,
    matches,
    public_state,
)
from tests.laws.harness import quiet_fit

from .kinds import saved

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
import dask.array as da  # noqa: E402

from sklearn_bnp.distributed import cluster, waiting  # noqa: E402

WORDS, _ = documents(90)
OFTEN = 1.0 + np.arange(90) % 3
TOKENS, GROUPS, _ = grouped_rows(24, 15)
ORDER = np.argsort(GROUPS, kind="stable")
TOKENS, GROUPS = TOKENS[ORDER], np.asarray(GROUPS)[ORDER]
SEQUENCES, _ = chains(9)
LENGTHS = [len(x) for x in SEQUENCES]
SEQUENCE_OF_ROW = np.repeat(np.arange(9), LENGTHS)


def ends(lengths, n):
    """Sizes of chunks of ``n`` neighbours each."""
    return tuple(np.add.reduceat(lengths, np.arange(0, len(lengths), n)).tolist())


def words():
    return da.from_array(WORDS, chunks=(20, -1)).map_blocks(csr_array)


def rows_of_documents():
    return da.from_array(TOKENS, chunks=(ends(np.bincount(GROUPS), 5), -1))


def rows_of_sequences():
    return da.from_array(np.concatenate(SEQUENCES), chunks=(ends(LENGTHS, 2), -1))


# Name -> (model, arguments of fit, whether the kind is quick).
KINDS = {
    "words": (HDPTopicVB(), lambda: {"X": words()}, False),
    "words-anchor": (HDPTopicVB(4, init_params="anchor"), lambda: {"X": words()}, False),
    "words-weights": (HDPTopicVB(5), lambda: {"X": words(), "sample_weight": OFTEN}, False),
    "words-batches": (HDPTopicVB(n_batches=2), lambda: {"X": words()}, False),
    "tokens": (
        HDPTopicVB(observation="gaussian"), lambda: {"X": rows_of_documents(), "groups": GROUPS},
        True,
    ),
    "sequences": (HDPHMMVB(), lambda: {"X": rows_of_sequences(), "lengths": LENGTHS}, True),
    "sequences-many": (
        HDPHMMVB(4, n_init=2), lambda: {"X": [dask.delayed(SEQUENCES[i : i + 2]) for i in range(0, 9, 2)]},
        False,
    ),
    "sequences-ar": (
        HDPHMMVB(observation="autoregressive", low_memory=True),
        lambda: {"X": [dask.delayed(x) for x in SEQUENCES]}, False,
    ),
}  # fmt: skip
NAMES = [
    pytest.param(name, marks=[] if quick else pytest.mark.slow)
    for name, (_, _, quick) in KINDS.items()
]


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_wherever_chunks_lie(clusters, name):
    model, arguments, _ = KINDS[name]
    model.set_params(random_state=0, max_iter=6, tol=0)
    expected = public_state(model.fit(**arguments()))
    assert sum(sum(lap.tried.values()) for lap in expected["history_"]) > 0
    for client in clusters:
        with client.as_current():
            assert_same_state(public_state(model.fit(**arguments())), expected)


@pytest.mark.extended
def test_what_documents_leave_is_written_to_files(clusters, tmp_path, monkeypatch):
    """Now and then, and read in the next visit; no file is left. Large results come as one sum.

    The bits are the same as here.

    Files go with the last visit that needs them, at once: no cycle of references holds it, though waiting
    for tasks is interrupted.
    """

    def fitted():
        model = HDPTopicVB(random_state=0, max_iter=8, tol=0)
        with pytest.warns(match="did not converge"):
            return public_state(model.fit(words()))

    expected = fitted()
    assert expected["history_"][1].accepted == {"birth": 1}
    monkeypatch.setattr(cluster, "_LAPS_A_FILE", 3)
    monkeypatch.setattr(waiting, "_LOOK", 0.02)
    monkeypatch.setattr(cluster, "_LARGE", 0)
    most, take = [0], cluster.take_from_files

    def noted(visit, folder):
        take(visit, folder)
        most.append(len(list(tmp_path.iterdir())))

    monkeypatch.setattr(cluster, "take_from_files", noted)
    gc.disable()
    try:
        for client in clusters:
            with client.as_current(), dask.config.set({"sklearn-bnp.folder": str(tmp_path)}):
                assert_same_state(fitted(), expected)
        assert max(most) > 1 and list(tmp_path.iterdir()) == []
    finally:
        gc.enable()


def test_batches_after_a_fit_of_chunks():
    """Its documents are gone, and the objective stays a bound as more come and topics are joined."""
    model = HDPTopicVB(6, random_state=0, proposals=("merge",), max_iter=3, tol=0)
    with pytest.warns(match="did not converge"):
        model.fit(words())
    for i in range(4):
        model.partial_fit(WORDS[i::4], batch_id=i)
    assert sum(lap.accepted.get("merge", 0) for lap in model.history_) > 0
    assert model._learner_.totals.extra.lengths.total == pytest.approx(180)
    assert sum(len(part.lengths) for part in model._learner_.totals.extra.parts.values()) == 90
    assert model.lower_bound_ == pytest.approx(model._learner_.lower_bound, rel=1e-12)


@pytest.mark.extended
def test_topics_as_in_memory(tmp_path):
    there = HDPTopicVB(random_state=0).fit(words())
    here = HDPTopicVB(random_state=0, n_batches=1).fit(WORDS)
    assert matches(there)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-6)
    files = saved(tmp_path, [{"X": WORDS[i : i + 20]} for i in range(0, 90, 20)])
    assert_same_state(public_state(HDPTopicVB(random_state=0).fit(files)), public_state(there))
    np.testing.assert_allclose(there.transform(words()).compute(), there.transform(WORDS))
    assert there.score(words()) == pytest.approx(there.score(WORDS), rel=1e-12)


def test_steps_of_rows_are_found_as_in_memory():
    def likelihood(X):
        return HDPTopicVB(observation="gaussian").fit(X, groups=GROUPS)._learner_.model.likelihood

    rounded = np.round(TOKENS)
    there = likelihood(da.from_array(rounded, chunks=rows_of_documents().chunks))
    assert there.copies_tell
    np.testing.assert_allclose(there.scaling.ridge, likelihood(rounded).scaling.ridge)


def test_a_chunk_of_rows_that_say_nothing():
    model = HDPTopicVB(3, observation="gaussian", proposals=None, random_state=0)
    X = np.concatenate([TOKENS, np.full((20, TOKENS.shape[1]), np.nan)])
    groups = np.concatenate([GROUPS, np.repeat([100, 101], 10)])
    expected = public_state(model.fit(rows_of_documents(), groups=GROUPS))
    score = model.score(rows_of_documents(), groups=GROUPS)
    chunks = da.from_array(X, chunks=((*rows_of_documents().chunks[0], 20), -1))
    assert_same_state(public_state(model.fit(chunks, groups=groups)), expected)
    assert model.score(chunks, groups=groups) == score
    each = model.predict_proba(chunks, groups=groups).compute()
    np.testing.assert_allclose(each[-20:], model.transform(X, groups=groups)[-20:])


def test_scores_of_rows_in_any_order():
    """The rows of a document are a bag, in chunks as in memory."""
    model = HDPTopicVB(3, observation="gaussian", proposals=None, random_state=0)
    model.fit(TOKENS, groups=GROUPS)
    rng = np.random.default_rng(0)
    moved = np.concatenate(
        [rng.permutation(np.flatnonzero(g == GROUPS)) for g in np.unique(GROUPS)]
    )
    chunks = da.from_array(TOKENS[moved], chunks=rows_of_documents().chunks)
    score = model.score(TOKENS, groups=GROUPS)
    for rows in (rows_of_documents(), chunks):
        assert model.score(rows, groups=GROUPS) == pytest.approx(score, rel=1e-12)
    each = model.score_samples(chunks, groups=GROUPS).compute()
    np.testing.assert_allclose(each, model.score_samples(TOKENS, groups=GROUPS), rtol=1e-12)


@pytest.mark.extended
def test_sequences_as_in_memory():
    X = np.concatenate(SEQUENCES)
    # both have to converge well: rounding decides how soon each of them ends
    there = HDPHMMVB(random_state=0, tol=1e-7).fit(rows_of_sequences(), lengths=LENGTHS)
    here = HDPHMMVB(random_state=0, n_batches=1, tol=1e-7).fit(SEQUENCES)
    assert there.n_components_ == here.n_components_
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-5)
    for name in ("predict", "predict_proba", "transform", "score_samples"):
        lazy = getattr(there, name)(rows_of_sequences(), lengths=LENGTHS)
        np.testing.assert_allclose(lazy.compute(), getattr(there, name)(X, lengths=LENGTHS))
    chunks = [dask.delayed(SEQUENCES[:4]), dask.delayed(SEQUENCES[4:])]
    assert there.score(chunks) == pytest.approx(there.score(SEQUENCES), rel=1e-12)


@pytest.mark.parametrize(
    ("model", "X"),
    [(DPMixtureVB(2), TOKENS), (HDPTopicVB(2), WORDS), (HDPHMMVB(2), TOKENS)],
    ids=["mixture", "topics", "states"],
)
def test_features_of_chunks_stay_lazy(model, X):
    """Also where frames are asked for: dask has none of these."""
    pytest.importorskip("pandas")
    lazy = da.from_array(X, chunks=(len(X), -1))
    model.set_params(max_iter=0).set_output(transform="pandas").fit(X)
    expected = model.transform(X)
    model.fit(lazy)
    with config_context(transform_output="pandas"):
        features = model.transform(lazy)
        [part] = model.transform([dask.delayed(X)])
        assert isinstance(features, da.Array)
        np.testing.assert_array_equal(features.compute(), part.compute())
    assert features.shape == expected.shape
    assert isinstance(model.fit_transform(lazy), da.Array)


@pytest.mark.extended
@pytest.mark.parametrize("wrap", [np.asarray, pytest.param(list, marks=pytest.mark.slow)])
def test_weights_of_sequences_beside_lengths(wrap):
    """They are cut as the lengths are, whatever the kind of list."""
    weight = wrap([1.0, 2.0, 0.5] * 3)
    given = {"X": rows_of_sequences(), "lengths": LENGTHS}
    there, rows = HDPHMMVB(random_state=0), HDPHMMVB(random_state=0)
    there.fit(**given, sample_weight=weight)
    rows.fit(**given, sample_weight=np.repeat(weight, LENGTHS))
    assert_same_state(public_state(there), public_state(rows))
    here = HDPHMMVB(random_state=0, n_batches=1).fit(SEQUENCES, sample_weight=weight)
    assert there.n_components_ == here.n_components_
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-5)
    with pytest.raises(ValueError, match="sample_weight has 8 entries"):
        there.fit(**given, sample_weight=weight[:8])


def test_documents_and_sequences_are_whole():
    with pytest.raises(ValueError, match=r"rows of 6 in several chunks .* whole groups"):
        HDPTopicVB(observation="gaussian").fit(
            da.from_array(TOKENS, chunks=(100, -1)), groups=GROUPS
        )
    with pytest.raises(ValueError, match="whole sequences"):
        HDPHMMVB().fit(da.from_array(np.concatenate(SEQUENCES), chunks=(100, -1)), lengths=LENGTHS)
    with pytest.raises(ValueError, match="no tokens"):
        HDPTopicVB().fit(da.zeros((20, 5), chunks=(10, 5)))
    with pytest.raises(TypeError, match=r"X\.compute\(\)"):
        HDPHMMVB(random_state=0).fit(SEQUENCES).decode(rows_of_sequences())


@pytest.mark.parametrize("kind", ["documents", "sequences"])
def test_predictions_take_whole_groups_alone(kind, clusters):
    """As `fit` does: a part of a group would be predicted as if it were all of it."""
    if kind == "documents":
        model = HDPTopicVB(3, observation="gaussian", max_iter=0).fit(TOKENS, groups=GROUPS)
        X, groups, whole = TOKENS, GROUPS, rows_of_documents()
    else:
        model = HDPHMMVB(3, max_iter=0).fit(SEQUENCES)
        X, groups = np.concatenate(SEQUENCES), SEQUENCE_OF_ROW
        whole = rows_of_sequences()
    cut = da.from_array(X, chunks=(100, -1))
    names = ("transform", "predict_proba", "predict", "score_samples")
    lazy = da.from_array(groups, chunks=50)
    for name in names:
        expected = getattr(model, name)(X, groups=groups)
        for own in (groups, lazy):
            found = getattr(model, name)(whole, groups=own).compute()
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        with pytest.raises(ValueError, match="in several chunks"):
            getattr(model, name)(cut, groups=groups)
        features = getattr(model, name)(cut, groups=lazy)
        with pytest.raises(ValueError, match="in several chunks"):
            features.compute(scheduler="synchronous")
    score = model.score(X, groups=groups)
    for own in (groups, lazy):
        assert model.score(whole, groups=own) == pytest.approx(score, rel=1e-9)
        with pytest.raises(ValueError, match="in several chunks"):
            model.score(cut, groups=own)
    with (
        clusters[1].as_current(),
        pytest.raises(ValueError, match="in several chunks"),
    ):
        model.score(cut, groups=lazy)
    halves = [dask.delayed(X[:100]), dask.delayed(X[100:])]
    with pytest.raises(ValueError, match="in several chunks"):
        model.predict(halves, groups=[groups[:100], groups[100:]])


@pytest.mark.parametrize("estimator", [HDPTopicVB, HDPHMMVB])
def test_ids_that_begin_anew(estimator):
    """Each chunk numbers its groups from 0: the message says how to tell them apart, and that works."""
    X, groups = np.concatenate(SEQUENCES), np.arange(len(SEQUENCE_OF_ROW)) // 50
    edge = 100
    halves = [dask.delayed(X[:edge]), dask.delayed(X[edge:])]
    own = [groups[:edge], groups[edge:] - groups[edge]]
    model = estimator(observation="gaussian", max_iter=2, random_state=0)
    with pytest.raises(ValueError, match=r"f'{chunk}-{id}'"):
        model.fit(halves, groups=own)
    told_apart = [[f"{chunk}-{one}" for one in ids] for chunk, ids in enumerate(own)]
    found = quiet_fit(model, halves, groups=told_apart)
    expected = quiet_fit(clone(model), halves, groups=[groups[:edge], groups[edge:]])
    assert found.lower_bound_ == pytest.approx(expected.lower_bound_)


@pytest.mark.parametrize(
    ("model", "data", "rows"),
    [
        (DPMixtureVB(2), WORDS, WORDS[:0]),
        (HDPTopicVB(2), WORDS, 0 * WORDS[:20]),
        (HDPHMMVB(2, observation="autoregressive"), SEQUENCES, np.nan * SEQUENCES[0]),
    ],
    ids=["mixture", "topics", "states"],
)
def test_nothing_to_score(model, data, rows):
    """It is an error, as in memory."""
    model.set_params(max_iter=0).fit(data)
    with pytest.raises(ValueError, match="nothing to score"):
        model.score([dask.delayed(rows), dask.delayed(rows)])
    with pytest.raises(ValueError, match=r"no row|no tokens|0 sample"):
        model.score(rows)


@pytest.mark.quarter
@pytest.mark.parametrize("chunks", [9, 2, ((4, 4, 1),)])
@pytest.mark.parametrize("n_workers", [None, 2])
def test_lazy_lengths_and_weights(clusters, chunks, n_workers):
    """They are brought into the chunks of X, whatever theirs are, and weights may be of sequences."""
    weight = np.array([1.0, 2.0, 0.5] * 3)
    X, lengths = rows_of_sequences(), da.from_array(np.array(LENGTHS), chunks=chunks)
    each = da.from_array(weight, chunks=chunks)
    of_rows = da.from_array(np.repeat(weight, LENGTHS), chunks=100)
    model = HDPHMMVB(2, proposals=None, max_iter=2, tol=0, random_state=0)
    with nullcontext() if n_workers is None else clusters[1].as_current():
        with pytest.warns(match="did not converge"):
            expected = public_state(model.fit(X, lengths=LENGTHS, sample_weight=weight))
        for own in (each, of_rows, weight):
            with pytest.warns(match="did not converge"):
                model.fit(X, lengths=lengths, sample_weight=own)
            assert_same_state(public_state(model), expected)
        assert model.score(X, lengths=lengths) == model.score(X, lengths=LENGTHS)
        labels = model.predict(X, lengths=lengths).compute(scheduler="synchronous")
    np.testing.assert_array_equal(labels, model.predict(np.concatenate(SEQUENCES), lengths=LENGTHS))


def test_sequences_beside_empty_chunks():
    """At the beginning, between others and at the end."""
    weight = [1.0, 2.0, 0.5] * 3
    X, half = np.concatenate(SEQUENCES), sum(LENGTHS[:4])
    parts = [X[:0], X[:half], X[:0], X[half:], X[:0]]
    layers = {("rows", i, 0): part for i, part in enumerate(parts)}
    sizes = tuple(map(len, parts)), (X.shape[1],)
    holey = da.Array(layers, "rows", sizes, dtype=float)
    model = HDPHMMVB(2, proposals=None, max_iter=1, tol=0, random_state=0)
    found = []
    for rows in (da.from_array(X, chunks=((half, len(X) - half), -1)), holey):
        with pytest.warns(match="did not converge"):
            model.fit(rows, lengths=LENGTHS, sample_weight=weight)
        labels = model.predict(rows, lengths=LENGTHS).compute(scheduler="synchronous")
        np.testing.assert_array_equal(labels, model.predict(X, lengths=LENGTHS))
        found.append(model.lower_bound_)
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    with pytest.raises(ValueError, match="whole sequences"):
        model.fit(holey, lengths=[])
    with pytest.raises(ValueError, match="whole sequences"):
        model.fit(holey, lengths=[half - 1, len(X) - half + 1])


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("kind", ["rows", "documents", "tokens", "sequences"])
def test_chunks_of_little_weight(kind):
    """The sum of all weights must not vanish; that of a chunk may, but its weights must be right."""
    model, X, unit, given = {
        "rows": (DPMixtureVB(2), TOKENS, "row", {}),
        "documents": (HDPTopicVB(2), WORDS, "document", {}),
        "tokens": (HDPTopicVB(2, observation="gaussian"), TOKENS, "row", {"groups": GROUPS}),
        "sequences": (HDPHMMVB(2), np.concatenate(SEQUENCES), "row", {"groups": SEQUENCE_OF_ROW}),
    }[kind]
    groups = given.get("groups", np.arange(len(X)) // 30)
    n = int(np.searchsorted(groups, groups[len(groups) // 3]))
    parts = [X[:n], X[n:]]
    model.set_params(proposals=None, max_iter=1, tol=0, random_state=0)
    cut = {name: [ids[:n], ids[n:]] for name, ids in given.items()}

    def fitted(*weights):
        chunks = list(map(dask.delayed, parts))
        return model.fit(chunks, sample_weight=list(weights), **cut).lower_bound_

    ones, zeros = np.ones(len(X) - n), np.zeros(n)
    nothing = fitted(zeros, ones)
    assert fitted(np.full(n, 1e-10), ones) == pytest.approx(nothing, rel=0.1)
    assert fitted(0, 1.0) == nothing
    with pytest.raises(
        ValueError, match=f"Chunk 0: sample_weight has shape .* one weight a {unit}"
    ):
        fitted(zeros[:-2], ones)
    with pytest.raises(ValueError, match=r"^sample_weight sums to .* must not be all zero"):
        fitted(np.full(n, 1e-12), 1e-12 * ones)
    with pytest.raises(ValueError, match=r"sample_weight sums to inf"):
        fitted(np.full(n, 1e308), ones)
    with pytest.raises(ValueError, match="weight 0 throughout"):
        fitted(zeros, 0 * ones)
