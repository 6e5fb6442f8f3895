"""Axes that Displays draw on, and colours and names of components, the same in all pictures."""

from __future__ import annotations

import numpy as np

# The ten colours of matplotlib's lines, and twenty more. Each of these is, of all colours that are neither
# pale nor dark nor glaring, the one farthest in OKLab from white, black, gray and the colours before it.
# No two of the thirty are nearer to each other than the two nearest ones of the first ten.
_COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22",
    "#17becf", "#5a0096", "#005a00", "#d2c3ff", "#78003c", "#87f0c3", "#004b78", "#ffc396", "#5a96ff",
    "#a51e87", "#b4a5a5", "#00d278", "#a58700", "#5a3c0f", "#5a4bd2", "#1e785a", "#694b87", "#c36978",
    "#ffd200", "#b487ff", "#a50000",
)  # fmt: skip


def pyplot(caller):
    """``matplotlib.pyplot``; an ImportError that names the caller if matplotlib is not installed."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib: pip install 'sklearn-bnp[examples]'"
        ) from error
    return plt


def colours(names):
    """Colours (n, 4) of components with these names, which are integers: their positions, or lasting names.

    A name has the same colour in every picture. After thirty names the colours come again; see `repeated`.
    """
    from matplotlib.colors import to_rgba_array

    return to_rgba_array(_COLOURS)[np.asarray(names, dtype=int) % len(_COLOURS)]


def repeated(names):
    """A remark for a label: " (some share a colour)" if two of the names do, otherwise nothing."""
    n_different = len(np.unique(np.asarray(names, dtype=int) % len(_COLOURS)))
    return " (some share a colour)" if n_different < len(names) else ""


def component_names(estimator, lasting):
    """Names of the components (K,): positions 0 to K - 1, or lasting ones if these are asked for."""
    if lasting and not hasattr(estimator, "component_ids_"):
        raise ValueError(
            f"lasting_names=True, but components of {type(estimator).__name__} have no lasting names; leave "
            "it out."
        )
    if lasting:
        return np.asarray(estimator.component_ids_)
    return np.arange(estimator.n_components_)


def name_ticks(axis, names):
    """Ticks with names at 0 to K - 1 of an axis: all of up to thirty, of more every second, and so on."""
    step = 1 + (len(names) - 1) // 30
    size = "medium" if len(names) <= 12 else "x-small"
    axis.set_ticks(range(0, len(names), step), [str(n) for n in names[::step]], fontsize=size)


def several_axes(plt, ax, shape, *, figsize, height_ratios=None, width_ratios=None, share_x=False):
    """Array of axes, of the given shape (rows, columns).

    Parameters
    ----------
    plt : module
        ``matplotlib.pyplot``.
    ax : Axes, array-like of Axes, or None
        None makes a new figure. Single axes are divided and stay empty themselves, unless one is all that
        is needed. Several are used as they are, and must be as many as are needed.
    shape : tuple of (int, int)
        Rows and columns of axes.
    figsize : tuple of (float, float)
        Size of a new figure, in inches.
    height_ratios, width_ratios : list of float, default=None
        Heights of the rows and widths of the columns, relative to each other.
    share_x : bool, default=False
        Whether axes of a column have one x-axis.
    """
    rows, columns = shape
    if ax is None:
        _, axes = plt.subplots(
            rows, columns, figsize=figsize, squeeze=False, sharex="col" if share_x else "none",
            layout="constrained", height_ratios=height_ratios, width_ratios=width_ratios,
        )  # fmt: skip
        return axes
    if isinstance(ax, plt.Axes) and rows * columns == 1:
        return np.array([[ax]], dtype=object)
    if isinstance(ax, plt.Axes):
        grid = ax.get_subplotspec()
        if grid is None:
            raise ValueError(
                f"ax cannot be divided into panels: make it with plt.subplots, or give {rows * columns} axes."
            )
        ax.set_axis_off()
        grid = grid.subgridspec(
            rows, columns, height_ratios=height_ratios, width_ratios=width_ratios
        )
        return grid.subplots(squeeze=False, sharex="col" if share_x else "none")
    axes = np.asarray(ax, dtype=object)
    if axes.size != rows * columns:
        raise ValueError(f"ax has {axes.size} axes; give {rows * columns}, or one to be divided.")
    return axes.reshape(shape)
