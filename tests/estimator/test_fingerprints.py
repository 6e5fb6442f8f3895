"""Fits are the same to a `Checkpoint` and to ``warm_start`` only if all that their result depends on is."""

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from sklearn_bnp import HDPHMMVB, Checkpoint, ColumnObservation, DPMixtureVB, HDPTopicVB
from sklearn_bnp.estimator.fingerprints import fingerprint
from tests.estimators import names
from tests.saved_models import COUNTS, SEQUENCES, X

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
ROOT = Path(__file__).resolve().parents[2]


class NoData:
    """Stands for checked data that are always the same."""

    reading = None

    class batch:
        x = np.zeros((2, 1))

        @staticmethod
        def content_hash():
            return "0"


def hash_with(value):
    """Fingerprint of a fit whose ``init_params`` is this."""
    model = DPMixtureVB(init_params=value)
    model.n_features_in_ = 1
    return fingerprint(model, NoData)


# Texts of modules in pairs that differ in one thing; each defines ``start``.
OF_CODE = {
    "constants": "def start(X, n, rng): return {}",
    "global names": "import numpy as np\ndef start(X, n, rng): return np.{}(X)",
    "attributes": "def start(X, n, rng): return X.{}()",
    "arguments": "def start(X, n, rng, *, a=1, b=2): return {}",
    "defaults": "def start(X, n, rng, k={}): return k",
    "defaults by name": "def start(X, n, rng, *, k={}): return k",
    "closures": "def make(k):\n    def start(X, n, rng): return k\n    return start\nstart = make({})",
    "functions in closures": "def make(f): return lambda X, n, rng: f(X)\nstart = make(lambda X: {})",
    "functions inside": "def start(X, n, rng):\n    def f(): return {}\n    return f()",
    "generators inside": "def start(X, n, rng): return [x for x in X if x > {}]",
    "sets": "def start(X, n, rng): return n in {{{}, 'a', 'b'}}",
    "globals": "K = {}\ndef start(X, n, rng): return K",
    "arrays": "import numpy as np\nK = np.full(9, {})\ndef start(X, n, rng): return K",
    "globals of functions inside": "K = {}\ndef start(X, n, rng): return [K for x in X]",
    "functions that are called": "def f(X): return {}\ndef start(X, n, rng): return f(X)",
    "cached functions": "import functools\n@functools.cache\ndef f(n): return {}\n"
    "def start(X, n, rng): return f(n)",
    "functions that call each other": "def f(X): return start(X, 0, None)\n"
    "def start(X, n, rng): return f(X) if n else {}",
    "methods": "class A:\n    def __call__(self, X, n, rng): return {}\nstart = A()",
    "properties": "class A:\n    @property\n    def k(self): return {}\n"
    "    def __call__(self, X, n, rng): return self.k\nstart = A()",
    "attributes of classes": "class A:\n    k = {}\n"
    "    def __call__(self, X, n, rng): return self.k\nstart = A()",
    "methods of bases": "class B:\n    def f(self): return {}\n"
    "class A(B):\n    def __call__(self, X, n, rng): return self.f()\nstart = A()",
    "bound methods": "class A:\n    def f(self, X, n, rng): return {}\nstart = A().f",
    "partial functions": "import functools\ndef f(k, X, n, rng): return k\nstart = functools.partial(f, {})",
    "attributes of functions": "def start(X, n, rng): return start.k\nstart.k = {}",
}  # fmt: skip
VALUES = {"global names": ("sin", "cos"), "attributes": ("min", "max"), "arguments": ("a", "b")}


def made(name, value):
    """The function of this name, with one of two values in its text, as a module of the user defines it."""
    space = {"__name__": "a_module_of_the_user"}
    exec(OF_CODE[name].format(value), space)
    return space["start"]


@pytest.mark.parametrize("name", OF_CODE)
def test_functions_are_the_same_if_they_do_the_same(name):
    one, other = VALUES.get(name, (1, 2))
    assert hash_with(made(name, one)) == hash_with(made(name, one))
    assert hash_with(made(name, one)) != hash_with(made(name, other))


def all_hashes():
    """Fingerprints with all of these functions."""
    return [hash_with(made(name, VALUES.get(name, (1, 2))[0])) for name in OF_CODE]


@pytest.mark.extended
@pytest.mark.parametrize("seed", ["1", "2"])
def test_other_processes_recognise_functions(seed):
    """The order of sets and the addresses of objects do not matter."""
    code = "from tests.estimator.test_fingerprints import all_hashes; print(*all_hashes())"
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert process.stdout.split() == all_hashes()


def test_workers_recognise_functions():
    """Cloudpickle hands over a function with no other globals than those that it uses."""
    cloudpickle = pytest.importorskip("cloudpickle")
    text = "sum = 5\nK = 3\ndef start(X, n, rng): return X.sum() + K"
    space = {"__name__": "__main__"}
    exec(text, space)
    copy = cloudpickle.loads(cloudpickle.dumps(space["start"]))
    assert "sum" not in copy.__globals__
    assert hash_with(copy) == hash_with(space["start"])


