"""Topics as bars of their words."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ..inputs.types import Keywords
from .drawing import component_names, pyplot, several_axes

# Small panels side by side.
_COLUMNS = 4


class TopicsDisplay:
    """Show the words of topics as bars, a panel for each topic.

    Words are ordered by relevance. A word is relevant if it is probable in the topic, and more probable there
    than in the whole corpus. The title of a panel has the topic's position in the estimator (its row of
    ``components_`` and its column of ``transform``), and its share of the corpus. Panels are in the order of
    the positions, which follow ``topic_probs_``. So the shares of the corpus need not be in falling order.

    It is recommended to use `from_estimator` to make one. All parameters are kept as attributes.

    Parameters
    ----------
    words : list of list of str
        Words of each topic that is shown, the most relevant first.
    probabilities : ndarray of shape (n_topics, n_words)
        Their probabilities in the topic.
    topics : ndarray of shape (n_topics,)
        Positions of the topics in the estimator.
    weights : ndarray of shape (n_topics,)
        Shares of the topics in the corpus.
    names : array-like of int of shape (n_topics,), default=None
        Names of the topics in the titles. They are the positions if None.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : ndarray of matplotlib Axes
        The panels of topics, row by row.
    bars_ : list of matplotlib BarContainer
        The bars of each topic.

    See Also
    --------
    pyldavis_data : The same topics for pyLDAvis.

    References
    ----------
    C. Sievert and K. Shirley, LDAvis: a method for visualizing and interpreting topics, ACL workshop on
    interactive language learning, visualization, and interfaces 2014 (relevance).

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn_bnp import HDPTopicVB
    >>> from sklearn_bnp.inspection import TopicsDisplay
    >>> texts = ["the cat and the dog", "a dog and a cat", "stocks fell", "stocks and shares fell"]
    >>> vectorizer = CountVectorizer()
    >>> model = HDPTopicVB(n_components=2, proposals=None, random_state=0)
    >>> model = model.fit(vectorizer.fit_transform(texts))
    >>> display = TopicsDisplay.from_estimator(model, vectorizer.get_feature_names_out(), n_words=3)
    >>> len(display.words[0])
    3
    """

    def __init__(
        self,
        words: Any,
        probabilities: np.ndarray,
        topics: np.ndarray,
        weights: np.ndarray,
        names: Any = None,
    ) -> None:
        self.words = words
        self.probabilities = probabilities
        self.topics = topics
        self.weights = weights
        self.names = topics if names is None else np.asarray(names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        feature_names: Sequence[str] | None = None,
        *,
        n_words: int = 8,
        n_topics: int = 12,
        relevance: float = 0.6,
        lasting_names: bool = False,
        ax: Any = None,
        **plot_kwargs: Any,
    ) -> Self:
        """Draw the largest topics of a fitted estimator.

        Parameters
        ----------
        estimator : HDPTopicVB
            Fitted to counts of words.
        feature_names : array-like of shape (n_features,), default=None
            Words, as from the ``get_feature_names_out`` of a vectorizer. They are the names of the features
            seen during fit if None, or x0, x1, ... if these had none.
        n_words : int, default=8
            Words of each topic.
        n_topics : int, default=12
            The greatest number of topics to draw: those with the largest shares.
        relevance : float, default=0.6
            With 1, words are ordered by their probability in the topic. With 0, they are ordered by how much
            more probable they are there than in the whole corpus. In between, the logarithms of both are
            averaged with this weight.
        lasting_names : bool, default=False
            Whether to name topics by ``component_ids_``, which stay in a stream, and not by their positions.
        ax : matplotlib Axes, array-like of Axes, or None, default=None
            Where to draw; see `plot`.
        **plot_kwargs : dict
            Keyword arguments for `plot`.

        Returns
        -------
        display : TopicsDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        if not 0.0 <= relevance <= 1.0:
            raise ValueError(f"relevance={relevance!r} must be from 0 to 1.")
        probability, shares, names = topics_of_words(estimator, feature_names)
        in_corpus = shares @ probability
        score = np.log(probability) - (1.0 - relevance) * np.log(in_corpus)
        topics = np.sort(np.argsort(-shares, kind="stable")[:n_topics])
        order = np.argsort(-score[topics], axis=1, kind="stable")[:, :n_words]
        display = cls(
            names[order].tolist(),
            np.take_along_axis(probability[topics], order, axis=1),
            topics,
            shares[topics],
            component_names(estimator, lasting_names)[topics],
        )
        return display.plot(ax=ax, **plot_kwargs)

    def plot(self, ax: Any = None, *, bar_kw: Keywords | None = None) -> Self:
        """Draw a panel of bars for each topic.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of Axes, or None, default=None
            As many axes as there are topics, or one to divide. A new figure is made if None.
        bar_kw : dict, default=None
            Keyword arguments for `matplotlib.axes.Axes.barh`.

        Returns
        -------
        display : TopicsDisplay
            The display itself.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        n_topics, n_words = self.probabilities.shape
        given = ax is not None and not isinstance(ax, plt.Axes)
        columns = n_topics if given else min(_COLUMNS, n_topics)
        rows = ceil(n_topics / columns)
        size = (3 * columns, (0.5 + 0.22 * n_words) * rows)
        axes = several_axes(plt, ax, (rows, columns), figsize=size).ravel()
        self.axes_, self.bars_ = axes[:n_topics], []
        self.figure_ = axes[0].figure
        for panel in axes[n_topics:]:
            panel.set_axis_off()
        bar_kw = {"color": "C0", **(bar_kw or {})}
        y = np.arange(n_words)
        for i, panel in enumerate(self.axes_):
            self.bars_.append(panel.barh(y, self.probabilities[i], **bar_kw))
            panel.set_yticks(y, self.words[i])
            panel.invert_yaxis()
            panel.set_title(f"topic {self.names[i]}: {self.weights[i]:.1%}", fontsize="medium")
            panel.tick_params(labelsize="small")
            panel.xaxis.get_major_locator().set_params(nbins=3)
        for panel in self.axes_[-columns:]:
            panel.set_xlabel("probability")
        return self


def topics_of_words(estimator, feature_names):
    """Probabilities of words (K, V), shares of the topics in the corpus (K,), and the words (V,)."""
    if not hasattr(estimator, "top_words"):
        raise TypeError(
            f"{type(estimator).__name__} has no topics of words: give an HDPTopicVB that was fitted to "
            "counts of words; ComponentsDisplay is for components, and for topics of rows."
        )
    estimator.top_words(feature_names, n=1)  # its checks
    if feature_names is None:
        feature_names = _check_feature_names_in(estimator)
    mass = estimator.components_.sum(axis=1)
    return estimator.components_ / mass[:, np.newaxis], mass / mass.sum(), np.asarray(feature_names)


def counts_of_documents(corpus):
    """Tokens of each document (n_documents,) and of each word (V,), whole numbers if X holds these."""
    counts, indptr = corpus.documents.counts, corpus.documents.indptr
    owner = np.repeat(np.arange(corpus.n_documents), np.diff(indptr))
    lengths = np.bincount(owner, counts, minlength=corpus.n_documents)
    frequency = np.bincount(corpus.documents.indices, counts, minlength=corpus.n_features)
    if corpus.dtype.kind == "f":
        return lengths, frequency
    return lengths.astype(np.int64), frequency.astype(np.int64)


def pyldavis_data(
    estimator: Any, X: Any, feature_names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the arguments of ``pyLDAvis.prepare`` for a fitted topic model and its documents.

    Parameters
    ----------
    estimator : HDPTopicVB
        Fitted to counts of words.
    X : {array-like, sparse matrix} of shape (n_documents, n_features)
        Counts of words, in one of the forms that ``fit`` takes.
    feature_names : array-like of shape (n_features,), default=None
        Words, as from the ``get_feature_names_out`` of a vectorizer. They are the names of the features
        seen during fit if None, or x0, x1, ... if these had none.

    Returns
    -------
    data : dict
        Arguments by name: ``pyLDAvis.prepare(**data)``. Documents and words that never occur are left out,
        as pyLDAvis asks for. Topics stay in the estimator's order. pyLDAvis counts from 1: its topic 1 is
        topic 0 of the estimator.

    See Also
    --------
    TopicsDisplay : Topics as bars of their words.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import HDPTopicVB
    >>> from sklearn_bnp.inspection import pyldavis_data
    >>> X = np.array([[3, 2, 0, 0], [2, 4, 0, 0], [0, 0, 4, 1], [0, 0, 2, 2]])
    >>> model = HDPTopicVB(n_components=2, proposals=None, random_state=0).fit(X)
    >>> data = pyldavis_data(model, X, ["cat", "dog", "stocks", "shares"])
    >>> data["doc_lengths"]
    array([5, 6, 5, 4])
    """
    check_is_fitted(estimator)
    probability, _, names = topics_of_words(estimator, feature_names)
    corpus = estimator._corpus(X, None)
    lengths, frequency = counts_of_documents(corpus)
    in_documents = estimator._shares(corpus.documents)
    documents, words = lengths > 0, frequency > 0
    kept = probability[:, words]
    return {
        "topic_term_dists": kept / kept.sum(axis=1, keepdims=True),
        "doc_topic_dists": in_documents[documents],
        "doc_lengths": lengths[documents],
        "vocab": names[words],
        "term_frequency": frequency[words],
        "sort_topics": False,
    }
