"""Parts of the variants of each test, and shares of the tests: together they are all of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import chosen, numbered, shared_out
from tests.test_docstrings import pages_with_examples, public_names

NAMES = [f"tests/test_a.py::test_{n}[{i}-x[{i}]]" for n in (1, 2, 3, 40) for i in range(n)]
NAMES += ["tests/test_a.py::test_alone", "tests/test_b.py::TestClass::test_1[0]"]


def without_parameters(names):
    return {name.partition("[")[0] for name in names}


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7])
def test_parts_are_everything_and_each_has_some_of_every_test(n_parts):
    parts = [chosen(NAMES, number, n_parts) for number in range(1, n_parts + 1)]
    assert set.union(*parts) == set(NAMES)
    assert all(without_parameters(names) == without_parameters(NAMES) for names in parts)


def test_a_part_is_about_its_share():
    many = [name for name in NAMES if "test_40" in name]
    first, second = chosen(many, 1, 2), chosen(many, 2, 2)
    assert first.isdisjoint(second)
    assert 10 <= len(first) <= 30


def test_a_variant_stays_in_its_part():
    many = [name for name in NAMES if "test_40" in name]
    assert chosen(many, 1, 2) & set(many[5:]) == chosen(many[5:], 1, 2)


@pytest.mark.parametrize("n_shares", [1, 2, 3])
def test_shares_are_everything_and_each_test_is_in_one(n_shares):
    names = [
        f"tests/test_{letter}.py::test_{n}[{i}]"
        for letter in "abcdefghij"
        for n in (1, 2)
        for i in (0, 1)
    ]
    shares = [shared_out(names, number, n_shares) for number in range(1, n_shares + 1)]
    assert sorted(name for share in shares for name in share) == sorted(names)
    tests = [without_parameters(share) for share in shares]
    assert sum(map(len, tests)) == 20
    assert set.union(*tests) == without_parameters(names)
    assert all(tests)


@pytest.mark.parametrize(("text", "pair"), [("1/1", (1, 1)), ("1/2", (1, 2)), ("12/12", (12, 12))])
def test_what_an_argument_means(text, pair):
    assert numbered("--part", text) == pair


@pytest.mark.parametrize("option", ["--part", "--share"])
@pytest.mark.parametrize("text", ["", "1", "/", "0/2", "3/2", "-1/2", "1/0", "1/2/3", "a/b", "²/3"])
def test_other_arguments_are_refused(option, text):
    message = f"{option} is I/N with 1 <= I <= N, such as 1/2; got"
    with pytest.raises(pytest.UsageError, match=message):
        numbered(option, text)


def collected(*options, path="tests/mixture/test_copies.py"):
    """Names of the tests of one file that pytest would run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", *options]
    run = subprocess.run(
        [*command, path], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True
    )
    return {line for line in run.stdout.splitlines() if line.startswith(path)}


@pytest.mark.extended
def test_what_the_command_of_the_readme_leaves_out_is_extended():
    """Both together are all but the slow tests; of each ``quarter`` some variants are left."""
    usual, extended = collected(), collected("-m", "extended and not slow")
    assert usual.isdisjoint(extended)
    assert usual | extended == collected("-m", "not slow")
    quarters = collected("-m", "quarter and not slow")
    assert quarters & extended
    assert without_parameters(quarters & usual) == without_parameters(quarters)


@pytest.mark.extended
def test_each_part_has_all_variants_that_test_different_things():
    quick = [param for param in pages_with_examples() if pytest.mark.slow not in param.marks]
    pages = {param.id for param in quick}
    part = collected("-m", "not slow", "--part", "9/9", path="tests/test_docstrings.py")
    assert {name[:-1].partition("[")[2] for name in part if "of_pages_run" in name} == pages
    names = set(public_names())
    assert 0 < len([name for name in part if "follows_numpydoc" in name]) < len(names) / 4
