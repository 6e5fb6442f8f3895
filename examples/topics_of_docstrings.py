"""Topics of a corpus that every installation has: the docstrings of numpy, scipy and scikit-learn.

Starts from one topic and finds the others. Prints each topic's most probable words, and the functions
that are most about it; the picture shows the words with their probabilities.

    python examples/topics_of_docstrings.py [--output topics_of_docstrings.png]
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import time
import warnings
from collections import Counter

import matplotlib

matplotlib.use("Agg")  # pictures go to files

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from sklearn_bnp import HDPTopicVB

PACKAGES = ("numpy", "scipy", "sklearn")
# Docstrings of fewer words say hardly anything, and are left out.
LEAST_WORDS = 30


def public_modules(package):
    """The modules of a package that anybody may import, and that can be imported here."""
    root = importlib.import_module(package)
    yield root
    for info in pkgutil.iter_modules(root.__path__, f"{package}."):
        last = info.name.rpartition(".")[2]
        if last.startswith("_") or last in ("tests", "conftest", "f2py", "distutils", "setup"):
            continue
        try:
            yield importlib.import_module(info.name)
        except (ImportError, AttributeError):  # of optional dependencies, or long deprecated
            continue


def docstrings():
    """Name -> docstring of public functions and classes, each text once, in alphabetical order."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is deprecated
        for package in PACKAGES:
            for module in public_modules(package):
                for name, value in list(vars(module).items()):
                    home = f"{getattr(value, '__module__', '')}."
                    at_home = home.startswith(f"{module.__name__}.")  # and not imported for use
                    if name.startswith("_") or not callable(value) or not at_home:
                        continue
                    text = inspect.getdoc(value) or ""
                    if len(text.split()) >= LEAST_WORDS:
                        found.setdefault(text, f"{module.__name__}.{name}")
    return dict(sorted((name, text) for text, name in found.items()))


def counts_of(texts):
    """Counts of words (n_texts, n_words) in a sparse matrix, and the words."""
    vectorizer = CountVectorizer(
        stop_words="english", token_pattern=r"(?u)\b[a-zA-Z]{3,}\b", min_df=5, max_df=0.4
    )
    return vectorizer.fit_transform(texts), vectorizer.get_feature_names_out()


def print_topics(model, words, names, shares, share_of_words, n_words=9, n_examples=3):
    """A line a topic: its share of the corpus and its most probable words; under it, examples."""
    top_words = model.top_words(words, n_words)
    for k in np.argsort(-share_of_words):
        most = np.argsort(-shares[:, k], kind="stable")[:n_examples]
        print(f"{k:3d}  {share_of_words[k]:5.1%}  {' '.join(top_words[k])}")
        print(f"            {', '.join(names[d] for d in most)}")


def draw_topics(model, words, share_of_words, output, n_topics=24, n_words=8):
    """The most probable words of the largest topics, with their probabilities, as bars."""
    n_topics = min(n_topics, model.n_components_)
    n_columns = min(6, n_topics)
    n_lines = -(-n_topics // n_columns)
    figure, axes = plt.subplots(
        n_lines, n_columns, figsize=(2.2 * n_columns, 1.9 * n_lines + 0.5), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axis in axes.flat[n_topics:]:
        axis.axis("off")
    for k, axis in zip(np.argsort(-share_of_words), axes.flat[:n_topics], strict=False):
        top = np.argsort(-model.means_[k], kind="stable")[:n_words][::-1]
        axis.barh(np.arange(len(top)), model.means_[k, top], color="tab:blue", alpha=0.35)
        for place, word in enumerate(top):
            axis.text(0.0, place, f" {words[word]}", va="center", fontsize=8)
        axis.set_title(f"{share_of_words[k]:.1%}", fontsize=8, loc="left", pad=2)
        axis.set_xticks([])
        axis.set_yticks([])
        for side in ("top", "right", "bottom"):
            axis.spines[side].set_visible(False)
    figure.suptitle(
        f"Topics of docstrings: {model.n_components_} found from one, the {n_topics} largest shown, "
        "each with its share of the words",
        fontsize=10,
    )
    figure.savefig(output, dpi=130)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="topics_of_docstrings.png", help="the picture's file")
    options = parser.parse_args()
    texts = docstrings()
    names = np.array(list(texts))
    X, words = counts_of(texts.values())
    print(f"{X.shape[0]} docstrings, {int(X.sum())} words of {X.shape[1]} different ones")
    train, test = train_test_split(np.arange(len(names)), test_size=0.2, random_state=0)

    start = time.perf_counter()
    model = HDPTopicVB(random_state=0, verbose=1).fit(X[train])
    seconds = time.perf_counter() - start
    made = sum((Counter(lap.accepted) for lap in model.history_), Counter())
    moves = ", ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in made.items())
    print(f"\nFound {model.n_components_} topics, from 1, in {seconds:.1f} s: {moves} accepted.\n")

    shares = model.transform(X)
    lengths = np.asarray(X.sum(axis=1)).ravel()
    share_of_words = lengths @ shares / lengths.sum()
    print_topics(model, words, names, shares, share_of_words)
    draw_topics(model, words, share_of_words, options.output)
    print(f"\nPicture          {options.output}")

    alone = HDPTopicVB(proposals=None).fit(X[train])
    print("Held-out words of docstrings that were not seen, in nats a word (perplexity):")
    for name, fitted in ((f"{model.n_components_} topics", model), ("1 topic", alone)):
        print(f"  {name:<14} {fitted.score(X[test]):.3f}  ({fitted.perplexity(X[test]):.0f})")


if __name__ == "__main__":
    main()
