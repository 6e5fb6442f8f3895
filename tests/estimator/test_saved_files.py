"""Files of models: they hold everything, are whole or refused, and cannot do harm."""

import datetime
import json
import os
import subprocess
import sys
import time
import zipfile
import zoneinfo
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

import sklearn_bnp
from sklearn_bnp import (
    HDPHMMVB,
    Checkpoint,
    ColumnObservation,
    DPMixtureVB,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)
from sklearn_bnp.estimator.archive import read_archive, write_archive
from sklearn_bnp.estimator.saved_state import FORMAT
from tests import stored_files
from tests.damaged_files import content, signed
from tests.estimator.test_persistence import (
    KeepsATable,
    Noted,
    OwnWeights,
    Times,
    TimesLikelihood,
    TimesPrior,
    assert_same_values,
    gone_on,
)
from tests.estimators import assert_same_array, names
from tests.saved_models import MODELS, X, saved_model

every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.bnp"


def through_file(model, path, **named):
    model.save(path)
    return sklearn_bnp.load(path, **named)


@pytest.mark.quarter
@every_model
def test_goes_on_as_if_it_had_never_been_saved(name, path, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # laps take no time: histories are equal
    model, (expected, later) = saved_model(name), gone_on(name)
    loaded = through_file(model, path)
    assert type(loaded) is type(model)
    assert content(loaded) == content(model)
    for one, other in zip(MODELS[name].results(loaded), expected, strict=True):
        assert_same_array(one, other)
    MODELS[name].go_on(loaded)
    assert_same_values(loaded, later)


@pytest.mark.parametrize("estimator", [DPMixtureVB, HDPTopicVB, HDPHMMVB, MemoryBoundedTopicVB])
def test_models_that_were_not_fitted(estimator, path):
    model = estimator(observation="poisson")
    assert content(through_file(model, path)) == content(model)


@pytest.mark.extended
def test_a_stream_whose_latest_batches_are_kept(path):
    model = DPMixtureVB(random_state=0).partial_fit(X[:45], batch_id=0)
    loaded = through_file(model, path)
    one, other = (each.partial_fit(X[45:], batch_id=1) for each in (model, loaded))
    assert one.lower_bound_ == other.lower_bound_


def test_names_of_batches(path):
    """Those that the docstring names can be saved; of others the error says what to do."""
    there = datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    for name in (3, 0.5, "a", (1, "b"), there, there.date(), np.datetime64("2020-01-01"), None):
        model = DPMixtureVB(proposals=None, random_state=0).partial_fit(X[:45], batch_id="first")
        loaded = through_file(model.partial_fit(X[45:], batch_id=name), path)
        assert loaded._learner_.memo.batch_ids == model._learner_.memo.batch_ids
    pandas = pytest.importorskip("pandas")
    timestamp = pandas.Timestamp("2020-01-01").as_unit("ns") + pandas.Timedelta(1)
    model = DPMixtureVB(proposals=None, random_state=0).partial_fit(X, batch_id=timestamp)
    with pytest.raises(ValueError, match=names("batch_id=Timestamp", "joblib", "str(batch_id)")):
        model.save(path)


def test_times_as_names_of_batches(path):
    """Those of pandas, and those of a time zone, are the same names before and after."""
    pandas = pytest.importorskip("pandas")
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    for name in (
        pandas.Timestamp("2020-01-01 12:30"),
        pandas.Timestamp("2020-01-01", tz="UTC"),
        pandas.Timestamp("2020-07-01", tz="Europe/Berlin"),
        pandas.Timedelta(5, "h"),
        datetime.datetime(2020, 7, 1, 3, tzinfo=zone),
        ("a", pandas.Timestamp("2020-01-01")),
    ):
        model = DPMixtureVB(proposals=None, random_state=0).partial_fit(X[:45], batch_id="first")
        loaded = through_file(model.partial_fit(X[45:], batch_id=name), path)
        for each in (model, loaded):
            assert name in each._learner_.memo
            each.partial_fit(X[40:], batch_id=name)  # in place of the first one
            assert len(each._learner_.memo.batch_ids) == 2
            assert list(each.forget(name)._learner_.memo.batch_ids) == ["first"]


def test_a_model_of_a_frame(path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "b", "a")})
    blocks = [("size", "gaussian", ["size"]), ("kind", "categorical", ["kind"])]
    model = DPMixtureVB(observation=ColumnObservation(blocks), random_state=0).fit(frame)
    loaded = through_file(model, path)
    assert_same_array(loaded.predict_proba(frame), model.predict_proba(frame))


