"""How a fit went, lap by lap."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..inputs.types import Keywords
from .drawing import pyplot, several_axes

# Kinds of change: each has the same marker and colour in every picture. Others share the last ones.
_MARKS = {
    "birth": ("^", "C0"),
    "merge": ("v", "C1"),
    "delete": ("s", "C3"),
    "split": ("D", "C0"),
    "regroup": ("P", "C2"),
    "relocate": ("X", "C4"),
    "oversplit": ("p", "C7"),
    "restart": ("*", "C5"),
    "resettle": ("h", "C8"),
}
_OTHER = ("o", "C6")


class ConvergenceDisplay:
    """Show how the bound and the number of components went over the laps of a fit.

    The upper panel has the lower bound on the log evidence (``lower_bound_``), which a fit raises. Marks show
    the laps in which components were born, merged or deleted. The lower panel has the number of components.
    If the bound still rises at the end, give a larger ``max_iter``.

    The data of `MemoryBoundedTopicVB` grow with each epoch, and so the bound on all of them falls. There the
    bound is divided by the number of rows seen so far. The bound of another stream changes by a step wherever
    `partial_fit` adds a new batch to the data, and rises in the laps between two steps.

    It is recommended to use `from_estimator` to make one. All parameters are kept as attributes.

    Parameters
    ----------
    laps : array-like of shape (n_laps,)
        Numbers of the laps.
    lower_bound : array-like of shape (n_laps,)
        Bound on the log evidence after each lap, in nats, or in nats a row.
    n_components : array-like of shape (n_laps,)
        Number of components after each lap.
    accepted : dict of str to array-like of shape (n_laps,)
        Kind of change -> how many of that kind were accepted in each lap.
    per_row : bool, default=False
        Whether the bound is divided by the number of rows.
    unit : str, default="lap"
        What one point stands for: "lap", or "epoch" for `MemoryBoundedTopicVB`.
    estimator_name : str, default=None
        Name for the title.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : ndarray of matplotlib Axes, shape (2,)
        Panel of the bound, and panel of the number of components.
    bound_line_ : matplotlib Line2D
        The bound over the laps.
    components_line_ : matplotlib Line2D
        The number of components over the laps.
    marks_ : dict of str to matplotlib Line2D
        Kind of change -> marks on the bound.

    See Also
    --------
    ComponentsDisplay : Components that were found.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_bnp import DPMixtureVB
    >>> from sklearn_bnp.inspection import ConvergenceDisplay
    >>> model = DPMixtureVB(random_state=0).fit(load_iris().data)
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> [int(k) for k in display.n_components[[0, -1]]] == [1, model.n_components_]
    True
    """

    def __init__(
        self,
        laps: ArrayLike,
        lower_bound: ArrayLike,
        n_components: ArrayLike,
        accepted: Any,
        *,
        per_row: bool = False,
        unit: str = "lap",
        estimator_name: str | None = None,
    ) -> None:
        self.laps = np.asarray(laps)
        self.lower_bound = np.asarray(lower_bound)
        self.n_components = np.asarray(n_components)
        self.accepted = {kind: np.asarray(counts) for kind, counts in accepted.items()}
        self.per_row = per_row
        self.unit = unit
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, first_lap: int = 1, ax: Any = None, **plot_kwargs: Any
    ) -> Self:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted `DPMixtureVB`, `HDPTopicVB`, `HDPHMMVB` or `MemoryBoundedTopicVB`.
        first_lap : int, default=1
            The first lap to draw. The bound of the first laps is often so low that later ones look flat.
        ax : matplotlib Axes, array-like of Axes, or None, default=None
            Where to draw; see `plot`.
        **plot_kwargs : dict
            Keyword arguments for `plot`.

        Returns
        -------
        display : ConvergenceDisplay
            The drawn display.

        Raises
        ------
        TypeError
            If the estimator keeps no history.
        ValueError
            If there is no lap to draw: `partial_fit` with ``learning_method="stochastic"`` makes single
            steps.
        """
        check_is_fitted(estimator)
        entries = _history_of(estimator)
        unit = "epoch" if hasattr(entries[0], "epoch") else "lap"
        laps = [getattr(entry, unit) for entry in entries]
        shown = [i for i, lap in enumerate(laps) if lap >= first_lap]
        if not shown:
            raise ValueError(
                f"first_lap={first_lap!r} leaves nothing to draw: the last of the {unit}s was {laps[-1]}. "
                "Give that number or less."
            )
        history = [entries[i] for i in shown]
        changes = [_changes(entry) for entry in history]
        kinds = sorted(set().union(*changes))
        n_rows = [getattr(entry, "n_rows", 0) for entry in history]
        per_row = all(n > 0 for n in n_rows)
        bound = np.array([entry.lower_bound for entry in history])
        display = cls(
            [laps[i] for i in shown],
            bound / n_rows if per_row else bound,
            [entry.n_components for entry in history],
            {kind: [change.get(kind, 0) for change in changes] for kind in kinds},
            per_row=per_row,
            unit=unit,
            estimator_name=type(estimator).__name__,
        )
        return display.plot(ax=ax, **plot_kwargs)

    def plot(
        self, ax: Any = None, *, line_kw: Keywords | None = None, mark_kw: Keywords | None = None
    ) -> Self:
        """Draw the bound and the number of components.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of Axes, or None, default=None
            Two axes to draw on, or one to divide. A new figure is made if None.
        line_kw : dict, default=None
            Keyword arguments for both lines.
        mark_kw : dict, default=None
            Keyword arguments for the marks of changes.

        Returns
        -------
        display : ConvergenceDisplay
            The display itself.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        axes = several_axes(plt, ax, (2, 1), figsize=(7, 5), height_ratios=[2, 1], share_x=True)
        self.axes_ = axes.ravel()
        above, below = self.axes_
        self.figure_ = above.figure
        line_kw = {"color": "0.35", **(line_kw or {})}
        (self.bound_line_,) = above.plot(self.laps, self.lower_bound, **line_kw)
        self.marks_ = {}
        for kind, counts in self.accepted.items():
            here = counts > 0
            if here.any():
                marker, colour = _MARKS.get(kind, _OTHER)
                style = {"marker": marker, "color": colour, "ls": "", "ms": 6, "label": kind}
                (self.marks_[kind],) = above.plot(
                    self.laps[here], self.lower_bound[here], **{**style, **(mark_kw or {})}
                )
        (self.components_line_,) = below.plot(
            self.laps, self.n_components, drawstyle="steps-mid", **line_kw
        )
        nats = "nats a row" if self.per_row else "nats"
        above.set(ylabel=f"bound on the evidence ({nats})", title=self.estimator_name or "")
        below.set(xlabel=self.unit, ylabel="components")
        below.yaxis.get_major_locator().set_params(integer=True)
        below.xaxis.get_major_locator().set_params(integer=True)
        if self.marks_:
            _place_legend(above)
        return self


def _place_legend(panel):
    """Legend beside the panel if the figure makes room for it, and otherwise where it covers least."""
    makes_room = panel.figure.get_layout_engine() is not None
    beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    panel.legend(title="accepted", **(beside if makes_room else {"loc": "best"}))


def _history_of(estimator):
    """The entries of the history of a fitted estimator, of which there is at least one."""
    name, history = type(estimator).__name__, getattr(estimator, "history_", None)
    if history is None and hasattr(estimator, "n_components_"):
        raise ValueError(f"This {name} has no history_ any more: it was deleted. Fit it again.")
    if history is None:
        raise TypeError(
            f"{name} keeps no history: give a fitted DPMixtureVB, HDPTopicVB, HDPHMMVB or "
            "MemoryBoundedTopicVB; of a pipeline, its last step."
        )
    if not history:
        raise ValueError(
            f"This {name} has made no laps: partial_fit with learning_method='stochastic' makes single "
            "steps, whose bounds are not kept. The display is for fit, and for streams with "
            "learning_method='memoized'."
        )
    return history


def _changes(entry):
    """Kind of change -> how many were accepted in a lap or an epoch."""
    if hasattr(entry, "accepted"):
        return dict(entry.accepted)
    return {"split": entry.n_splits, "merge": entry.n_merges}
