"""`DPMixtureVB` together with the rest of scikit-learn, joblib and pickle."""

import builtins
import importlib.util
import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_bnp import (
    HDPHMMVB,
    Birth,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    Merge,
    PitmanYorAllocation,
)
from sklearn_bnp.engine import progress
from sklearn_bnp.inputs.blas import blas_on_one_thread
from tests.estimators import (
    CENTERS,
    FEW_PROPOSALS,
    assert_same_state,
    blobs,
    chains,
    documents,
    one_hot,
    public_state,
    same_partition,
)

X, truth = blobs(300)
COUNTS, _ = documents()
SEQUENCES, _ = chains()
ROWS = np.concatenate(SEQUENCES)
K = len(CENTERS)

# Every estimator, and data for it.
CASES = [(DPMixtureVB, X), (HDPTopicVB, COUNTS), (HDPHMMVB, SEQUENCES), (HDPHMMVB, ROWS)]
all_estimators = pytest.mark.parametrize(
    ("estimator", "data"),
    CASES,
    ids=["mixture", "topics", "sequences", "one sequence"],
)


# ---------------------------------------------------------------------- parameters


def test_nested_parameters_of_a_name():
    model = DPMixtureVB()
    assert model.get_params()["observation"] == "gaussian"
    assert model.set_params(observation__covariance_type="diag") is model
    assert model.observation.covariance_type == "diag"
    assert model.get_params()["observation__covariance_type"] == "diag"
    model.set_params(observation="bernoulli", observation__prior=(2.0, 2.0))
    assert model.observation.prior == (2.0, 2.0)
    both = {"observation__reg_covar": 1e-3, "observation": "gaussian", "n_components": 2}
    assert model.set_params(**both).observation.reg_covar == 1e-3
    assert model.n_components == 2


def test_nested_parameters_of_an_object():
    observation = GaussianObservation("spherical")
    model = DPMixtureVB(observation=observation).set_params(observation__zero_mean=True)
    assert model.observation is observation
    assert observation.zero_mean


def test_nested_parameters_of_an_allocation():
    model = DPMixtureVB(allocation="pitman-yor")
    assert "allocation__discount" not in model.get_params()
    assert model.set_params(allocation__discount=0.3).allocation.discount == 0.3
    assert model.get_params()["allocation__discount"] == 0.3
    allocation = PitmanYorAllocation()
    model = DPMixtureVB(allocation=allocation).set_params(allocation__concentration=2.0)
    assert model.allocation is allocation
    assert allocation.concentration == 2.0
    assert clone(model).allocation is not allocation
    both = {"allocation__concentration": 3.0, "allocation": "dp", "observation__zero_mean": True}
    assert model.set_params(**both).allocation.concentration == 3.0
    assert model.observation.zero_mean
    with pytest.raises(ValueError, match="discount"):
        model.set_params(allocation__discount=0.5)


@pytest.mark.extended
def test_fitted_models_keep_their_allocation():
    """Parameters that are set after a fit are for the next one."""
    model = DPMixtureVB(allocation=PitmanYorAllocation(discount=0.2), random_state=0).fit(X)
    score = model.score(X)
    model.set_params(allocation__discount=0.7)
    assert model._model.allocation.discount == model.discount_ == 0.2
    assert model.score(X) == score
    assert model.fit(X).discount_ == 0.7


def test_clone():
    model = DPMixtureVB(
        observation=GaussianObservation("diag", mean_prior=[0.0, 1.0, 2.0]),
        proposals=("birth", Merge(max_members=2)), init_params=np.ones((300, 1)), random_state=0,
    ).fit(X)  # fmt: skip
    copy = clone(model)
    assert not hasattr(copy, "weights_")
    assert copy.observation is not model.observation
    assert copy.proposals[1] is not model.proposals[1]
    assert_same_state(public_state(copy.fit(X)), public_state(model))