def test_the_same_model_gives_the_same_bytes(path):
    saved_model("topics").save(path)
    before = path.read_bytes()
    saved_model("topics").save(str(path))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_parts_can_be_read_without_this_package(path):
    saved_model("mixture").save(path)
    with zipfile.ZipFile(path) as whole:
        header = json.loads(whole.read("header.json"))
    assert header["format"] == FORMAT
    assert header["estimator"] == "sklearn_bnp.mixture.estimator.DPMixtureVB"
    arrays = np.load(path)
    weights = saved_model("mixture").weights_
    assert any(np.array_equal(arrays[k], weights) for k in arrays.files if k.startswith("arrays/"))


def test_random_generators_go_on(path):
    model = DPMixtureVB(proposals=None, random_state=np.random.RandomState(3)).fit(X)
    loaded = through_file(model, path)
    assert loaded.random_state.rand() == model.random_state.rand()
    model.random_state.randn()  # of which one more number is kept
    loaded = through_file(model, path)
    assert loaded.random_state.randn(2).tolist() == model.random_state.randn(2).tolist()


def test_requests_of_metadata(path):
    with config_context(enable_metadata_routing=True):
        loaded = through_file(DPMixtureVB().set_fit_request(sample_weight=True), path)
        assert loaded.get_metadata_routing().fit.requests == {"sample_weight": True}


# ---------------------------------------------------------------------- writing


def test_a_file_that_cannot_be_finished_leaves_the_one_before(path, monkeypatch):
    saved_model("mixture").save(path)
    before = path.read_bytes()

    def full(number):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        saved_model("topics").save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o640, 0o600, 0o666])
def test_permissions_stay(mode, path, monkeypatch):
    """The file has them before anything is written to it."""
    seen, write = [], np.lib.format.write_array

    def looking(part, *args, **kwargs):
        [other] = path.parent.glob("*.part")
        seen.append(other.stat().st_mode & 0o777)
        write(part, *args, **kwargs)

    model = DPMixtureVB(random_state=0).fit(X)
    model.save(path)
    path.chmod(mode)
    monkeypatch.setattr(np.lib.format, "write_array", looking)
    model.save(path)
    assert path.stat().st_mode & 0o777 == mode
    assert set(seen) == {mode}


def test_paths_in_the_home_folder(tmp_path, monkeypatch):
    """Of files, and of folders of checkpoints."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for home in ("~", Path("~")):
        model = DPMixtureVB(random_state=0, max_iter=0)
        model.set_callbacks(Checkpoint(os.path.join(home, "runs"))).fit(X)
        model.save(os.path.join(home, "model.bnp"))
        loaded = sklearn_bnp.load(Path(home) / "model.bnp")
        assert loaded.lower_bound_ == model.lower_bound_
    assert sorted(os.listdir(tmp_path)) == ["model.bnp", "runs"]


def test_links_stay_links(path):
    other = path.with_name("link.bnp")
    other.symlink_to(path)
    saved_model("mixture").save(other)
    assert other.is_symlink() and path.exists()


def test_missing_files_and_folders(path):
    with pytest.raises(FileNotFoundError):
        sklearn_bnp.load(path)
    with pytest.raises(FileNotFoundError):
        saved_model("mixture").save(path.parent / "nowhere" / "model.bnp")


# ---------------------------------------------------------------------- objects of a user


def initial(x, n_components, rng):
    """Responsibilities to begin with."""
    return np.full((len(x), n_components), 1.0 / n_components)


TIMES = np.random.default_rng(0).exponential([1.0, 2.0], size=(60, 2))
# Estimators, their data, and what has to be trusted.
OWN_MODELS = [
    (DPMixtureVB(allocation=OwnWeights(), random_state=0), X, [OwnWeights]),
    (
        DPMixtureVB(observation=Times(np.asarray), random_state=0), TIMES,
        [Times, TimesLikelihood, TimesPrior, np.asarray],
    ),
    (DPMixtureVB(2, init_params=initial, random_state=0), X, [initial]),
    (Noted(), X, [Noted]),
]  # fmt: skip


@pytest.mark.parametrize("i", range(4))
def test_classes_and_functions_of_a_user_have_to_be_trusted(i, path):
    estimator, data, trusted = OWN_MODELS[i]
    model = clone(estimator).fit(data)
    loaded = through_file(model, path, trusted=trusted)
    assert content(loaded) == content(model)
    for left_out in trusted:
        some = [each for each in trusted if each is not left_out]
        with pytest.raises(ValueError, match=names(left_out.__name__, "trusted=[...]")):
            sklearn_bnp.load(path, trusted=some)


def test_trusted_classes_are_no_names(path):
    saved_model("mixture").save(path)
    with pytest.raises(ValueError, match=names("trusted='OwnWeights'", "themselves")):
        sklearn_bnp.load(path, trusted=["OwnWeights"])


def test_what_a_file_cannot_hold(path):
    """Things that are not made of attributes; methods; and a state of a user's own making."""

    class HasAState(DPMixtureVB):
        def __init__(self, n_components=1):
            super().__init__(n_components=n_components)

        def __getstate__(self):
            return {**super().__getstate__(), "more": 1}

    with pytest.raises(ValueError, match=names("module", "joblib")):
        DPMixtureVB(init_params=np).save(path)
    with pytest.raises(ValueError, match=names("cannot be saved", "joblib")):
        DPMixtureVB(proposals=[KeepsATable()], random_state=0).fit(X).save(path)
    with pytest.raises(ValueError, match=names("HasAState", "_saved_attributes")):
        HasAState().save(path)
    assert not path.exists()


