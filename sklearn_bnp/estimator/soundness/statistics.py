"""Checks of statistics, and of the memory of batches."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

from ...engine.edits import SplitEdit, UnionEdit
from ...engine.memo import is_past
from ...engine.statistics import StatBag
from ...engine.unions import UnionFinding
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
    """Properties that all statistics of a fit share.

    Attributes
    ----------
    n_statistics : int
        Length P of s(x).
    below : int
        Every uid of a component is less than this number.
    extras : tuple of type
        Classes that the ``extra`` of statistics may have in this model.
    trial_extras : tuple of type
        Further classes that it may have in the statistics that a trial collects.
    """

    n_statistics: int
    below: int
    extras: tuple
    trial_extras: tuple = ()


def check_bag(what, bag, names):
    """Raise unless a `StatBag` is sound."""
    expect_type(what, bag, StatBag)
    K = len(bag.uids)
    expect_positions(f"names of {what}", bag.uids, (K,), names.below)
    expect_uids(f"names of {what}", bag.uids, names.below)
    expect_numbers(f"statistics of {what}", bag.s, (K, names.n_statistics))
    expect_numbers(f"entropies of {what}", bag.entropy, (K,))
    expect(type(bag.extra) in names.extras, f"{what} hold {type(bag.extra).__name__}")
    check_extra(bag.extra, names)


@singledispatch
def check_extra(extra, names):
    """Raise unless the extra of statistics is sound. Each slice registers its own classes."""


@singledispatch
def check_extra_of_batch(extra, batch_id):
    """Raise unless the extra of a remembered batch belongs to that batch."""


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
        if not is_past(batch_id):
            check_extra_of_batch(bag.extra, batch_id)
    for content in memo._contents.values():
        expect_type("the hash of a batch", content, str)
    for edit in memo._edits:
        check_edit(edit, names)


@singledispatch
def check_edit(edit, names):
    """Raise unless the edit of an accepted trial is sound; one of a user's own must have ``replay``."""
    expect(callable(getattr(edit, "replay", None)), f"an edit is a {type(edit).__name__}")


@check_edit.register
def _(edit: SplitEdit, names):
    check_change(edit.removed, edit.created, names)
    check_rows(edit.rows, edit.created, names)


@check_edit.register
def _(edit: UnionEdit, names):
    check_change(edit.removed, edit.created, names)
    check_unions("entropies", edit.entropies)


def check_change(removed, created, names):
    """Raise unless these are uids of components that an edit removes and creates."""
    expect_uids("components that go", removed, names.below)
    expect_uids("components that come", created, names.below)


def check_rows(rows, created, names):
    """Raise unless these are, by batch, the statistics of the components ``created``."""
    names = names._replace(extras=names.extras + names.trial_extras)
    for bag in rows.values():
        check_bag("what a batch leaves behind", bag, names)
        expect(tuple(bag.uids.tolist()) == tuple(created), "a batch has other successors")


def check_unions(what, found):
    """Raise unless the values of a dict from batches are entropies, or sound findings of a union."""
    for value in found.values():
        value = UnionFinding.of(value)
        expect_number(what, value.entropy, finite=False)
        if value.more is not None:
            check_union(value.more)


@singledispatch
def check_union(more):
    """Raise unless what is known of a union beside its entropy is sound; each slice registers its own."""
    expect(False, f"a union is known by a {type(more).__name__}")


def check_values(what, values):
    """Raise unless the values of a dict from batches are numbers."""
    for value in values.values():
        expect_number(what, value, finite=False)
