"""Checkpoints, fits that go on where they were left, and callbacks."""

import os
import pickle
import signal
import subprocess
import sys
import time
from copy import copy, deepcopy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import sklearn_bnp
from sklearn_bnp import (
    HDPHMMVB,
    Checkpoint,
    DPMixtureVB,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)
from sklearn_bnp.estimator import callbacks
from sklearn_bnp.estimator.archive import read_archive, write_archive
from tests.damaged_files import content
from tests.estimator.test_persistence import OwnWeights, Times
from tests.estimators import assert_same_state, names, public_state
from tests.killed_fits import FITS, IN_CHUNKS, PARTS, same_fit, whole
from tests.saved_models import COUNTS, GROUPS, NEAR, ROWS, SEQUENCES, X

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
ROOT = Path(__file__).resolve().parents[2]
GAPPY = np.where(np.random.default_rng(0).random((60, 3)) < 0.1, np.nan, X[:60, :3])
EVERY = {**FITS, **IN_CHUNKS}


class Stops(BaseException):
    """As a fit is interrupted from the keyboard."""


class Watches:
    """Callback that counts what happens, and does something at the end of some lap."""

    def __init__(self, at=None, does=None):
        self.at, self.does, self.events, self.models, self.n_laps = at, does, [], [], 0

    def setup(self, estimator, context):
        self.events.append("setup")
        self.n_laps = 0

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if fitted_estimator is not None:
            self.models.append(fitted_estimator)
        if context.task_name in ("lap", "epoch"):
            self.n_laps += 1
            if self.n_laps == self.at:
                return self.does()


def interrupt():
    raise Stops


def stop():
    return True


@pytest.mark.extended
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EVERY)
def test_fits_that_were_interrupted_go_on(name, every, tmp_path):
    """After their first lap, and so many laps later, again and again."""
    at = 1 - every
    while True:
        at += every
        folder = tmp_path / str(at)
        watch = Watches(at, interrupt)
        model = EVERY[name](fit=False).set_callbacks(Checkpoint(folder, every=0), watch)
        try:
            EVERY[name](model)
        except Stops:
            assert watch.events[-1] == "teardown"
            assert not hasattr(model, "n_components_")
        if watch.n_laps < at:
            break
        again = EVERY[name](fit=False).set_callbacks(Checkpoint(folder, every=0))
        assert same_fit(EVERY[name](again), whole(name)), at
        assert len(os.listdir(folder)) == 1
    assert at > max(4, every + 1)


@pytest.mark.quarter
@pytest.mark.parametrize("name", EVERY)
def test_fits_that_ended_are_read(name, tmp_path):
    model = EVERY[name](EVERY[name](fit=False).set_callbacks(Checkpoint(tmp_path)))
    watch = Watches()
    again = EVERY[name](fit=False).set_callbacks(watch, Checkpoint(tmp_path))
    assert same_fit(EVERY[name](again), model)
    assert "end lap" not in watch.events


class Limit:
    """Callback that ends some task early, and all tasks of this kind after it, as a limit of time does."""

    def __init__(self, task_name, at):
        self.task_name, self.at, self.n = task_name, at, 0

    def setup(self, estimator, context):
        self.n = 0

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.n += context.task_name == self.task_name
        return context.task_name == self.task_name and self.n >= self.at


@pytest.mark.quarter
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(("every", "first"), [(0, True), (1000, False)])
def test_fits_that_were_stopped_go_on(name, every, first, tmp_path):
    """From the lap after which a callback has stopped them, again and again, to the same end."""
    for n_fits in range(50):
        limit = Limit("lap", 2)
        both = [Checkpoint(tmp_path, every=every), limit][:: 1 if first else -1]
        model = EVERY[name](EVERY[name](fit=False).set_callbacks(*both))
        if limit.n == 0:  # the result is read
            assert n_fits > 2
            break
    assert same_fit(model, whole(name))