def test_representation_shows_what_was_set():
    assert repr(DPMixtureVB()) == "DPMixtureVB()"
    model = DPMixtureVB(5, observation=GaussianObservation("diag"), proposals=(Birth(n_seeds=4),))
    shown = re.sub(r"\s", "", repr(model))
    assert "GaussianObservation(covariance_type='diag')" in shown
    assert "proposals=(Birth(n_seeds=4),)" in shown
    assert "DPMixtureVB" in model._repr_html_()


# ---------------------------------------------------------------------- model selection


@pytest.mark.extended
def test_grid_search_over_the_observation():
    rng = np.random.default_rng(0)
    mixing = np.array([[1.0, 0.9, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 1.0]])
    rows = CENTERS[truth] + rng.normal(size=X.shape) @ mixing  # correlated within clusters
    search = GridSearchCV(
        DPMixtureVB(proposals=FEW_PROPOSALS, random_state=0),
        {"observation__covariance_type": ["spherical", "diag", "full"], "allocation": ["dp"]},
        cv=2,
        error_score="raise",
    ).fit(rows)
    assert search.best_params_["observation__covariance_type"] == "full"
    assert search.best_score_ == pytest.approx(search.cv_results_["mean_test_score"].max())
    assert same_partition(search.predict(rows), truth)


@pytest.mark.extended
def test_grid_search_over_the_allocation():
    grid = {"allocation__discount": [0.0, 0.5, "auto"], "allocation__concentration": [1.0, 5.0]}
    search = GridSearchCV(
        DPMixtureVB(allocation="pitman-yor", proposals=FEW_PROPOSALS, random_state=0),
        grid,
        cv=2,
        error_score="raise",
    ).fit(X)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert search.best_estimator_.n_components_ == K


def test_pipeline():
    pipe = Pipeline([("scale", StandardScaler()), ("mixture", DPMixtureVB(random_state=0))])
    pipe.set_params(mixture__observation__covariance_type="diag")
    assert same_partition(pipe.fit_predict(X), truth)
    assert pipe.predict_proba(X).shape == (300, K)
    assert pipe.score(X) == pytest.approx(pipe.score_samples(X).mean())
    assert pipe[-1].observation.covariance_type == "diag"
    weight = np.ones(300)
    assert pipe.fit(X, mixture__sample_weight=weight)[-1].n_components_ == K


def test_responsibilities_are_features():
    labels = np.where(truth == 0, "left", "other")
    pipe = make_pipeline(DPMixtureVB(random_state=0), LogisticRegression())
    assert pipe.fit(X, labels).score(X, labels) == 1.0
    assert pipe[:-1].get_feature_names_out().tolist() == [f"dpmixturevb{k}" for k in range(K)]


def test_set_output():
    pandas = pytest.importorskip("pandas")
    pipe = make_pipeline(PCA(2), DPMixtureVB(random_state=0)).set_output(transform="pandas")
    out = pipe.fit_transform(pandas.DataFrame(X, index=np.arange(300) + 7))
    assert out.columns.tolist() == [f"dpmixturevb{k}" for k in range(K)]
    assert out.index.tolist() == list(range(7, 307))


@pytest.mark.extended
def test_metadata_routing():
    with config_context(enable_metadata_routing=True):
        model = DPMixtureVB(random_state=0).set_fit_request(sample_weight=True)
        model.set_partial_fit_request(batch_id=True, sample_weight=False)
        model.set_score_request(sample_weight=False)
        weight = np.r_[np.ones(150), np.full(150, 1e-2)]
        search = GridSearchCV(model, {"n_components": [1]}, cv=2).fit(X, sample_weight=weight)
        alone = clone(model).fit(X, sample_weight=weight)
        assert_same_state(public_state(search.best_estimator_), public_state(alone))


# ---------------------------------------------------------------------- threads and processes


