"""Tables of the components of fitted estimators, for people to read."""

from __future__ import annotations

from html import escape

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..engine.merge_losses import merge_losses

# Rows of a table that are shown.
_MOST_ROWS = 50
_NOTE = (
    "merge loses: nats by which lower_bound_ would fall if the component were joined with the one at the\n"
    'position "merge with". It is a range where the exact loss cannot be known without the rows.'
)


class Summary(dict):
    """A table of components: its columns by name, each with one entry a component.

    ``print`` shows it as text, and notebooks as a table. `to_frame` makes a frame of pandas of it.

    Parameters
    ----------
    title : str
        What is said above the table.
    columns : dict
        Name -> ndarray or list, in the order in which they are shown.
    """

    def __init__(self, title, columns):
        super().__init__(columns)
        self.title = title

    def __reduce__(self):
        return type(self), (self.title, dict(self))

    @property
    def n_components(self):
        """Number of components.

        Returns
        -------
        n_components : int
            Number of rows of the table.
        """
        return len(self["weight"])

    def to_frame(self):
        """The table as a frame, which needs pandas.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each component, in the order of the fitted attributes.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: pip install pandas. Without it, the columns are in the summary "
                "itself, a dict of arrays."
            ) from error
        return pd.DataFrame({name: list(column) for name, column in self.items()})

    def _shown(self):
        """Headers, and the text of each cell, row by row; both bounds of a loss are in one cell."""
        columns = {"": [str(k) for k in range(self.n_components)]}
        for name, column in self.items():
            if name == "merge_loss_most":
                pairs = zip(self["merge_loss_least"], column, strict=True)
                columns["merge loses"] = [_range(*pair) for pair in pairs]
            elif name != "merge_loss_least":
                columns[name.replace("_", " ")] = [_text(name, value) for value in column]
        rows = list(zip(*columns.values(), strict=True))
        return list(columns), rows[:_MOST_ROWS]

    @property
    def _rest(self):
        n = self.n_components - _MOST_ROWS
        return f"... and {n} more" if n > 0 else ""

    def __repr__(self):
        headers, rows = self._shown()
        widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
        lines = (
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (headers, *rows)
        )
        return "\n".join(line for line in (self.title, *lines, self._rest, _NOTE) if line)

    def _repr_html_(self):
        headers, rows = self._shown()
        head = "".join(f"<th>{escape(name)}</th>" for name in headers)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        return (
            f"<p>{escape(self.title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(self._rest)}</p><p>{escape(_NOTE)}</p>"
        )


class Summarised:
    """Mixin of the estimators for a table of their components."""

    def summary(self) -> Summary:
        """Table of the components: how large they are, and how much the best merge of each would lose.

        It is computed from the statistics that are kept after a fit, and needs no rows.

        Returns
        -------
        summary : Summary
            A dict of columns, which prints as a table and has a method ``to_frame()`` for pandas. There is an
            entry for each component, in the order of the fitted attributes:

            - ``id``: lasting name, from ``component_ids_`` (not in `MemoryBoundedTopicVB`).
            - ``weight``: ``weights_``, or ``topic_probs_`` of topics.
            - ``size``: expected number of rows, or of tokens, with their weights.
            - ``neighbor``: position of the component that would explain its rows best if it were not there;
              -1 if there is none.
            - ``merge_with``: position of the component with which a merge would lose least. With more than
              32 components it is one of the nearest.
            - ``merge_loss_least``, ``merge_loss_most``: bounds of what ``lower_bound_`` would lose by that
              merge, in nats; NaN if there is one component. The exact loss lies between them. It depends on
              the entropy of the two components as one, which cannot be known without the rows. The greater
              bound is the loss if the merge is made from the kept statistics alone, as `combine` makes it. If
              ``merge_loss_least`` is above 0, the merge is sure to lower the objective.

            States have ``mean_visit``, the expected number of rows for which the state lasts, ``next``, the
            state to which it goes most often when it ends, and ``next_probability``, how often. Topics of
            words have ``top_words`` if names of features were seen during fit.
        """
        check_is_fitted(self)
        return self._summary(self._own_columns())

    def _summary(self, own):
        """`Summary` with the columns that all estimators have, and ``own`` ones by name."""
        n, losses = self._sizes_and_losses()
        columns = {}
        if hasattr(self, "component_ids_"):
            columns["id"] = self.component_ids_.copy()
        weights = self.weights_ if hasattr(self, "weights_") else self.topic_probs_
        columns |= {
            "weight": weights.copy(),
            "size": n.copy(),
            "neighbor": losses.neighbor,
            "merge_with": losses.partner,
            "merge_loss_least": losses.least,
            "merge_loss_most": losses.most,
            **own,
        }
        K = self.n_components_
        title = (
            f"{type(self).__name__}: {K} component{'s' if K > 1 else ''}, "
            f"lower_bound_ = {self.lower_bound_:.8g}"
        )
        return Summary(title, columns)

    def _sizes_and_losses(self):
        """Sizes (K,) of the components in their published order, and their `MergeLosses`."""
        state = self._learner_
        totals = state.counted
        order = totals.positions(self.component_ids_)
        return totals.n[order], merge_losses(state.model, totals).listed(order)

    def _own_columns(self):
        """Further columns by name."""
        return {}


def _text(name, value):
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if name in ("weight", "next_probability"):
        return f"{value:.3f}"
    if isinstance(value, (float, np.floating)):
        return f"{value:.1f}"
    return "-" if value < 0 else str(value)


def _range(least, most):
    """A range of nats, or one number if its ends would read the same."""
    if np.isnan(most):
        return "-"
    low, high = (f"{value:.1f}" for value in (least, most))
    return low if low == high else f"{low} to {high}"
