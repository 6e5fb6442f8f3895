"""Progress of a fit: one line per lap, above a live count of laps if tqdm is installed."""

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
        if verbose and live and tqdm is not None:
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


def line_of(lap, label):
    """A line of text that describes a lap."""
    moves = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in lap.accepted.items() if n)
    return (
        f"{label}: lap {lap.lap:3d}  K={lap.n_components:<4d} ELBO={lap.lower_bound:<14.8g} "
        f"{lap.seconds:6.2f} s  {moves or 'no moves'}"
    )
