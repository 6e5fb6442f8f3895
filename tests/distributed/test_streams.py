"""`partial_fit` of data in chunks: a collection is one batch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB
from tests.estimators import (
    FEW_PROPOSALS,
    assert_same_state,
    blobs,
    chains,
    documents,
    public_state,
)

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
import dask.array as da  # noqa: E402

ROWS, _ = blobs(600)
WORDS, _ = documents(90)
SEQUENCES, _ = chains(9)


def lazy(x):
    if isinstance(x, list):
        return [dask.delayed(part) for part in x]
    return da.from_array(x, chunks=(len(x) // 4, -1))


# Name -> (model, two batches in memory).
KINDS = {
    "rows": (DPMixtureVB(proposals=FEW_PROPOSALS), (ROWS[:300], ROWS[300:])),
    "words": (HDPTopicVB(), (WORDS[:45], WORDS[45:])),
    "sequences": (HDPHMMVB(proposals=FEW_PROPOSALS), (SEQUENCES[:5], SEQUENCES[5:])),
    "stochastic": (DPMixtureVB(3, learning_method="stochastic"), (ROWS[:300], ROWS[300:])),
}


def streamed(model, batches, form):
    """The model after two epochs over batches; between them it is pickled."""
    model = pickle.loads(pickle.dumps(model.set_params(random_state=0)))
    for _ in range(2):
        for i, batch in enumerate(batches):
            model.partial_fit(form(batch), batch_id=("batch", i))
        model = pickle.loads(pickle.dumps(model))
    return model


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind == "words")) for kind in KINDS],
)
def test_a_collection_is_a_batch(clusters, kind):
    model, batches = KINDS[kind]
    there = streamed(model, batches, lazy)
    here = streamed(model, batches, lambda x: x)
    assert there.n_components_ == here.n_components_
    # documents go on from their last visit, which was with those of other batches in the pool
    rel = 3e-3 if kind == "words" else 1e-4
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=rel)
    with clusters[1].as_current():
        assert_same_state(public_state(streamed(model, batches, lazy)), public_state(there))


def test_batches_are_told_by_their_content():
    model = DPMixtureVB(random_state=0).partial_fit(lazy(ROWS[:300])).partial_fit(lazy(ROWS[300:]))
    mass = model.lower_bound_
    model.partial_fit(lazy(ROWS[:300]))  # it was seen before, and does not count twice
    assert model.lower_bound_ == pytest.approx(mass, rel=0.01)


@pytest.mark.extended
def test_a_collection_without_words_changes_nothing():
    model = HDPTopicVB(random_state=0).partial_fit(lazy(WORDS[:40])).partial_fit(lazy(WORDS[40:60]))
    before = public_state(model)
    for batch_id in (None, "nothing"):
        model.partial_fit(lazy(np.zeros_like(WORDS[:20])), batch_id=batch_id)
        assert_same_state(public_state(model), before)


@pytest.mark.extended
def test_a_later_batch_has_missing_entries_or_other_units(clusters):
    rows = ROWS.astype(np.float32)
    later = rows[300:].copy()
    later[3, 1], later[7, 0] = np.nan, 1e5
    models = []
    for client in (None, clusters[1]):
        model = DPMixtureVB(random_state=0).partial_fit(rows[:300])
        if client is None:
            models.append(model.partial_fit(lazy(later)))
        else:
            with client.as_current():
                models.append(model.partial_fit(lazy(later)))
    assert_same_state(public_state(models[1]), public_state(models[0]))
    before = vars(models[0]).copy()
    with pytest.raises(ValueError, match=r"Chunk 1.*infinity"):
        models[0].partial_fit(
            lazy(np.where(np.arange(300)[:, np.newaxis] == 80, np.inf, ROWS[:300]))
        )
    far = np.where(np.arange(300)[:, np.newaxis] == 80, 1e12, ROWS[:300])
    with pytest.raises(ValueError, match="standard deviations away"):
        models[0].partial_fit(lazy(far))
    assert vars(models[0]) == before