# ---------------------------------------------------------------------- files that were damaged


def damaged(name, n, seed=0):
    """What came of damaged files in a process of its own, which must come to its end."""
    command = [sys.executable, "-m", "tests.damaged_files", name, str(n), str(seed)]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60 + n)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["flip"].get("another model", 0) == 0, found
    assert found["flip"]["refused"] > 0.9 * n, found
    assert found["rewrite"]["refused"] > 0.6 * n, found
    assert found["flip"]["slow"] == found["rewrite"]["slow"] == 0, found


@pytest.mark.extended
def test_damaged_files():
    damaged("birth under way", 30)


@pytest.mark.slow
@every_model
def test_many_damaged_files(name):
    damaged(name, 1000, seed=1)


def test_files_that_were_cut_off_anywhere(path):
    saved_model("bounded").save(path)
    data = path.read_bytes()
    for end in {*range(0, len(data), 97), *range(len(data) - 25, len(data))}:
        path.write_bytes(data[:end])
        with pytest.raises(ValueError, match=names("model.bnp", "damaged")):
            sklearn_bnp.load(path)


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x05\x06" + bytes(18), b"no model" * 99])
def test_files_of_other_kinds(data, path):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=names("model.bnp", "not written by sklearn_bnp")):
        sklearn_bnp.load(path)


# ---------------------------------------------------------------------- files that want to do harm


def changed(path, nodes=None, header=None):
    """Let the file hold other nodes, by position, or another header, and be signed."""
    archive = read_archive(path)
    root, all_nodes = json.loads(archive.text)
    for where, node in (nodes or {}).items():
        if where == "more":
            all_nodes += node
        else:
            all_nodes[where] = node
    archive = archive._replace(
        header={**archive.header, **(header or {})}, text=json.dumps([root, all_nodes])
    )
    write_archive(path, signed(archive))


@pytest.fixture
def saved(path):
    saved_model("mixture").save(path)
    return path


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "subprocess.Popen", "tests.no_such_module.Thing", "x"]
)
def test_nothing_is_imported_or_called(name, saved):
    others = [*read_archive(saved).header["others"], name]
    changed(saved, header={"others": others})
    before = set(sys.modules)
    with pytest.raises(ValueError, match=names(name, "trusted")):
        sklearn_bnp.load(saved)
    changed(saved, header={"others": others[:-1], "estimator": name})
    with pytest.raises(ValueError, match=name):
        sklearn_bnp.load(saved)
    assert set(sys.modules) == before


def test_checks_cannot_be_replaced(saved):
    root = read_archive(saved)
    [[where], nodes] = json.loads(root.text)
    head = next(i for i, node in enumerate(nodes) if node[0] == "other")
    for value, words in {"[]": "hide", "head": "stands for a value"}.items():
        name = "_check_state" if value == "[]" else "note"
        node = [*nodes[where], name, [head] if value == "head" else None]
        changed(saved, {where: node})
        with pytest.raises(ValueError, match=words):
            sklearn_bnp.load(saved)


