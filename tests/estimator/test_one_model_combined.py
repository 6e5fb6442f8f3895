"""`combine` of a single model is that model, without the rows and the sums of batches that it kept."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, combine

RNG = np.random.default_rng(0)
LABELS = np.repeat(RNG.integers(3, size=30), 8)
ROWS = np.array([[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]])[LABELS] + RNG.normal(size=(240, 2))
TOPICS = RNG.dirichlet(np.full(20, 0.3), size=3)
SHARES = RNG.dirichlet(np.full(3, 0.3), size=60)
WORDS = np.array([RNG.multinomial(40, share @ TOPICS) for share in SHARES])
MODELS = {
    "mixture": (DPMixtureVB, np.split(ROWS, 3), "predict_proba"),
    "topics": (HDPTopicVB, np.split(WORDS, 3), "transform"),
    "states": (HDPHMMVB, np.split(ROWS, 3), "predict_proba"),
}
every_model = pytest.mark.parametrize("name", MODELS)


def check_the_same(model, alone, batches, method):
    assert alone.n_components_ == model.n_components_
    assert alone.component_ids_.tolist() == model.component_ids_.tolist()
    assert alone.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-12)
    for x in batches:
        np.testing.assert_array_equal(getattr(alone, method)(x), getattr(model, method)(x))
        assert alone.score(x) == model.score(x)
    assert len(alone.history_) == 1
    assert alone.history_[0].lower_bound == alone.lower_bound_
    assert alone.converged_ == model.converged_
    assert not hasattr(alone, "labels_")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every_model
def test_neither_components_nor_priors_change(name):
    """Even if unions would raise the objective, and the fit has not converged."""
    make, batches, method = MODELS[name]
    model = make(8, proposals=None, max_iter=2, random_state=0).fit(np.concatenate(batches))
    check_the_same(model, combine([model]), batches, method)


@pytest.mark.quarter
@every_model
def test_a_stream_goes_on_without_its_rows(name, tmp_path):
    make, batches, method = MODELS[name]
    model = make(proposals=("birth", "merge"), random_state=0)
    for i, x in enumerate(batches):
        model.partial_fit(x, batch_id=i)
    alone = combine([model])
    check_the_same(model, alone, batches, method)
    files = []
    for one in (model, alone):
        one.save(tmp_path / "model.bnp")
        files.append((tmp_path / "model.bnp").read_bytes())
    if name != "topics":  # whose rows are kept as sparse ones
        row = batches[-1][5].tobytes()
        assert [row in content for content in files] == [True, False]
    assert len(files[1]) < len(files[0])
    mass = alone.summary()["size"].sum()
    alone.partial_fit(batches[0], batch_id="again")
    assert alone.summary()["size"].sum() == pytest.approx(mass * 4 / 3)
