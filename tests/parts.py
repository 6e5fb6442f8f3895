"""Parts of the variants of each test, and shares of the tests, for runs that are one of several.

``pytest --part 1/2`` runs each test on about half of its variants, and ``pytest --share 1/2`` runs about half
of the tests on all of their variants. Both together run half of the tests, on half of their variants.
"""

import zlib
from collections import defaultdict

import pytest


def numbered(option, text):
    """The pair (number, how many there are) that the ``text`` of an option means, such as "1/2"."""
    number, slash, n_parts = text.partition("/")
    digits = slash and number.isdecimal() and n_parts.isdecimal()
    if not (digits and 1 <= int(number) <= int(n_parts)):
        raise pytest.UsageError(f"{option} is I/N with 1 <= I <= N, such as 1/2; got {text!r}")
    return int(number), int(n_parts)


def shared_out(names, number, n_shares):
    """Those of the ``names`` of tests that belong to a share, a set: a test with all of its variants."""
    return {
        name
        for name in names
        if zlib.crc32(_without_variant(name).encode()) % n_shares == number - 1
    }


def chosen(names, number, n_parts):
    """Those of the ``names`` of tests that belong to a part, a set.

    Variants of a test have names that differ in their parameters alone. A checksum of its name says to which
    part a variant belongs, so that it stays there when others come and go. A part to which none of a test's
    variants belongs takes one of them nevertheless.
    """
    variants = defaultdict(list)
    for name in names:
        variants[_without_variant(name)].append(name)
    kept = set()
    for of_test in variants.values():
        own = [name for name in of_test if zlib.crc32(name.encode()) % n_parts == number - 1]
        kept.update(own or [of_test[(number - 1) % len(of_test)]])
    return kept


def _without_variant(name):
    return name.partition("[")[0]
