"""States of sequences over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..inputs.group_ids import check_groups
from ..inputs.types import Data, Integers, Keywords
from .columns import columns_of_numbers, names_of, numbers_in
from .drawing import colours, component_names, name_ticks, pyplot, repeated, several_axes

# States up to which transition probabilities are written into the matrix.
_WRITTEN = 8
_KINDS = ("sequence", "rugs", "transitions", "durations")


class StatesDisplay:
    """Show which state a sequence is in, and what the states do.

    Four panels, or some of them:

    - *sequence*: the columns of one sequence as lines, over a background in the pale colour of the state;
    - *rugs*: all sequences, each a strip in the colours of its states;
    - *transitions*: the matrix of transition probabilities;
    - *durations*: how long visits to each state last, as boxes from the first to the third quartile.

    The name of a state is its position or, with ``lasting_names``, its entry in ``component_ids_``. The same
    name has the same colour in all pictures. After thirty names, colours are used again.

    It is recommended to use `from_estimator` to make one. All parameters are kept as attributes.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_steps, n_features)
        The sequences.
    paths : list of ndarray of shape (n_steps,)
        The state at each step of each sequence.
    transmat : ndarray of shape (n_states, n_states)
        Transition probabilities, from the state of the row to that of the column.
    feature_names : list of str
        Names of the columns.
    names : array-like of int of shape (n_states,), default=None
        Names of the states, which are shown, and on which their colours depend. They are the positions if
        None.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : dict of str to matplotlib Axes
        Kind of panel -> its axes.
    lines_ : list of matplotlib Line2D
        Lines of the panel *sequence*.
    spans_ : list of matplotlib patches
        Visits in the panel *sequence*, one after the other.
    image_ : matplotlib AxesImage
        Panel *rugs*.
    matrix_ : matplotlib AxesImage
        Panel *transitions*.
    boxes_ : dict
        Panel *durations*, as from `matplotlib.axes.Axes.boxplot`.

    See Also
    --------
    ComponentsDisplay : States over the rows, without time.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import HDPHMMVB
    >>> from sklearn_bnp.inspection import StatesDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([0.0, 5.0, 0.0, 5.0], 50)[:, np.newaxis] + rng.normal(size=(200, 1))
    >>> model = HDPHMMVB(random_state=0).fit(X)
    >>> display = StatesDisplay.from_estimator(model, X)
    >>> display.durations()[0]
    array([50, 50])
    """

    def __init__(
        self,
        sequences: Any,
        paths: Any,
        transmat: np.ndarray,
        feature_names: Sequence[str] | None,
        names: Any = None,
    ) -> None:
        self.sequences = sequences
        self.paths = paths
        self.transmat = transmat
        self.feature_names = feature_names
        self.names = np.arange(len(transmat)) if names is None else np.asarray(names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Data,
        *,
        lengths: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        kind: Any = None,
        lasting_names: bool = False,
        ax: Any = None,
        **plot_kwargs: Any,
    ) -> Self:
        """Draw the states of a fitted estimator.

        Parameters
        ----------
        estimator : HDPHMMVB
            A fitted estimator.
        X : array-like of shape (n_samples, n_features), or list of such
            Sequences, in one of the forms that ``predict`` takes. Columns of a frame that do not hold
            numbers are not drawn.
        lengths : array-like of shape (n_sequences,), default=None
            Lengths of the sequences, if X is one array with all of their rows.
        groups : array-like of shape (n_samples,), default=None
            The sequence of each row of X, if rows of a sequence are not next to each other. Sequences are
            drawn in the order of their sorted ids.
        kind : str or list of str, default=None
            Panels to draw. If None, all are drawn, but no "rugs" if there is a single sequence.
        lasting_names : bool, default=False
            Whether to name states by ``component_ids_``. In a stream, positions and weights change, and these
            names stay: a state keeps its name and its colour in the pictures of later batches.
        ax : matplotlib Axes, array-like of Axes, or None, default=None
            Where to draw; see `plot`.
        **plot_kwargs : dict
            Keyword arguments for `plot`.

        Returns
        -------
        display : StatesDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "transmat_"):
            raise ValueError(
                f"{type(estimator).__name__} has no states: give a fitted HDPHMMVB; ComponentsDisplay is "
                "for rows."
            )
        paths = estimator.predict(X, lengths=lengths, groups=groups)
        listed = isinstance(paths, list)
        parts = list(cast(Any, X)) if listed else [X]
        columns = columns_of_numbers(parts[0])
        sequences = [numbers_in(part, columns) for part in parts]
        if not listed:
            order, starts = _order_of_sequences(len(paths), lengths, groups)
            sequences = np.split(sequences[0][order], starts)
            paths = np.split(paths[order], starts)
        names = names_of(parts[0])
        names = [f"feature {d}" if names is None else names[d] for d in columns]
        display = cls(
            sequences, paths, estimator.transmat_, names,
            component_names(estimator, lasting_names),
        )  # fmt: skip
        return display.plot(ax=ax, kind=kind, **plot_kwargs)

    def durations(self) -> list[Integers]:
        """Lengths of the visits to each state.

        Returns
        -------
        durations : list of ndarray
            For each state the lengths of all visits, in steps, in order. The first and the last visit of
            a sequence may be cut off.
        """
        visits = [visit for path in self.paths for visit in _visits(path)]
        return [
            np.array([stop - start for state, start, stop in visits if state == k], dtype=int)
            for k in range(len(self.transmat))
        ]

    def plot(
        self,
        ax: Any = None,
        *,
        kind: Any = None,
        sequence: int = 0,
        columns: Any = None,
        line_kw: Keywords | None = None,
    ) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of Axes, or None, default=None
            As many axes as there are panels, or one to divide. A new figure is made if None.
        kind : str or list of str, default=None
            Panels to draw. If None, all are drawn, but no "rugs" if there is a single sequence.
        sequence : int, default=0
            The sequence of the panel *sequence*.
        columns : list of int, default=None
            Columns to draw there, at most four; the first four if None.
        line_kw : dict, default=None
            Keyword arguments for the lines.

        Returns
        -------
        display : StatesDisplay
            The display itself.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        if kind is None:
            kind = [k for k in _KINDS if k != "rugs" or len(self.paths) > 1]
        kinds = [kind] if isinstance(kind, str) else list(kind)
        unknown = [k for k in kinds if k not in _KINDS]
        if unknown or not kinds:
            raise ValueError(f"kind={kind!r} must be among {', '.join(_KINDS)}.")
        axes = several_axes(plt, ax, (len(kinds), 1), figsize=(8, 2.8 * len(kinds))).ravel()
        self.axes_ = dict(zip(kinds, axes, strict=True))
        self.figure_ = axes[0].figure
        palette = colours(self.names)
        for k, panel in self.axes_.items():
            if k == "sequence":
                self._plot_sequence(panel, palette, sequence, columns, line_kw or {})
            else:
                getattr(self, f"_plot_{k}")(panel, palette)
        return self

    def _plot_sequence(self, panel, palette, sequence, columns, line_kw):
        rows, path = self.sequences[sequence], self.paths[sequence]
        columns = range(min(4, rows.shape[1])) if columns is None else columns
        pale = 0.4 * palette + 0.6
        self.spans_ = [
            panel.axvspan(start - 0.5, stop - 0.5, color=pale[state], lw=0)
            for state, start, stop in _visits(path)
        ]
        styles = "-", "--", ":", "-."
        self.lines_ = []
        for i, column in enumerate(columns):
            style = {"color": "0.15", "lw": 0.9, "ls": styles[i % len(styles)], **line_kw}
            self.lines_ += panel.plot(rows[:, column], label=self.feature_names[column], **style)
        panel.set(xlabel="step", ylabel="value", title=f"sequence {sequence}, coloured by state")
        panel.margins(x=0)
        if self.lines_:
            panel.legend(loc="upper right", fontsize="small")
        self._plot_key(panel, pale)

    def _plot_rugs(self, panel, palette):
        strips = np.ones((len(self.paths), max(map(len, self.paths)), 4))
        for i, path in enumerate(self.paths):
            strips[i, : len(path)] = palette[path]
        self.image_ = panel.imshow(strips, aspect="auto", interpolation="nearest")
        panel.set(xlabel="step", ylabel="sequence", title="states of all sequences")
        panel.yaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        self._plot_key(panel, palette)

    def _plot_key(self, panel, palette):
        """A strip beside the panel that says which colour is which state."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import BoundaryNorm, ListedColormap

        edges = np.arange(len(palette) + 1) - 0.5
        scale = ScalarMappable(BoundaryNorm(edges, len(palette)), ListedColormap(palette))
        key = panel.figure.colorbar(scale, ax=panel, label=f"state{repeated(self.names)}", pad=0.02)
        name_ticks(key.ax.yaxis, self.names)
        key.ax.yaxis.minorticks_off()
        key.ax.invert_yaxis()

    def _plot_transitions(self, panel, palette):
        self.matrix_ = panel.imshow(self.transmat, vmin=0.0, vmax=1.0, cmap="Greys", aspect="auto")
        panel.figure.colorbar(self.matrix_, ax=panel, label="probability")
        panel.set(xlabel="to state", ylabel="from state", title="transitions")
        for (i, j), p in np.ndenumerate(self.transmat) if len(self.transmat) <= _WRITTEN else ():
            panel.text(j, i, f"{p:.2f}", ha="center", va="center", color=f"{p > 0.5:d}", fontsize=7)
        for axis in (panel.xaxis, panel.yaxis):
            name_ticks(axis, self.names)

    def _plot_durations(self, panel, palette):
        durations = self.durations()
        self.boxes_ = panel.boxplot(
            durations,
            positions=range(len(durations)),
            patch_artist=True,
            widths=0.7,
            showfliers=False,
            medianprops={"color": "0.15"},
        )
        for patch, colour in zip(self.boxes_["boxes"], palette, strict=True):
            patch.set_facecolor(colour)
        panel.set(xlabel="state", ylabel="steps", yscale="log", title="lengths of visits")
        name_ticks(panel.xaxis, self.names)
        panel.yaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")


def _order_of_sequences(n_rows, lengths, groups):
    """Rows of X, one sequence after another, and where the second one and all later ones start."""
    if groups is None:
        lengths = [n_rows] if lengths is None else lengths
        return np.arange(n_rows), np.cumsum(lengths)[:-1]
    _, _, number = check_groups(groups, n_rows, "sequence")
    return np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1]


def _visits(path):
    """State, first step, and step after the last one, of each visit of a path."""
    starts = np.flatnonzero(np.r_[True, path[1:] != path[:-1]]) if len(path) else np.empty(0, int)
    stops = np.r_[starts[1:], len(path)]
    return [(int(path[a]), int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