# processes start anew for each case; what they are sent differs between models, not between their rows
@pytest.mark.extended
@pytest.mark.parametrize(
    ("backend", "estimator", "data"),
    [
        *(("threading", *case) for case in CASES),
        *(("loky", *case) for case in CASES[:3]),
        pytest.param("loky", *CASES[3], marks=pytest.mark.slow),
    ],
)
def test_fits_in_parallel(backend, estimator, data):
    model = estimator(proposals=FEW_PROPOSALS, random_state=0)
    alone = cross_val_score(model, data, cv=2)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = cross_val_score(model.set_params(n_jobs=2), data, cv=2)
    np.testing.assert_array_equal(together, alone)


@pytest.mark.extended
@all_estimators
def test_prediction_from_many_threads(estimator, data):
    model = estimator(proposals=FEW_PROPOSALS, random_state=0).fit(data)
    rows = data * 20 if isinstance(data, list) else np.repeat(data, 20, axis=0)
    methods = (
        "predict_proba",
        "score_samples",
        "predict",
        "transform",
        "score_completion",
        "decode",
        "score",
    )
    calls = [getattr(model, name) for name in methods if hasattr(model, name)][:4] * 4
    expected = [call(rows) for call in calls[:4]]
    before = public_state(model)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda call: call(rows), calls))
    for i, result in enumerate(results):
        np.testing.assert_equal(result, expected[i % 4])
    assert_same_state(public_state(model), before)


def test_overlapping_calls_give_blas_its_threads_back():
    with threadpool_limits(limits=2, user_api="blas"):
        before = [library["num_threads"] for library in threadpool_info()]
        first, second = blas_on_one_thread(), blas_on_one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        held = [library for library in threadpool_info() if library["user_api"] == "blas"]
        assert {library["num_threads"] for library in held} <= {1}
        second.__exit__(None, None, None)
        assert [library["num_threads"] for library in threadpool_info()] == before


# ---------------------------------------------------------------------- pickle


def test_pickle():
    model = DPMixtureVB(random_state=0).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    assert_same_state(public_state(copy), public_state(model))
    for method in ("predict_proba", "score_samples"):
        assert np.array_equal(getattr(copy, method)(X), getattr(model, method)(X))
    assert np.array_equal(copy.sample(9)[0], model.sample(9)[0])


@pytest.mark.quarter
@pytest.mark.parametrize("params", [{}, {"n_batches": 20}, {"proposals": None, "n_components": 3}])
def test_pickle_holds_no_rows(params):
    """Only a label for each row."""
    models = [
        DPMixtureVB(random_state=0, **params).fit(blobs(n)[0], sample_weight=weight)
        for n, weight in ((300, None), (3000, None), (3000, 1.0))
    ]
    sizes = [len(pickle.dumps(model)) - model.labels_.nbytes for model in models]
    assert max(sizes) < 20_000
    assert max(sizes) - min(sizes) < 3000  # history


def test_initial_responsibilities_are_only_a_parameter():
    model = DPMixtureVB(init_params=one_hot(truth), random_state=0).fit(X)
    model.init_params = None
    assert len(pickle.dumps(model)) - model.labels_.nbytes < 20_000


# ---------------------------------------------------------------------- progress


LINE = re.compile(r"DPMixtureVB: lap +(\d+)  K=(\d+) +ELBO=(-[\d.e+]+) +[\d.]+ s  (.+)")


class Bar:
    """Stands in for tqdm, and for what it shows when a line is written above it."""

    def __init__(self, desc, unit, leave, file):
        self.file, self.n, self.closed = file, 0, False
        Bar.last = self

    def write(self, line, file):
        print(line, file=file)

    def update(self):
        self.n += 1

    def close(self):
        self.closed = True