@pytest.mark.quarter
@pytest.mark.parametrize("name", [name for name in FITS if name.startswith("several")])
@pytest.mark.parametrize("task_name", ["lap", "initialisation"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_fits_that_were_stopped_between_initialisations_go_on(name, task_name, at, tmp_path):
    stops = [Checkpoint(tmp_path, every=0), Limit(task_name, at)]
    FITS[name](FITS[name](fit=False).set_callbacks(*stops))
    again = FITS[name](fit=False).set_callbacks(Checkpoint(tmp_path, every=0))
    assert same_fit(FITS[name](again), whole(name))


@pytest.mark.quarter
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("task_name", ["lap", "initialisation"])
@pytest.mark.parametrize("random_state", [0, None])
def test_stopped_fits_from_functions_go_on(random_state, task_name, at, tmp_path):
    """Those without a seed, too."""
    params = {"n_init": 3, "max_iter": 3, "proposals": None, "random_state": random_state}
    model = DPMixtureVB(init_params=random_shares, **params)
    model.set_callbacks(Checkpoint(tmp_path, every=0), Limit(task_name, at)).fit(X)
    stopped = len(os.listdir(tmp_path))
    watch = Watches()
    again = clone(model).set_callbacks(Checkpoint(tmp_path, every=0), watch).fit(X)
    ends = task_name == "initialisation" and at == 3
    assert stopped == (not ends or random_state == 0)
    if random_state == 0:
        assert again.lower_bounds_ == clone(model).set_callbacks().fit(X).lower_bounds_
    elif not ends:
        # the third is the last one
        done = 3 * at if task_name == "initialisation" else {1: 1, 2: 2, 3: 4}[at]
        assert watch.n_laps == 9 - done


def started(name, folder):
    """A process that fits the model of this name with checkpoints in a folder, and says when laps end."""
    command = [sys.executable, "-u", "-m", "tests.killed_fits", name, str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def killed_and_resumed(name, folder, rng, n_early=3):
    """The model of a fit whose process is killed, and started again, until it comes to its end.

    It is killed so many times early.
    """
    n_killed = 0
    while True:
        process = started(name, folder)
        with process.stdout as lines:
            assert lines.readline() == "ready\n"
            time.sleep(rng.exponential(0.05 if n_killed < n_early else 5.0))
            process.send_signal(signal.SIGKILL)
            ended = "done\n" in list(lines)
        process.wait()
        n_killed += 1
        if ended or process.returncode == 0:
            return sklearn_bnp.load(folder / "model.bnp"), n_killed


@pytest.mark.extended
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("name", ["several starts"])
def test_processes_that_are_killed(name, tmp_path):
    model, _ = killed_and_resumed(name, tmp_path, np.random.default_rng(0), n_early=1)
    assert same_fit(model, whole(name))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("name", FITS)
def test_processes_that_are_killed_at_many_moments(name, tmp_path):
    rng, n = np.random.default_rng(1), 0
    while n < 50:
        model, n_killed = killed_and_resumed(name, tmp_path / str(n), rng)
        n += n_killed
        assert same_fit(model, whole(name))


def test_other_fits_have_other_files(tmp_path):
    """The data, the weights, a parameter: any of these; but not the number of threads."""
    model = DPMixtureVB(random_state=0, max_iter=2).set_callbacks(Checkpoint(tmp_path))
    fits = [
        lambda: model.fit(X), lambda: model.fit(X[:-1]), lambda: model.fit(X, None, np.full(len(X), 2.0)),
        lambda: clone(model).set_params(random_state=1).fit(X),
        lambda: clone(model).set_params(observation__reg_covar=1e-3).fit(X),
        lambda: clone(model).set_params(n_jobs=2).fit(X),
    ]  # fmt: skip
    counts = []
    for fit in fits:
        fit()
        counts.append(len(os.listdir(tmp_path)))
    assert counts == [1, 2, 3, 4, 5, 5]


@pytest.mark.extended
def test_grid_searches_share_a_checkpoint(tmp_path):
    model = DPMixtureVB(random_state=0, max_iter=3)
    grid = {"weight_concentration_prior": [0.5, 2.0]}
    expected = GridSearchCV(model, grid, cv=2).fit(X)
    for n_jobs in (1, 2):
        watched = clone(model).set_callbacks(Checkpoint(tmp_path, every=0))
        found = GridSearchCV(watched, grid, cv=2, n_jobs=n_jobs).fit(X)
        assert found.best_score_ == expected.best_score_
        assert len(os.listdir(tmp_path)) == 5


def test_generators_are_where_they_would_be(tmp_path):
    """A generator that is given goes on after the fit as if it had not been interrupted."""
    rng, other = np.random.RandomState(5), np.random.RandomState(5)
    whole = DPMixtureVB(n_init=2, max_iter=3, random_state=rng).fit(X)
    model = DPMixtureVB(n_init=2, max_iter=3, random_state=other)
    model.set_callbacks(Checkpoint(tmp_path, every=0), Watches(4, interrupt))
    with pytest.raises(Stops):
        model.fit(X)
    model.set_callbacks(Checkpoint(tmp_path, every=0)).fit(X)
    assert model.lower_bounds_ == whole.lower_bounds_
    assert other.rand() == rng.rand()


@pytest.mark.parametrize("n_laps", [2, 5])
def test_functions_that_make_components_draw_what_they_would_have_drawn(tmp_path, n_laps):
    """Interrupted in the first fit, or in the second of three."""
    params = {"n_init": 3, "max_iter": 3, "proposals": None, "random_state": 0}
    model = DPMixtureVB(init_params=random_shares, **params)
    whole = clone(model).fit(X)
    model.set_callbacks(Checkpoint(tmp_path, every=0), Watches(n_laps, interrupt))
    with pytest.raises(Stops):
        model.fit(X)
    watch = Watches()
    model.set_callbacks(watch, Checkpoint(tmp_path, every=0)).fit(X)
    assert watch.n_laps == 9 - n_laps
    assert model.lower_bounds_ == whole.lower_bounds_


def random_shares(X, n_components, random_state):
    """Responsibilities of a callable ``init_params``."""
    return random_state.dirichlet(np.ones(4), size=len(X))


def test_fits_without_a_seed_are_never_the_same(tmp_path):
    model = DPMixtureVB(max_iter=3).set_callbacks(
        Checkpoint(tmp_path, every=0), Watches(2, interrupt)
    )
    with pytest.raises(Stops):
        model.fit(X)
    assert len(os.listdir(tmp_path)) == 1
    watch = Watches()
    model.set_callbacks(watch, Checkpoint(tmp_path, every=0)).fit(X)
    assert watch.n_laps == model.n_iter_ - 2
    assert os.listdir(tmp_path) == []


@pytest.mark.extended
def test_checkpoints_are_written_in_intervals(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        "sklearn_bnp.estimator.checkpoints.write_archive", lambda path, _: written.append(path)
    )
    fit = DPMixtureVB(3, random_state=0)
    fit.set_callbacks(Checkpoint(tmp_path, every=0)).fit(NEAR)
    assert len(written) == fit.n_iter_ + 1
    written.clear()
    fit.set_callbacks(Checkpoint(tmp_path, every=1000)).fit(NEAR)
    assert len(written) == 1


def test_other_versions_begin_anew(tmp_path, monkeypatch):
    """With a file of their own, whether the fit had ended or not. Each goes on from its own."""

    def n_laps(*callbacks):
        watch = Watches()
        model = DPMixtureVB(3, proposals=None, random_state=0, max_iter=3, tol=0)
        model.set_callbacks(Checkpoint(tmp_path, every=0), watch, *callbacks).fit(X)
        return watch.n_laps

    n_laps()
    for module in ("checkpoints", "fitting"):
        monkeypatch.setattr(f"sklearn_bnp.estimator.{module}.__version__", "99.0")
    assert n_laps(Limit("lap", 1)) == 1
    assert len(os.listdir(tmp_path)) == 2
    assert n_laps() == 2
    monkeypatch.undo()
    assert n_laps() == 0


def test_checkpoints_of_another_version_are_refused(tmp_path):
    """A file that was given the name of another one."""
    model = DPMixtureVB(random_state=0, max_iter=1).set_callbacks(Checkpoint(tmp_path)).fit(X)
    [name] = os.listdir(tmp_path)
    archive = read_archive(tmp_path / name)
    write_archive(tmp_path / name, archive._replace(header={**archive.header, "version": "99.0"}))
    with pytest.raises(ValueError, match=names(name, "99.0", "Delete it")):
        model.fit(X)


def test_what_killed_processes_leave_is_removed(tmp_path):
    model = DPMixtureVB(random_state=0, max_iter=1).set_callbacks(Checkpoint(tmp_path)).fit(X)
    [name] = os.listdir(tmp_path)
    parts = [f".{name}.{i}.part" for i in range(2)] + [".other.bnp.0.part"]
    for part in parts:
        (tmp_path / part).write_bytes(b"half")
    for part in (parts[0], parts[2]):
        os.utime(tmp_path / part, (0, time.time() - 4000))
    model.fit(X)
    assert sorted(os.listdir(tmp_path)) == sorted([name, *parts[1:]])


def test_damaged_checkpoints_are_refused(tmp_path):
    def fit():
        return DPMixtureVB(random_state=0).set_callbacks(Checkpoint(tmp_path)).fit(X)

    fit()
    [name] = os.listdir(tmp_path)
    path = tmp_path / name
    whole, archive = path.read_bytes(), read_archive(path)
    with pytest.raises(ValueError, match=names(name, "checkpoint", "set_callbacks")):
        sklearn_bnp.load(path)
    path.write_bytes(whole[:-30])
    with pytest.raises(ValueError, match=names("checkpoint", name, "Delete it")):
        fit()
    arrays = [array[:-1] if array.ndim else array for array in archive.arrays]
    write_archive(path, archive._replace(arrays=arrays))
    with pytest.raises(ValueError, match=names(name, "checksum", "Delete it")):
        fit()
    write_archive(path, archive._replace(header={**archive.header, "format": 0}))
    with pytest.raises(ValueError, match=names(name, "format 0", "Delete it")):
        fit()


@pytest.mark.extended
def test_classes_of_a_user(tmp_path):
    times = np.random.default_rng(0).exponential([1.0, 2.0], size=(60, 2))
    for model, data in (
        (DPMixtureVB(allocation=OwnWeights(), random_state=0), X),
        (DPMixtureVB(observation=Times(np.asarray), random_state=0), times),
    ):
        watch = Watches(2, interrupt)
        with pytest.raises(Stops):
            clone(model).set_callbacks(Checkpoint(tmp_path, every=0), watch).fit(data)
        again = clone(model).set_callbacks(Checkpoint(tmp_path)).fit(data)
        assert again.lower_bounds_ == model.fit(data).lower_bounds_


def test_functions_that_cannot_be_recognised(tmp_path):
    """A checkpoint is an error, and a warm start starts from the components."""
    with open(tmp_path / "log", "w") as log:
        params = {"init_params": lambda x, n, rng: log.write("") or np.full((len(x), 2), 0.5)}
        model = DPMixtureVB(random_state=0, max_iter=2, **params)
        with pytest.raises(ValueError, match=names("DPMixtureVB", "recognised", "open files")):
            model.set_callbacks(Checkpoint(tmp_path)).fit(X)
        model.set_callbacks().set_params(warm_start=True).fit(X)
        assert not hasattr(model, "_paused")
        model.fit(X)


@pytest.mark.parametrize("every", [-1.0, np.nan, np.inf, "10", None])
def test_bad_intervals(every):
    with pytest.raises(ValueError, match=names("every", repr(every))):
        Checkpoint("folder", every)


def test_other_estimators_have_no_checkpoints(tmp_path):
    model = MemoryBoundedTopicVB().set_callbacks(Checkpoint(tmp_path))
    with pytest.raises(TypeError, match=names("MemoryBoundedTopicVB", "partial_fit")):
        model.fit(ROWS, groups=GROUPS)


# ---------------------------------------------------------------------- warm starts

WARM = [name for name in FITS if not name.startswith("several starts")]


@pytest.mark.extended
@pytest.mark.parametrize("name", WARM)
@pytest.mark.parametrize("n", [1, 4])
def test_a_warm_start_goes_on_as_if_the_fit_had_not_ended(name, n, tmp_path):
    """After so many laps, in the file of a model too."""
    whole = FITS[name](FITS[name](fit=False).set_params(warm_start=True, max_iter=7, tol=0))
    model = FITS[name](FITS[name](fit=False).set_params(warm_start=True, max_iter=n, tol=0))
    model.save(tmp_path / "model.bnp")
    model = sklearn_bnp.load(tmp_path / "model.bnp")
    FITS[name](model.set_params(max_iter=7 - n))
    assert model.n_iter_ == whole.n_iter_
    assert same_fit(model, whole.set_params(max_iter=7 - n))
    cold = FITS[name](FITS[name](fit=False).set_params(max_iter=7, tol=0))
    assert cold.lower_bounds_ == whole.lower_bounds_


@pytest.mark.quarter
@pytest.mark.parametrize("name", WARM)
def test_a_warm_start_that_was_interrupted(name, tmp_path):
    def model():
        fit = FITS[name](fit=False).set_params(warm_start=True, max_iter=2, tol=0)
        return FITS[name](fit).set_params(max_iter=4)

    whole, watch = FITS[name](model()), Watches(2, interrupt)
    with pytest.raises(Stops):
        FITS[name](model().set_callbacks(Checkpoint(tmp_path, every=0), watch))
    again = FITS[name](model().set_callbacks(Checkpoint(tmp_path, every=0)))
    assert again.lower_bounds_ == whole.lower_bounds_
    assert same_fit(again, whole)


@pytest.mark.quarter
@pytest.mark.parametrize("name", WARM)
def test_a_warm_start_that_was_killed_before_its_result(name, tmp_path):
    """After its last lap. A further call goes on from there, as if it had ended."""

    def model():
        return FITS[name](fit=False).set_params(warm_start=True, max_iter=2, tol=0)

    n_laps = 2 + (name == "stochastic")  # with the exact one
    whole, watch = FITS[name](model()), Watches(n_laps, interrupt)
    with pytest.raises(Stops):
        FITS[name](model().set_callbacks(Checkpoint(tmp_path, every=0), watch))
    again = FITS[name](model().set_callbacks(Checkpoint(tmp_path, every=0)))
    assert again.lower_bounds_ == whole.lower_bounds_
    assert same_fit(FITS[name](again.set_callbacks()), FITS[name](whole))


@pytest.mark.parametrize("name", ["topics", "states"])
def test_a_warm_start_on_other_data_starts_from_the_components(name):
    """It ends at once, where a cold one needs births first; and has the units and priors of the first fit."""
    half = {"topics": lambda x: x[:30], "states": lambda x: x[:4]}[name]
    model = FITS[name](FITS[name](fit=False).set_params(warm_start=True))
    before = model._model.likelihood
    n_before = model.n_components_
    model.set_params(max_iter=1).fit(half(FITS[name].data))
    assert model._model.likelihood is before
    assert model.n_components_ == n_before > 1
    assert model.n_iter_ == 1
    model.set_params(max_iter=50).fit(half(FITS[name].data))
    assert model.converged_


def not_called(X, n_components, random_state):
    """A callable ``init_params`` of which a warm start has no need."""
    raise AssertionError


@pytest.mark.quarter
@pytest.mark.parametrize("kind", [DPMixtureVB, HDPTopicVB, HDPHMMVB])
@pytest.mark.parametrize("proposals", [None, ("birth", "merge")])
def test_a_warm_start_does_not_heed_what_first_components_were_given(kind, proposals):
    """On the same data or fewer, of which there are not as many responsibilities."""
    data = {DPMixtureVB: X, HDPTopicVB: COUNTS, HDPHMMVB: X}[kind]
    n = np.count_nonzero(data) if kind is HDPTopicVB else len(data)
    shares = np.random.default_rng(0).dirichlet(np.ones(3), size=n)
    first = kind(
        init_params=shares, proposals=proposals, warm_start=True, max_iter=3, random_state=0
    )
    first.fit(data)
    for rows, n_batches in ((data, 2), (data[:40], None)):
        models = [deepcopy(first).set_params(n_batches=n_batches) for _ in range(3)]
        for model, how in zip(models, (shares, not_called, "random"), strict=True):
            model.set_params(init_params=how).fit(rows)
        for model in models[1:]:
            assert_same_state(public_state(model), public_state(models[0]))


def test_a_warm_start_after_more_data_starts_from_the_components():
    model = DPMixtureVB(random_state=0, warm_start=True, max_iter=2).fit(X)
    model.partial_fit(X[:30]).fit(X)
    assert model.n_iter_ == 2


def test_a_warm_start_is_for_the_same_observation():
    model = HDPHMMVB(warm_start=True, max_iter=1).fit(SEQUENCES)
    with pytest.raises(ValueError, match=names("warm_start=True", "observation")):
        model.set_params(observation="poisson").fit(SEQUENCES)
    model = HDPTopicVB(warm_start=True, max_iter=2).fit(COUNTS)
    with pytest.raises(
        ValueError, match=names("warm_start=True", "topic_word_prior=0.3", "set warm_start=False")
    ):
        model.set_params(topic_word_prior=0.3).fit(COUNTS)


@pytest.mark.parametrize(
    ("model", "data", "nothing", "words"),
    [
        (HDPTopicVB(), COUNTS, 0 * COUNTS, ["no tokens"]),
        (HDPTopicVB(3, learning_method="stochastic"), COUNTS, 0 * COUNTS, ["no tokens"]),
        (
            DPMixtureVB(),
            GAPPY,
            np.where([[False, True, False]], np.nan, GAPPY),
            ["Column 1", "NaN"],
        ),
        (HDPHMMVB(), GAPPY, np.full_like(GAPPY, np.nan), ["Column 0", "NaN"]),
    ],
)
def test_a_warm_start_needs_something_to_learn_from(model, data, nothing, words):
    """As the first fit does. The model stays as it was."""
    model = clone(model).set_params(warm_start=True, max_iter=2, random_state=0).fit(data)
    before = public_state(model)
    with pytest.raises(ValueError, match=names(*words)):
        model.fit(nothing)
    assert_same_state(public_state(model), before)


# ---------------------------------------------------------------------- callbacks


def old(cls):
    """The estimator as it is under releases of scikit-learn without callbacks."""
    if issubclass(cls, callbacks.OwnSupport):
        return cls  # this is such a release
    return type(cls.__name__, (callbacks.OwnSupport, cls), {"__init__": cls.__init__})


every_release = pytest.mark.parametrize("release", [lambda cls: cls, old], ids=["present", "old"])


@every_release
def test_tasks_of_a_fit(release):
    watch = Watches()
    model = release(DPMixtureVB)(random_state=0, max_iter=3, tol=0).set_callbacks(watch).fit(X)
    laps = ["begin lap", "end lap"] * 3
    assert watch.events == ["setup", "begin fit", *laps, "end fit", "teardown"]
    assert [one.n_iter_ for one in watch.models] == [1, 2, 3]
    assert [one.lower_bound_ for one in watch.models] == model.lower_bounds_
    assert np.array_equal(watch.models[-1].predict_proba(X), model.predict_proba(X))
    watch.models[0].partial_fit(X[:20])
    watch.events.clear()
    model.set_params(n_init=2, max_iter=1).fit(X)
    one = ["begin initialisation", "begin lap", "end lap", "end initialisation"]
    assert watch.events == ["setup", "begin fit", *one, *one, "end fit", "teardown"]


@pytest.mark.extended
@pytest.mark.parametrize("name", FITS)
def test_callbacks_change_nothing(name):
    watch = Watches()
    assert same_fit(FITS[name](FITS[name](fit=False).set_callbacks(watch)), whole(name))
    assert len(watch.models) == watch.n_laps > 1


@pytest.mark.quarter
@every_release
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("with_file", [False, True])
def test_callbacks_get_models_without_rows(name, release, with_file, tmp_path):
    """They may save them, and go on with what is loaded."""
    plain, watch = EVERY[name](fit=False).set_params(max_iter=2), Watches()
    also = [Checkpoint(tmp_path / "runs", every=0)] if with_file else []
    model = release(type(plain))(**plain.get_params()).set_callbacks(watch, *also)
    EVERY[name](model)
    assert {*vars(watch.models[0])} <= {*vars(model)}
    data = (
        np.concatenate([part.load() for part in PARTS]) if name in IN_CHUNKS else EVERY[name].data
    )
    rows = np.concatenate(data) if isinstance(data, list) else data
    if type(model) is type(plain):
        saved = pickle.dumps(copy(watch.models[0]).set_callbacks())  # which has the models
        assert not any(row.tobytes() in saved for row in np.asarray(rows, dtype=float))
        watch.models[0].save(tmp_path / "model.bnp")
        loaded = sklearn_bnp.load(tmp_path / "model.bnp")
        assert loaded.lower_bound_ == watch.models[0].lower_bound_


@every_release
@pytest.mark.parametrize("name", ["several starts", "several starts of states"])
def test_a_warm_start_after_several_initialisations_has_callbacks(name, release):
    """It makes laps alone, and goes on where the best one ended."""
    plain = FITS[name](fit=False).set_params(warm_start=True, max_iter=2, tol=0)
    model = release(type(plain))(**plain.get_params()).set_callbacks(Watches())
    before = FITS[name](model)
    first, n_laps = before.lower_bound_, before.n_iter_
    model = FITS[name](model.set_params(max_iter=3))
    assert model.n_iter_ == n_laps + 3  # it would come to rest in five
    assert model.lower_bound_ >= first - 1e-9 * abs(first)


@every_release
@pytest.mark.parametrize("name", WARM)
@pytest.mark.filterwarnings("error")
def test_callbacks_may_stop_a_fit(name, release):
    plain = FITS[name](fit=False)
    model = release(type(plain))(**plain.get_params())
    FITS[name](model.set_callbacks(Watches(2, stop)))
    assert model.n_iter_ == (3 if model.learning_method == "stochastic" else 2)
    assert not model.converged_


@every_release
def test_epochs_are_tasks(release):
    params = {"memory_bound": 300, "documents_per_epoch": 4}
    whole = MemoryBoundedTopicVB(**params).fit(ROWS, groups=GROUPS)
    watch = Watches(2, stop)
    model = release(MemoryBoundedTopicVB)(**params).set_callbacks(watch)
    model.fit(ROWS, groups=GROUPS)
    assert watch.events[2:4] == ["begin epoch", "end epoch"]
    assert [one.n_iter_ for one in watch.models] == [1, 2] and model.n_iter_ == 2
    watch.at = None
    model.fit(ROWS, groups=GROUPS)
    assert model.lower_bound_ == whole.lower_bound_


@every_release
def test_failures_tear_down(release):
    watch = Watches(1, interrupt)
    model = release(DPMixtureVB)(random_state=0).set_callbacks(watch)
    with pytest.raises(Stops):
        model.fit(X)
    assert watch.events[-1] == "teardown"
    assert set(vars(model)) == {*model.get_params(deep=False), "_skl_callbacks"}


@every_release
def test_clones_and_files(release, tmp_path):
    """Clones share callbacks; files of models have none."""
    model = release(DPMixtureVB)(max_iter=1).set_callbacks(Watches())
    assert clone(model)._skl_callbacks[0] is model._skl_callbacks[0]
    with pytest.raises(TypeError, match="callback"):
        model.set_callbacks("progress")
    if type(model) is DPMixtureVB:
        model.fit(X).save(tmp_path / "model.bnp")
        loaded = sklearn_bnp.load(tmp_path / "model.bnp")
        assert not hasattr(loaded, "_skl_callbacks")
    model.set_callbacks()
    assert not hasattr(model, "_skl_callbacks")
    if type(model) is DPMixtureVB:
        assert content(loaded) == content(model)


def test_callbacks_of_scikit_learn():
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring={"score": lambda model, X, y: model.score(X)})
    model = DPMixtureVB(random_state=0, max_iter=3, tol=0).set_callbacks(monitor)
    model.fit(X, np.zeros(len(X)), np.ones(len(X)))
    scores = [row["score"] for row in monitor.get_logs().data]
    assert len(scores) == 3 and scores[-1] == model.score(X)


def test_laps_that_were_stopped_give_no_warning():
    with pytest.warns(ConvergenceWarning):
        DPMixtureVB(random_state=0, max_iter=1).fit(X)
