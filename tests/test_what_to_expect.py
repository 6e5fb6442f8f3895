"""The study "What to expect": its script runs, goes on where it stopped, and counts as it says."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from docutils.core import publish_doctree
from scipy import sparse

from .benchmarks import corpora, report, topic_peers
from .benchmarks import what_to_expect as study
from .benchmarks.expect_problems import PROBLEMS, Data, Problem
from .benchmarks.topic_peers import TopicFit

PAGE = Path(__file__).parents[1] / "doc" / "what_to_expect.rst"


def two_blobs() -> Data:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 2)) + 20.0 * y[:, np.newaxis]
    return Data(X[::2], X[1::2], y[::2])


TINY = Problem("two blobs", "mixture", two_blobs, None, "full")


def fit(by, seed=0, **fields):
    usual = {"n_components": 2, "bound": None, "heldout": -2.0, "agreement": None, "cpu": 1.0}
    return study.Fit(TINY.name, by, seed, **usual | fields)


@pytest.fixture
def run(monkeypatch, capsys):
    """The script with arguments, on a tiny problem; what it prints."""
    monkeypatch.setattr(study, "PROBLEMS", {TINY.name: TINY})
    monkeypatch.setattr(study, "MOST", {"mixture": 3})

    def main(*arguments):
        monkeypatch.setattr(sys, "argv", ["what_to_expect", *map(str, arguments)])
        study.main()
        return capsys.readouterr().out

    return main


def test_a_study_goes_on_where_it_stopped(run, tmp_path):
    path = tmp_path / "found.jsonl"
    shown = run("--write", path, "--seeds", 2, "--starts", 1)
    assert "two blobs" in shown
    first = path.read_text().splitlines()
    assert len(first) == 2 + 1 + 3
    again = run("--write", path, "--seeds", 2, "--starts", 1)
    assert path.read_text().splitlines() == first
    assert "two blobs: 0 s" in again
    run("--write", path, "--seeds", 2, "--starts", 2)
    assert path.read_text().splitlines()[:-1] == first
    fits = study._read(path)
    assert [fit.by for fit in fits[:3]] == ["default", "default", "from 2"]
    assert fits[-1].by == "from 5"
    assert [fit.n_components for fit in fits[:2]] == [2, 2]
    assert [fit.agreement for fit in fits[:2]] == [1.0, 1.0]


def test_tables_are_rst(run, tmp_path):
    path = tmp_path / "found.jsonl"
    fits = [fit("default", bound=-1.0), fit("from 2", bound=-1.0), fit("peer", heldout=-1.0)]
    path.write_text("".join(json.dumps(one._asdict()) + "\n" for one in fits))
    text = run("--read", path, "--rst").partition("\nTargets")[0]
    tables = list(publish_doctree(text, settings_overrides={"halt_level": 2}).findall(is_table))
    assert len(tables) == len(study.TABLES)
    for table, (_, header) in zip(tables, study.TABLES.values(), strict=True):
        cells = [entry.astext() for entry in table.findall(is_entry)]
        assert cells[: len(header)] == header
        assert len(cells) == 2 * len(header)
        assert "" not in cells


def is_table(node):
    return node.tagname == "table"


def is_entry(node):
    return node.tagname == "entry"


@pytest.mark.parametrize(
    ("part", "meant"),
    [("mixture", "ab"), ("topics", "c"), ("one", "a"), ("one, two", "b"), ("e, t", "b"), ("x", "")],
)
def test_a_whole_name_means_that_problem_alone(monkeypatch, part, meant):
    problems = {"a": ("one", "mixture"), "b": ("one, two", "mixture"), "c": ("three", "topics")}
    made = {key: Problem(*fields, two_blobs) for key, fields in problems.items()}
    monkeypatch.setattr(study, "PROBLEMS", {problem.name: problem for problem in made.values()})
    found = [key for key, problem in made.items() if study._is_meant(problem, part)]
    assert "".join(found) == meant


def test_what_a_line_counts(monkeypatch):
    monkeypatch.setattr(study, "PROBLEMS", {TINY.name: TINY})
    fits = [
        fit("default", bound=-1000.0),
        fit("default", 1, bound=-1000.9),
        fit("default", 2, bound=-1002.0, n_components=1),
        fit("from 2", bound=-1000.5),
        fit("from 5", bound=-1003.0, heldout=-1.0),
        fit("peer", heldout=-1.9),
        fit("clusterer", heldout=None, agreement=0.5),
    ]
    (line,) = study.summaries(fits)
    np.testing.assert_allclose(line.gaps, [0.0, -0.9, -2.0])
    assert line.n_reached == 2
    assert line.best.by == "from 2"
    assert line.beside_starts() == [
        TINY.name, "1 x1, 2 x2", "2", "2 of 3", "2", "-2.0", "-2.00", "-2.000", "-2.000",
    ]  # fmt: skip
    assert line.beside_peers() == [
        TINY.name, "-2.000", "**-1.900**", "peer, 2", "-", "0.50", "clusterer, 2", "1.00", "1.00",
    ]  # fmt: skip


def test_a_best_start_may_be_lower_than_the_default(monkeypatch):
    monkeypatch.setattr(study, "PROBLEMS", {TINY.name: TINY})
    (line,) = study.summaries([fit("default", bound=5.0), fit("from 2", bound=4.0)])
    assert line.n_reached == 1
    assert line.beside_starts()[5:7] == ["0.0", "0.00"]
    assert line.beside_peers()[2:4] == ["-", "-"]


def test_the_best_told_number_of_topics_counts_and_absent_peers_do_not(monkeypatch):
    counts = np.array([[4, 0], [0, 4]])
    data = Data(sparse.csr_matrix(counts), None)
    data = data._replace(test=corpora.completion(data.train, 0, "tokens"))

    def told(X, k):
        phi = np.full((k, 2), 0.5)
        if k == 20:
            phi[:2] = [[0.9, 0.1], [0.1, 0.9]]

        def infer(seen):
            shares = np.zeros((2, k))
            shares[[0, 1], [0, 1]] = 1.0
            return shares

        clock = report.Clock()
        clock.cpu = 1.5
        return TopicFit("", phi, infer, clock, 1)

    def absent(X, k):
        raise ImportError

    monkeypatch.setattr(study, "TOPIC_PEERS", {"told": (told, (10, 20)), "absent": (absent, (2,))})
    problem = Problem("words", "topics", lambda: data)
    (found,) = study._topic_models(problem, data)
    assert (found.by, found.n_components, found.cpu) == ("told", 20, 3.0)
    assert found.heldout == pytest.approx(np.log(0.9))
    assert found.agreement is None


class FakeTomotopy:
    """Two topics of words 0 and 2, as a model of tomotopy shows them; word 1 was never seen."""

    k = 2
    used_vocabs = ("2", "0")

    def add_doc(self, words):
        assert set(words) <= {"0", "2"}

    def train(self, passes, workers):
        pass

    def get_topic_word_dist(self, k):
        return np.array([[0.9, 0.1], [0.2, 0.8]])[k]

    def make_doc(self, words):
        return words

    def infer(self, docs, workers):
        return [np.full(2, np.nan) if "1" in doc else np.array([0.75, 0.25]) for doc in docs], None


def test_tomotopy_is_not_charged_for_words_that_it_never_saw():
    X = sparse.csr_matrix([[2, 0, 1], [0, 0, 3]])
    fit = topic_peers._tomotopy("fake", FakeTomotopy(), X, 1)
    expected = np.array([[0.1, 0.1, 0.9], [0.8, 0.2, 0.2]])
    np.testing.assert_allclose(fit.phi, expected / expected.sum(axis=1, keepdims=True))
    shares = fit.infer(sparse.csr_matrix([[1, 0, 0], [0, 1, 0], [0, 0, 0]]))
    np.testing.assert_allclose(shares, [[0.75, 0.25], [0.5, 0.5], [0.5, 0.5]], atol=1e-6)


def test_the_page_speaks_of_each_problem():
    """In its tables, or among those that were not run."""
    text = PAGE.read_text(encoding="utf-8")
    words = " ".join(text.split())
    told = [name for name in PROBLEMS if f"\n   {name}; " in text or f"*{name}*" in words]
    assert told == list(PROBLEMS)


def test_the_page_has_the_tables_of_the_script():
    text = PAGE.read_text(encoding="utf-8")
    for title, (_, header) in study.TABLES.items():
        for kind in study.STARTS:
            assert f".. csv-table:: {kind}: {title}\n" in text
        assert text.count("; ".join(header)) == len(study.STARTS)
