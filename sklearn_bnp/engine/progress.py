"""Progress of a fit: one line per lap, above a live count of laps where somebody sees it.

A live count needs tqdm and a terminal or a notebook. In a log each of its updates would be a line.
"""

from __future__ import annotations

import sys

try:
    from tqdm.auto import tqdm
except ImportError:  # an optional dependency: the lines say the same
    tqdm = None


class Progress:
    """Reports laps on standard error if ``verbose``, with a live count if ``live``."""

    def __init__(self, verbose, label, *, live=True):
        self._verbose, self._label = bool(verbose), label
        self._bar = None
        if verbose and live and tqdm is not None and _is_watched():
            self._bar = tqdm(desc=label, unit=" laps", leave=False, file=sys.stderr)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._bar is not None:
            self._bar.close()

    def show(self, lap):
        """Report one `Lap`."""
        if not self._verbose:
            return
        line = line_of(lap, self._label)
        if self._bar is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self._bar.write(line, file=sys.stderr)
            self._bar.update()


def _is_watched():
    """Whether standard error is a terminal, or the output of a notebook, in which tqdm draws a widget."""
    of_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return of_notebook or (hasattr(sys.stderr, "isatty") and sys.stderr.isatty())


def line_of(lap, label):
    """A line of text that describes a lap."""
    refused = {kind: n - lap.accepted.get(kind, 0) for kind, n in lap.tried.items()}
    moves = [_counted(kind, n) for kind, n in lap.accepted.items() if n > 0]
    moves += [f"{_counted(kind, n)} refused" for kind, n in refused.items() if n > 0]
    return (
        f"{label}: lap {lap.lap:3d}  K={lap.n_components:<4d} ELBO={lap.lower_bound:<14.8g} "
        f"{lap.seconds:6.2f} s  {', '.join(moves) or 'no moves'}"
    )


def _counted(kind, n):
    """One birth, two births."""
    return f"{n} {kind}{'s' if n > 1 else ''}"
