"""One live line a lap: through tqdm where it is installed, as plain text where not."""

from __future__ import annotations

import sys

try:
    from tqdm.auto import tqdm
except ImportError:  # an optional dependency: the text below says the same
    tqdm = None


class Progress:
    """Shows laps as they are done; silent unless ``verbose``."""

    def __init__(self, verbose, max_iter, label):
        self._bar = None
        self._plain = bool(verbose) and tqdm is None
        self._label = label
        if verbose and tqdm is not None:
            self._bar = tqdm(total=max_iter, desc=label, unit="lap", file=sys.stderr)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._bar is not None:
            self._bar.close()

    def show(self, lap):
        """Report one `Lap`."""
        moves = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in lap.accepted.items())
        if self._bar is not None:
            self._bar.set_postfix_str(
                f"K={lap.n_components} ELBO={lap.lower_bound:.6g} {moves or 'no moves'}",
                refresh=False,
            )
            self._bar.update()
        elif self._plain:
            print(
                f"{self._label}: lap {lap.lap:3d}  K={lap.n_components:<4d} ELBO={lap.lower_bound:<14.8g} "
                f"{lap.seconds:6.2f} s  {moves or 'no moves'}",
                file=sys.stderr,
            )