def test_nested_objects_do_not_take_for_ever(saved):
    """The hash of a tuple of twice the same tuple, and so on, takes a time that doubles each time."""
    [[where], nodes] = json.loads(read_archive(saved).text)
    n = len(nodes)
    more = [["tuple", None, None], *(["tuple", [n + i], [n + i]] for i in range(200))]
    more += [["dict", [n + 200], None]]
    changed(saved, {where: [*nodes[where], "note", [n + 201]], "more": more})
    with pytest.raises(ValueError, match="nested"):
        sklearn_bnp.load(saved)
    saved_model("mixture").save(saved)
    changed(saved, {where: [*nodes[where], "note", [n]], "more": [["list", [n]]]})
    with pytest.raises(ValueError, match="part of itself"):
        sklearn_bnp.load(saved)


def test_sizes_that_are_claimed_take_no_memory(saved):
    data = saved.read_bytes()
    claims = [b"(9999999999999,), }", b"(0, 99999999999), }"]
    start = data.index(b"'shape': (") + len(b"'shape': ")
    for claim in claims:
        bad = data[:start] + claim + data[start + len(claim) :]
        saved.write_bytes(bad)
        with pytest.raises(ValueError, match="damaged"):
            sklearn_bnp.load(saved)


def test_positions_of_random_generators_are_looked_at(path):
    """A position beyond the key would make it read what is not its own."""
    DPMixtureVB(random_state=np.random.RandomState(0)).save(path)
    header = read_archive(path).header
    [i] = [i for i, each in enumerate(header["others"]) if isinstance(each, list)]
    for entry in (625, -1, 0.5, "0"):
        others = [list(each) if isinstance(each, list) else each for each in header["others"]]
        others[i][1] = entry
        changed(path, header={"others": others})
        with pytest.raises(ValueError, match="random generator"):
            sklearn_bnp.load(path)


# ---------------------------------------------------------------------- versions


def test_another_version_is_warned_of(path, monkeypatch):
    monkeypatch.setattr("sklearn_bnp.estimator.saved_state.__version__", "99.1")
    saved_model("mixture").save(path)
    monkeypatch.undo()
    with pytest.warns(InconsistentVersionWarning, match=names("DPMixtureVB", "99.1")):
        sklearn_bnp.load(path)


def test_another_format_is_refused(saved):
    changed(saved, header={"format": 0, "version": "0.0.7"})
    with pytest.raises(ValueError, match=names("0.0.7", "format 0", "model.bnp")):
        sklearn_bnp.load(saved)


@pytest.mark.parametrize("name", stored_files.MODELS)
@pytest.mark.parametrize(
    "folder", sorted(stored_files.FOLDER.glob("format_*")), ids=lambda f: f.name
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
def test_files_of_each_format_are_read(folder, name):
    model = sklearn_bnp.load(folder / f"{name}.bnp")
    expected = np.load(folder / f"{name}.npy")  # perhaps of another machine
    np.testing.assert_allclose(stored_files.RESULTS[name](model), expected, rtol=1e-6, atol=1e-9)
    stored_files.GO_ON[name](model)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
def test_states_saved_with_weights_of_transitions_are_brought_up_to_date(tmp_path):
    """Files of format 4 may hold them in ``_params``; predictions take ``startprob_`` and ``transmat_``."""
    old = sklearn_bnp.load(stored_files.FOLDER / "format_4" / "states.bnp")
    assert "_params" not in {*vars(old), *old._published}
    old.save(tmp_path / "states.bnp")
    new = sklearn_bnp.load(tmp_path / "states.bnp")
    rows = stored_files.ROWS
    np.testing.assert_array_equal(new.predict_proba(rows), old.predict_proba(rows))
    for model in (old, new):
        model.partial_fit(rows[:7] + 0.1)  # attributes are computed when they are read
    np.testing.assert_array_equal(new.predict_proba(rows), old.predict_proba(rows))


def test_there_are_files_of_the_present_format():
    """If not: ``python -m tests.stored_files`` writes them."""
    here = {file.name for file in stored_files.folder_of(FORMAT).glob("*")}
    assert here == {f"{name}.{ext}" for name in stored_files.MODELS for ext in ("bnp", "npy")}
