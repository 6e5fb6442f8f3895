"""What all Displays share: axes to draw on, and one colour for each component."""

from __future__ import annotations

import numpy as np

# From one hue to the next: parts of the circle that never come near each other again.
_GOLDEN = 0.61803398875


def pyplot(caller):
    """``matplotlib.pyplot``; an ImportError that names the caller if matplotlib is not installed."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib: pip install 'sklearn-bnp[examples]'"
        ) from error
    return plt


def colours(n_components):
    """Colours (n_components, 4): component k has the same one in every picture with as many components.

    Up to ten are those that matplotlib uses for lines, up to twenty those of its palette "tab20". More
    go round the circle of hues, in three strengths.
    """
    from matplotlib import colormaps
    from matplotlib.colors import hsv_to_rgb

    if n_components <= 20:
        name = "tab10" if n_components <= 10 else "tab20"
        return colormaps[name](np.arange(n_components))
    k = np.arange(n_components)
    hsv = np.column_stack([(0.6 + k * _GOLDEN) % 1.0, 0.45 + 0.25 * (k % 3), 0.95 - 0.2 * (k % 2)])
    return np.column_stack([hsv_to_rgb(hsv), np.ones(n_components)])


def one_axes(plt, ax):
    """The given axes, or new ones of a new figure."""
    if ax is None:
        _, ax = plt.subplots()
    return ax


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
            raise ValueError("ax cannot be divided: make it with plt.subplots, or give several.")
        ax.set_axis_off()
        grid = grid.subgridspec(
            rows, columns, height_ratios=height_ratios, width_ratios=width_ratios
        )
        return grid.subplots(squeeze=False, sharex="col" if share_x else "none")
    axes = np.asarray(ax, dtype=object)
    if axes.size != rows * columns:
        raise ValueError(f"ax has {axes.size} axes; {rows * columns} are drawn.")
    return axes.reshape(shape)
