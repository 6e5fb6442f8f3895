"""Components of a mixture, topics of rows, or states of a Markov model, over the rows."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..estimator.validation import checked_generator
from ..inputs.advice import listed
from ..inputs.types import Data, Keywords, RandomState
from .columns import names_of, numbers_in, uses_of
from .drawing import colours, component_names, name_ticks, pyplot, repeated, several_axes


class ComponentsDisplay:
    """Show rows in a plane, coloured by component, with an ellipse for each component.

    The plane is that of two features, or of the first two principal components of the standardised rows.
    Topics of documents of rows and states of sequences are components, too. Columns that the model takes for
    categories cannot be drawn.

    An ellipse holds what lies within ``n_std`` standard deviations of a component's mean. It is dashed if no
    row that is drawn belongs to the component. Beside the plane, bars show the weights. Planes with a column
    whose likelihood has no covariances have no ellipses.

    The name of a component is its position or, with ``lasting_names``, its entry in ``component_ids_``. The
    same name has the same colour in all pictures. After thirty names, colours are used again.

    It is recommended to use `from_estimator` to make one. All parameters are kept as attributes.

    Parameters
    ----------
    points : ndarray of shape (n_points, 2)
        Rows in the plane.
    labels : ndarray of shape (n_points,)
        Component of each row.
    weights : ndarray of shape (n_components,)
        Weights of the components.
    means : ndarray of shape (n_components, 2), default=None
        Means in the plane.
    covariances : ndarray of shape (n_components, 2, 2), default=None
        Covariances in the plane.
    axis_names : tuple of (str, str), default=("", "")
        Names of the two directions.
    names : array-like of int of shape (n_components,), default=None
        Names of the components, which are shown, and on which their colours depend. They are the positions
        if None.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : ndarray of matplotlib Axes, shape (2,)
        Panel of the rows, and panel of the weights.
    scatter_ : matplotlib PathCollection
        The rows.
    ellipses_ : list of matplotlib Ellipse
        One for each component of enough weight; empty without covariances.
    bars_ : matplotlib BarContainer
        The weights.

    See Also
    --------
    ConvergenceDisplay : How the fit went.
    StatesDisplay : States over time.
    TopicsDisplay : Topics of words.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_bnp import DPMixtureVB
    >>> from sklearn_bnp.inspection import ComponentsDisplay
    >>> X = load_iris().data
    >>> model = DPMixtureVB(random_state=0).fit(X)
    >>> display = ComponentsDisplay.from_estimator(model, X, features=[2, 3])
    >>> len(display.ellipses_) == model.n_components_
    True
    """

    def __init__(
        self,
        points: np.ndarray,
        labels: np.ndarray | None,
        weights: np.ndarray,
        *,
        means: Any = None,
        covariances: Any = None,
        axis_names: tuple[str, str] = ("", ""),
        names: Any = None,
    ) -> None:
        self.points = points
        self.labels = labels
        self.weights = weights
        self.means = means
        self.covariances = covariances
        self.axis_names = axis_names
        self.names = np.arange(len(weights)) if names is None else np.asarray(names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Data,
        *,
        features: Any = "pca",
        lengths: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        max_points: int = 5000,
        random_state: RandomState = 0,
        lasting_names: bool = False,
        ax: Any = None,
        **plot_kwargs: Any,
    ) -> Self:
        """Draw the components of a fitted estimator over rows.

        Parameters
        ----------
        estimator : estimator
            A fitted `DPMixtureVB`, `HDPHMMVB`, `MemoryBoundedTopicVB`, or `HDPTopicVB` of rows with groups.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list of such
            Rows, in one of the forms that ``predict`` takes. If X is a frame, axes have the names of its
            columns.
        features : "pca" or array-like of 2 int or str, default="pca"
            The plane: the first two principal components of the standardised rows, or two columns by
            position or name. Rows of two columns are drawn as they are. Principal components are those of the
            columns that the model takes for numbers.
        lengths : array-like of shape (n_sequences,), default=None
            Lengths of the sequences, for `HDPHMMVB`, if X is one array with all of their rows.
        groups : array-like of shape (n_samples,), default=None
            The document of each row, for topics, or its sequence, for `HDPHMMVB`.
        max_points : int, default=5000
            The greatest number of rows to draw. If there are more, so many are chosen at random.
        random_state : int, RandomState instance or None, default=0
            Seed for the choice of rows.
        lasting_names : bool, default=False
            Whether to name components by ``component_ids_``. In a stream, positions and weights change, and
            these names stay: a component keeps its name and its colour in the pictures of later batches.
        ax : matplotlib Axes, array-like of Axes, or None, default=None
            Where to draw; see `plot`.
        **plot_kwargs : dict
            Keyword arguments for `plot`.

        Returns
        -------
        display : ComponentsDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict"):
            raise ValueError(
                f"This {type(estimator).__name__} has no components of rows to draw, since it was fitted to "
                "documents of words. TopicsDisplay is for topics of words."
            )
        given = {"lengths": lengths, "groups": groups}
        labels = estimator.predict(X, **{k: v for k, v in given.items() if v is not None})
        parts = list(cast(Any, X)) if isinstance(labels, list) else [X]
        labels = np.concatenate(labels) if isinstance(labels, list) else np.asarray(labels)
        uses = uses_of(estimator)
        columns, axis_names = _axes_of(features, uses, estimator.n_features_in_, names_of(parts[0]))
        rows = np.concatenate([numbers_in(part, columns) for part in parts])
        points, origin, plane = _plane(rows)
        means, covariances = _moments(estimator, uses, columns)
        if means is not None:
            means = (means - origin) @ plane
        if covariances is not None:
            covariances = plane.T @ covariances @ plane
        if len(points) > max_points:
            rng = checked_generator(random_state)
            chosen = np.sort(rng.choice(len(points), max_points, replace=False))
            points, labels = points[chosen], labels[chosen]
        display = cls(
            points, labels, _weights(estimator), means=means, covariances=covariances,
            axis_names=axis_names, names=component_names(estimator, lasting_names),
        )  # fmt: skip
        return display.plot(ax=ax, **plot_kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        n_std: float = 2.0,
        min_weight: float = 0.0,
        scatter_kw: Keywords | None = None,
        ellipse_kw: Keywords | None = None,
    ) -> Self:
        """Draw rows, ellipses and weights.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of Axes, or None, default=None
            Two axes to draw on, or one to divide. A new figure is made if None.
        n_std : float, default=2.0
            Half axes of the ellipses, in standard deviations. In a plane, 2 of them hold 86 per cent of a
            component's rows.
        min_weight : float, default=0.0
            Components of less weight get no ellipse.
        scatter_kw : dict, default=None
            Keyword arguments for `matplotlib.axes.Axes.scatter`.
        ellipse_kw : dict, default=None
            Keyword arguments for `matplotlib.patches.Ellipse`.

        Returns
        -------
        display : ComponentsDisplay
            The display itself.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        axes = several_axes(plt, ax, (1, 2), figsize=(9, 4.5), width_ratios=[3, 1])
        self.axes_ = axes.ravel()
        plane, bars = self.axes_
        self.figure_ = plane.figure
        palette = colours(self.names)
        scatter_kw = {"s": 9, "alpha": 0.7, "linewidths": 0, **(scatter_kw or {})}
        self.scatter_ = plane.scatter(*self.points.T, c=palette[self.labels], **scatter_kw)
        self._plot_ellipses(plane, palette, n_std, min_weight, ellipse_kw or {})
        plane.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        self.bars_ = bars.barh(np.arange(len(self.weights)), self.weights, color=palette)
        bars.set(xlabel="weight", ylabel=f"component{repeated(self.names)}")
        name_ticks(bars.yaxis, self.names)
        bars.invert_yaxis()
        return self

    def _plot_ellipses(self, plane, palette, n_std, min_weight, ellipse_kw):
        """Ellipses, and a legend that says what they are."""
        self.ellipses_ = []
        drawn = {}
        for k in np.flatnonzero(self.weights >= min_weight) if self.covariances is not None else []:
            has_rows = np.any(self.labels == k)
            style = {"edgecolor": palette[k], "facecolor": "none", "lw": 1.5}
            style |= {"ls": "-" if has_rows else "--", **ellipse_kw}
            patch = _ellipse(self.means[k], self.covariances[k], n_std, style)
            self.ellipses_.append(plane.add_patch(patch))
            drawn.setdefault("no row drawn" if not has_rows else f"{n_std:g} std", patch)
        if drawn:
            plane.legend(drawn.values(), drawn, fontsize="small")


def _weights(estimator):
    """Weights (K,) of components or states, or of topics in the mean of documents."""
    return estimator.weights_ if hasattr(estimator, "weights_") else estimator.topic_probs_


def _axes_of(features, uses, n_features, names):
    """Columns that are drawn, and names of both axes; for principal components, all columns they are of."""
    if isinstance(features, str) and features == "pca":
        if len(uses.numbers) < 2:
            raise ValueError(
                f"X has {n_features} columns, of which the model takes {len(uses.numbers)} for numbers; "
                "a plane needs two columns or more."
            )
        if len(uses.numbers) > 2:
            return uses.numbers, ("principal component 1", "principal component 2")
        columns = uses.numbers
    else:
        columns = [] if np.ndim(features) != 1 else [_position(each, names) for each in features]
    if len(columns) != 2 or not all(
        isinstance(c, (int, np.integer)) and -n_features <= c < n_features for c in columns
    ):
        by_name = " or name" if names else ""
        raise ValueError(
            f"features={features!r} must be 'pca', or two columns by position (0 to {n_features - 1})"
            f"{by_name}."
        )
    columns = [int(c) % n_features for c in columns]
    shown = names or [f"feature {d}" for d in range(n_features)]
    for d in columns:
        if d in uses.categories:
            others = [(names or range(n_features))[c] for c in uses.numbers]
            remedy = f"choose two of {listed(others)}" if len(others) > 1 else "choose others"
            raise ValueError(
                f"features={features!r}: column {names[d] if names else d!r} was fitted as categories, which "
                f"have no place on an axis; {remedy}."
            )
    return columns, tuple(shown[d] for d in columns)


def _plane(rows):
    """Rows in the plane (n, 2), and its origin (D,) and directions (D, 2).

    The plane of two columns is that of the rows themselves, and of more, that of their first principal
    components. In these, a missing entry counts as the mean of its column.
    """
    if rows.shape[1] == 2:
        return rows, np.zeros(2), np.eye(2)
    origin = np.nanmean(rows, axis=0)
    filled = np.where(np.isnan(rows), origin, rows) - origin
    unit = np.std(filled, axis=0)
    unit[unit == 0.0] = 1.0
    _, vectors = np.linalg.eigh((filled / unit).T @ (filled / unit))
    plane = vectors[:, :-3:-1] / unit[:, np.newaxis]
    plane = plane * np.sign(plane[np.argmax(np.abs(plane), axis=0), [0, 1]])
    return filled @ plane, origin, plane


def _position(column, names):
    """Position of a column that is given by position or name; what is no name stays as it is."""
    return names.index(column) if names and column in names else column


def _moments(estimator, uses, columns):
    """Means (K, D) and covariances (K, D, D) of components in some columns; None where there are none."""
    means, covariances = getattr(estimator, "means_", np.empty((0, 0))), None
    if means.shape[1] != estimator.n_features_in_ or np.isnan(means[:, columns]).any():
        return None, None
    means = means[:, columns]
    if hasattr(estimator, "covariances_"):
        covariances = _full(estimator.covariances_, columns)
    elif hasattr(estimator, "blocks_"):
        covariances = _joined(estimator.blocks_, uses.observation, columns, len(means))
    return means, covariances


def _joined(blocks, observation, columns, n_components):
    """Covariances (K, D, D) of columns of blocks, which are independent; None if a block has none."""
    out = np.zeros((n_components, len(columns), len(columns)))
    for name, _, own in observation.blocks:
        own = np.asarray(own).tolist()
        here = [i for i, d in enumerate(columns) if d in own]
        if here and "covariances_" not in blocks[name]:
            return None
        if here:
            there = [own.index(columns[i]) for i in here]
            out[np.ix_(range(len(out)), here, here)] = _full(blocks[name]["covariances_"], there)
    return out


def _full(covariances, columns):
    """Covariances (K, D, D) of some columns, from those of any covariance type."""
    if covariances.ndim == 3:
        return covariances[np.ix_(range(len(covariances)), columns, columns)]
    if covariances.ndim == 2:
        return np.eye(len(columns)) * covariances[:, np.newaxis, columns]
    return np.eye(len(columns)) * covariances[:, np.newaxis, np.newaxis]


def _ellipse(mean, covariance, n_std, style):
    """Patch of all points within so many standard deviations."""
    from matplotlib.patches import Ellipse

    values, vectors = np.linalg.eigh(covariance)
    width, height = 2.0 * n_std * np.sqrt(np.maximum(values, 0.0))
    angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
    return Ellipse(mean, width, height, angle=angle, **style)
