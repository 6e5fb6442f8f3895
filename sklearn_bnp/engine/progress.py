"""Progress of a fit: one line per lap, above a live count of laps where somebody sees it.

Design note
-----------
(a) Lines go through the logger ``sklearn_bnp``, at level INFO. Its one handler writes them as they are on
    standard error, and it does not pass them on: whoever sets ``verbose`` sees them, once, without further
    ado. Somebody who wants them elsewhere gives the logger other handlers.
(b) A live count needs tqdm and a terminal or a notebook. In a log each of its updates would be a line.
"""

from __future__ import annotations

import logging
import sys

try:
    from tqdm.auto import tqdm
except ImportError:  # an optional dependency: the lines say the same
    tqdm = None

LOGGER = logging.getLogger("sklearn_bnp")
# Live counts that are shown: lines are written above them.
_bars = []


class Progress:
    """Reports laps to the logger if ``verbose``, with a live count on standard error if ``live``."""

    def __init__(self, verbose, label, *, live=True):
        self._verbose, self._label = bool(verbose), label
        self._bar = None
        if verbose and live and tqdm is not None and _is_watched():
            self._bar = tqdm(desc=label, unit=" laps", leave=False, file=sys.stderr)
            _bars.append(self._bar)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._bar is not None:
            _bars.remove(self._bar)
            self._bar.close()

    def show(self, lap):
        """Report one `Lap`."""
        if not self._verbose:
            return
        LOGGER.info(line_of(lap, self._label))
        if self._bar is not None:
            self._bar.update()


class OnStandardError(logging.Handler):
    """Writes lines on standard error as it is at the time, above a live count if there is one."""

    def emit(self, record):
        """Write the line of a record."""
        line = self.format(record)
        if _bars:
            _bars[-1].write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)


if not LOGGER.handlers:  # otherwise somebody has said before where lines go
    LOGGER.addHandler(OnStandardError())
    LOGGER.propagate = False
if LOGGER.level == logging.NOTSET:
    LOGGER.setLevel(logging.INFO)


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
