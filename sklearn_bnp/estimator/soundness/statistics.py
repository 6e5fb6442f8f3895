"""What must hold of statistics and of what is remembered of batches."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np

from ...engine.edits import SplitEdit, UnionEdit
from ...engine.extra import NoExtra
from ...engine.learner import _PAST
from ...engine.statistics import StatBag
from ...hmm.transitions import Transitions, TransitionUnions
from ...hmm.unions import GroupsEdit
from ...topics.counts import DocumentCounts
from .expectations import (
    expect,
    expect_count,
    expect_number,
    expect_numbers,
    expect_positions,
    expect_type,
    expect_uids,
)


class Names(NamedTuple):
    """What all statistics of a model have in common.

    Attributes
    ----------
    n_statistics : int
        Length P of s(x).
    below : int
        Names of components are less.
    docs : tuple of type
        What rows that belong together leave behind in this model.
    """

    n_statistics: int
    below: int
    docs: tuple


def check_bag(what, bag, names):
    """Raise unless a `StatBag` is sound."""
    expect_type(what, bag, StatBag)
    K = len(bag.uids)
    expect_positions(f"names of {what}", bag.uids, (K,), names.below)
    expect_uids(f"names of {what}", bag.uids, names.below)
    expect_numbers(f"statistics of {what}", bag.s, (K, names.n_statistics))
    expect_numbers(f"entropies of {what}", bag.entropy, (K,))
    expect(type(bag.extra) in names.docs, f"{what} hold {type(bag.extra).__name__}")
    check_docs(bag.extra, names)


@singledispatch
def check_docs(docs, names):
    """Raise unless what groups of rows left behind is sound."""


@check_docs.register
def _(docs: DocumentCounts, names):
    for part in docs.parts.values():
        n = len(part.lengths)
        expect_numbers("lengths of documents", part.lengths, (n,), least=0.0)
        expect_number("how often documents count", part.scale, least=0.0)
        if part.weight is not None:
            expect_numbers("weights of documents", part.weight, (n,), least=0.0)
        expect_uids("columns of documents", part.columns, names.below)
        for column in part.columns.values():
            expect_positions("documents that use a topic", column.docs, (None,), n)
            expect(np.all(np.diff(column.docs) > 0), "documents that use a topic are not in order")
            expect_numbers("counts of documents", column.values, column.docs.shape, least=0.0)


@check_docs.register
def _(docs: Transitions, names):
    K = len(docs.uids)
    expect_uids("states of transitions", docs.uids, names.below)
    expect_numbers("transitions", docs.counts, (K + 1, K))
    expect_number("the entropy of chains", docs.entropy)


@check_docs.register
def _(docs: TransitionUnions, names):
    _check_groups(docs.groups, names)


def check_memo(memo, names):
    """Raise unless a `Memo` is sound."""
    expect(memo._bags.keys() == memo._versions.keys(), "batches lack their versions")
    expect_count("edits that were forgotten", memo._forgotten)
    last = memo._forgotten + len(memo._edits)
    for version in memo._versions.values():
        expect_count("the version of a batch", version, least=memo._forgotten)
        expect(version <= last, f"the version of a batch is {version}, beyond {last}")
    for batch_id, bag in memo._bags.items():
        check_bag("a batch", bag, names)
        known = batch_id == _PAST or type(bag.extra) is not DocumentCounts
        expect(known or batch_id in bag.extra.parts, "a batch lacks its own documents")
    for edit in memo._edits:
        check_edit(edit, names)


@singledispatch
def check_edit(edit, names):
    """Raise unless an accepted proposal is sound; of those of a user's trial, that they can be replayed."""
    expect(callable(getattr(edit, "replay", None)), f"an edit is a {type(edit).__name__}")


@check_edit.register
def _(edit: SplitEdit, names):
    check_change(edit.removed, edit.created, names)
    check_rows(edit.rows, edit.created, names)


@check_edit.register
def _(edit: UnionEdit, names):
    check_change(edit.removed, edit.created, names)
    check_values("entropies", edit.entropies)


@check_edit.register
def _(edit: GroupsEdit, names):
    _check_groups(edit.groups, names)
    check_values("changes of the entropy", edit.changes)


def check_change(removed, created, names):
    """Raise unless these are components that go and that come."""
    expect_uids("components that go", removed, names.below)
    expect_uids("components that come", created, names.below)


def check_rows(rows, created, names):
    """Raise unless these are batches' statistics of components ``created``."""
    names = names._replace(docs=(*names.docs, TransitionUnions))
    for bag in rows.values():
        check_bag("what a batch leaves behind", bag, names)
        expect(tuple(bag.uids.tolist()) == tuple(created), "a batch has other successors")


def check_values(what, values):
    """Raise unless all values of a dict from batches are numbers."""
    for value in values.values():
        expect_number(what, value, finite=False)


def _check_groups(groups, names):
    expect_uids(
        "states that become one", [u for members, _ in groups for u in members], names.below
    )
    expect_uids("unions of states", [created for _, created in groups], names.below)


ANY_DOCS = {
    "rows": (NoExtra,),
    "documents": (NoExtra, DocumentCounts),
    "sequences": (NoExtra, Transitions),
}