def test_functions_of_notebooks(monkeypatch):
    """They have names in ``__main__``, whose file may be that of an installed program."""
    main, hashes = ModuleType("__main__"), []
    main.__file__ = os.path.join("lib", "site-packages", "launcher.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    for value in (1, 2):
        exec(OF_CODE["constants"].format(value), vars(main))
        hashes.append(hash_with(main.start))
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize(
    "value",
    [
        lambda X, n, rng: LOCK.acquire(),
        functools.partial(lambda lock, X, n, rng: lock.acquire(), threading.Lock()),
    ],
    ids=["global", "partial"],
)
def test_functions_that_use_what_cannot_be_hashed(value):
    with pytest.raises(ValueError, match=names("DPMixtureVB", "recognised", "lock", "pickled")):
        hash_with(value)


LOCK = threading.Lock()


def shares_of(labels):
    """A callable ``init_params`` that gives each row, or entry of a matrix of counts, its label."""

    def shares(X, n_components, random_state):
        return np.eye(2)[labels]

    return shares


N_ROWS = {"mixture": len(X), "states": sum(map(len, SEQUENCES)), "topics": np.count_nonzero(COUNTS)}


@pytest.mark.parametrize("name", N_ROWS)
def test_other_starts_are_other_fits(name, tmp_path):
    """A function from the same lines of code gives other responsibilities."""
    kind = {"mixture": DPMixtureVB, "states": HDPHMMVB, "topics": HDPTopicVB}[name]
    data = {"mixture": X, "states": SEQUENCES, "topics": COUNTS}[name]
    rng = np.random.default_rng(0)
    for labels in rng.integers(2, size=(2, N_ROWS[name])):
        model = kind(proposals=None, max_iter=1, init_params=shares_of(labels), random_state=0)
        alone = model.fit(data).lower_bound_
        assert model.set_callbacks(Checkpoint(tmp_path)).fit(data).lower_bound_ == alone
        assert model.fit(data).lower_bound_ == alone
    assert len(os.listdir(tmp_path)) == 2


def test_functions_inside_of_objects(tmp_path):
    """They are recognised by their code, too."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.abs(X[:, :2]).round())
    for first in (0, 0, 1):
        blocks = [
            ("a", "gaussian", lambda frame, first=first: [first]),
            ("b", "poisson", [1 - first]),
        ]
        model = DPMixtureVB(observation=ColumnObservation(blocks), random_state=0, max_iter=2)
        alone = model.fit(frame).lower_bound_
        model.set_callbacks(Checkpoint(tmp_path))
        assert model.fit(frame).lower_bound_ == alone
    assert len(os.listdir(tmp_path)) == 2


# ---------------------------------------------------------------------- data


class Part(NamedTuple):
    """A batch reference."""

    batch_id: int
    data: object

    def load(self):
        return self.data


RNG = np.random.default_rng(0)
# Two columns of numbers, the second of which is far from the first, and one of two codes.
NUMBERS = np.stack([RNG.normal(size=60), RNG.normal(9.0, 0.1, 60), RNG.integers(2, size=60)], 1)
BLOCKS = [("size", "gaussian", ["a"]), ("kind", "categorical", ["c"])]


class Kind(NamedTuple):
    """An estimator, its form of data, and other arguments of fit."""

    estimator: type
    form: Callable = lambda X: X
    given: dict = {}

    def fit(self, X, observation, *callbacks):
        params = {"proposals": None, "max_iter": 2, "random_state": 0}
        model = self.estimator(2, observation=observation, **params)
        return model.set_callbacks(*callbacks).fit(self.form(X), **self.given)


KINDS = {
    "mixture": Kind(DPMixtureVB),
    "chunks": Kind(DPMixtureVB, lambda X: [Part(0, X[:30]), Part(1, X[30:])]),
    "states": Kind(HDPHMMVB),
    "topics": Kind(HDPTopicVB, given={"groups": np.repeat(np.arange(20), 3)}),
}


def frame(pandas, names="abc", categories="xy"):
    """A frame of these numbers, with names of columns and with categories."""
    table = pandas.DataFrame(dict(zip(names, NUMBERS.T, strict=True)))
    last = pandas.Categorical.from_codes(NUMBERS[:, 2].astype(int), list(categories))
    return table.assign(**{names[2]: last})


@pytest.mark.quarter
@pytest.mark.parametrize("name", KINDS)
def test_other_frames_are_other_fits(name, tmp_path):
    """Those whose columns have other names or other categories, though their numbers are the same."""
    pandas, kind = pytest.importorskip("pandas"), KINDS[name]
    tables = [frame(pandas), frame(pandas, "bac"), frame(pandas, "abc", "xyzuvw"), frame(pandas)]
    for table in tables:
        alone = kind.fit(table, ColumnObservation(BLOCKS))
        kept = kind.fit(table, ColumnObservation(BLOCKS), Checkpoint(tmp_path))
        assert kept.lower_bounds_ == alone.lower_bounds_
    assert len(os.listdir(tmp_path)) == 3


@pytest.mark.parametrize("name", KINDS)
def test_other_types_of_numbers_are_other_fits(name, tmp_path):
    """The same values in single precision, in double, and in sparse rows."""
    codes = NUMBERS[:, [2, 2]]
    for rows in (codes, codes.astype(np.float32), csr_array(codes), codes):
        alone = KINDS[name].fit(rows, "bernoulli")
        kept = KINDS[name].fit(rows, "bernoulli", Checkpoint(tmp_path))
        assert kept.lower_bounds_ == alone.lower_bounds_
    assert len(os.listdir(tmp_path)) == 3


def test_words_that_do_not_occur_are_part_of_the_data(tmp_path):
    wider = np.pad(COUNTS, [(0, 0), (0, 5)])
    for counts in (COUNTS, wider):
        alone = HDPTopicVB(max_iter=2, random_state=0).fit(counts)
        kept = clone(alone).set_callbacks(Checkpoint(tmp_path)).fit(counts)
        assert kept.lower_bounds_ == alone.lower_bounds_


def test_a_warm_start_on_other_numbers_starts_from_the_components():
    """Numbers of another type are other data."""
    model = DPMixtureVB(max_iter=2, tol=0, warm_start=True, random_state=0).fit(X)
    assert model.fit(X).n_iter_ == 4
    assert model.fit(X.astype(np.float32)).n_iter_ <= 2
