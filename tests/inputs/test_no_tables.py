"""Data that are no table, in every estimator: the message says what they are, and what to give."""

import numpy as np
import pytest

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, MemoryBoundedTopicVB
from tests.estimators import chains, names

SEQUENCES, _ = chains(3, 10)
ROWS = np.concatenate(SEQUENCES)
OWNER = np.repeat(range(3), [len(x) for x in SEQUENCES])
ESTIMATORS = {
    "mixture": lambda x: DPMixtureVB().fit(x),
    "words": lambda x: HDPTopicVB().fit(x),
    "documents": lambda x: HDPTopicVB(observation="gaussian").fit(x, groups=OWNER),
    "bounded": lambda x: MemoryBoundedTopicVB(500).fit(x, groups=OWNER),
    "sequences": lambda x: HDPHMMVB().fit(x),
}
every = pytest.mark.parametrize("fit", ESTIMATORS.values(), ids=ESTIMATORS)


def pandas():
    return pytest.importorskip("pandas")


def frame(columns="abc"):
    return pandas().DataFrame(ROWS, columns=list(columns))


FIELDS = np.array([(1.0, 2.0)] * 9, dtype=[("a", float), ("b", float)])
# What X is, and the words that all messages hold.
FORMS = {
    "a set": (lambda: {1, 2}, ["X is a set", "2D array", "order"]),
    "values of a dict": (lambda: {0: ROWS}.values(), ["X is a dict_values", "list(X)"]),
    "a dict": (lambda: {"a": ROWS}, ["X is a dict", "2D array"]),
    "fields": (lambda: FIELDS, ["structured array", "'a', 'b'", "pandas.DataFrame(X)"]),
    "a record": (lambda: FIELDS.view(np.recarray), ["structured array", "pandas.DataFrame(X)"]),
    "no columns": (lambda: pandas().DataFrame(), ["DataFrame", "0 feature(s)", (0, 0)]),
    "columns of one name": (lambda: frame("aab"), ["Column 'a'", "more than once", "rename"]),
    "columns of one number": (
        lambda: frame().set_axis([0, 0, 1], axis=1),
        ["Column 0", "more than once", "rename"],
    ),
    "groups of a frame": (lambda: frame().groupby(OWNER), ["X is a DataFrameGroupBy", "2D array"]),
    "a series of rows": (lambda: pandas().Series(ROWS.tolist()), ["2D array", "(X)"]),
}
# Lists in lists, which sequences may be up to some depth.
NESTED = {
    "lists of sequences": lambda: [SEQUENCES],
    "lists of equal sequences": lambda: [[ROWS[:5], ROWS[5:10]]],
}


@every
@pytest.mark.parametrize("form", FORMS)
def test_forms(form, fit):
    x, words = FORMS[form]
    with pytest.raises(ValueError, match=names(*words)):
        fit(x())


@every
@pytest.mark.parametrize("form", NESTED)
def test_lists_in_lists(form, fit):
    words = ["X[0] is a list of sequences", "one list"]
    if fit is not ESTIMATORS["sequences"]:
        words = ["X is a list of lists of arrays", "2D array"]
    with pytest.raises(ValueError, match=names(*words)):
        fit(NESTED[form]())


@pytest.mark.parametrize("at", [0, 1])
def test_frames_in_lists(at):
    frames = [frame(), frame()]
    frames[at] = frame("aab")
    with pytest.raises(ValueError, match=names("Column 'a'", "more than once", "rename")):
        HDPHMMVB().fit(frames)


def test_remedies_for_sequences():
    for x, remedy in (
        ({"a": ROWS}, "list(X.values())"),
        (frame().groupby(OWNER), "[frame for _, frame in X]"),
        (pandas().Series(SEQUENCES), "list(X)"),
    ):
        with pytest.raises(ValueError, match=names("list of sequences", remedy)):
            HDPHMMVB().fit(x)


def test_groups_that_are_no_ids():
    for groups, shape in (("a", ()), (3, ()), ([(i, 1) for i in OWNER], (len(ROWS), 2))):
        with pytest.raises(ValueError, match=names("groups has shape", shape, (len(ROWS),))):
            MemoryBoundedTopicVB(500).fit(ROWS, groups=groups)
        with pytest.raises(ValueError, match=names("groups has shape", shape, "of its sequence")):
            HDPHMMVB().fit(ROWS, groups=groups)


def test_ids_for_lengths():
    with pytest.raises(ValueError, match=names("lengths=", "ids", "groups=...")):
        HDPHMMVB().fit(ROWS, lengths=OWNER)


def test_weights_of_a_wrong_number():
    lengths = [len(x) for x in SEQUENCES]
    with pytest.raises(
        ValueError, match=names("(2,)", "(3,), one weight a sequence", (len(ROWS),))
    ):
        HDPHMMVB().fit(ROWS, lengths=lengths, sample_weight=[1, 2])
    with pytest.raises(ValueError, match=names((len(ROWS), 1), "sample_weight.ravel()")):
        DPMixtureVB().fit(ROWS, sample_weight=np.ones((len(ROWS), 1)))
