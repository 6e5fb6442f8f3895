"""When laps have gained so little that a fit may end."""

from __future__ import annotations

# A fit of so many observations or more ends when a lap gains less than ``tol`` for each of them. With fewer,
# laps are cheap, and a few nats decide about components: it goes on until a lap gains less in all.
_MANY = 1_000_000
# Nats that are not worth a lap.
_LEAST_GAIN = 0.05
# Laps after the last chance of proposals that have to gain, together, what is worth a lap.
PATIENCE = 10


def least_gain(tol, n):
    """Gain of a lap, in nats, up to which a fit of ``n`` observations has converged.

    It is ``tol`` times n, and less where n is small: ``tol`` times n squared over 1,000,000, but no less than
    0.05 nats, unless ``tol`` itself asks for that.
    """
    return min(tol * n, max(tol * n * n / _MANY, _LEAST_GAIN))


def laps_without(worth, history, last_chance):
    """Laps since the one numbered ``last_chance``, if these gained less than ``worth`` together; else 0.

    It is 0, too, if ``last_chance`` is: then proposals have not had it yet.
    """
    n_laps = history[-1].lap - last_chance
    if not last_chance or n_laps >= len(history):
        return 0
    return n_laps if history[-1].lower_bound - history[-1 - n_laps].lower_bound < worth else 0