@pytest.mark.parametrize("bar", [None, Bar], ids=["text", "tqdm"])
def test_one_line_a_lap(bar, monkeypatch, capsys):
    monkeypatch.setattr(progress, "tqdm", bar)
    monkeypatch.setattr(progress, "_is_watched", lambda: True)
    model = DPMixtureVB(verbose=1, random_state=0).fit(X)
    out, err = capsys.readouterr()
    found = [LINE.fullmatch(line).groups() for line in err.splitlines()]
    assert out == ""
    assert [int(lap) for lap, *_ in found] == list(range(1, model.n_iter_ + 1))
    assert [int(n) for _, n, *_ in found] == [lap.n_components for lap in model.history_]
    assert [float(bound) for *_, bound, _ in found] == pytest.approx(model.lower_bounds_, rel=1e-6)
    assert any("birth" in moves for *_, moves in found)
    refused = [
        {kind: n - lap.accepted.get(kind, 0) for kind, n in lap.tried.items()}
        for lap in model.history_
    ]
    for (*_, moves), lap in zip(found, refused, strict=True):
        assert moves.count("refused") == sum(n > 0 for n in lap.values())
    lap = model.history_[-1]._replace(tried={"birth": 3, "merge": 1}, accepted={"birth": 1})
    assert progress.line_of(lap, "fit").endswith("1 birth, 2 births refused, 1 merge refused")
    if bar:
        assert Bar.last.closed
        assert Bar.last.n == model.n_iter_


def test_lines_may_go_elsewhere(monkeypatch, capsys, caplog):
    """They are records of the package's logger."""
    monkeypatch.setattr(progress.LOGGER, "handlers", [caplog.handler])
    model = DPMixtureVB(verbose=1, random_state=0).fit(X)
    assert capsys.readouterr() == ("", "")
    assert [record.name for record in caplog.records] == ["sklearn_bnp"] * model.n_iter_
    assert all(LINE.fullmatch(record.getMessage()) for record in caplog.records)


def test_no_bar_in_a_log(capsys):
    pytest.importorskip("tqdm")
    DPMixtureVB(proposals=FEW_PROPOSALS, verbose=1, random_state=0).fit(X)
    assert "\r" not in capsys.readouterr().err


def test_one_line_a_lap_through_tqdm_itself(monkeypatch, capsys):
    tqdm = pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "tqdm", tqdm.tqdm)
    monkeypatch.setattr(progress, "_is_watched", lambda: True)
    model = DPMixtureVB(proposals=FEW_PROPOSALS, verbose=1, random_state=0).fit(X)
    assert len(re.findall("DPMixtureVB: lap +", capsys.readouterr().err)) == model.n_iter_


@pytest.mark.parametrize("installed", [False, True])
def test_tqdm_is_optional(installed, monkeypatch):
    if installed:
        pytest.importorskip("tqdm")
    load = builtins.__import__

    def without_tqdm(name, *args):
        if name.partition(".")[0] == "tqdm" and not installed:
            raise ImportError(name)
        return load(name, *args)

    spec = importlib.util.spec_from_file_location("another_progress", progress.__file__)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(builtins, "__import__", without_tqdm)
    spec.loader.exec_module(module)
    assert (module.tqdm is not None) == installed


def test_batches_report_their_laps(capsys):
    model = DPMixtureVB(proposals=FEW_PROPOSALS, verbose=1, random_state=0)
    for batch in np.array_split(X, 3):
        model.partial_fit(batch)
    found = [LINE.fullmatch(line) for line in capsys.readouterr().err.splitlines()]
    assert [int(line[1]) for line in found] == [lap.lap for lap in model.history_]


@pytest.mark.quarter
@all_estimators
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_silent_by_default(method, estimator, data, capsys):
    getattr(estimator(random_state=0), method)(data)
    assert capsys.readouterr() == ("", "")


def test_fits_that_fail_close_the_bar(monkeypatch):
    monkeypatch.setattr(progress, "tqdm", Bar)
    monkeypatch.setattr(progress, "_is_watched", lambda: True)

    def stop(lap):
        raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "show", lambda self, lap: stop(lap))
    with pytest.raises(KeyboardInterrupt):
        DPMixtureVB(verbose=1, random_state=0).fit(X)
    assert Bar.last.closed
