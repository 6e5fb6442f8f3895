"""How a fit comes to its end, once laps gain little.

Design note
-----------
(a) As long as proposals find something, they search. Then they have a last chance to try again what they
    have given up: ``learner.retried`` is the lap after which they got it, and 0 before. If nothing comes of
    it, the fit has converged.
(b) If the last lap was taken back, it gained nothing, whatever updates still gain. Laps without trials
    follow, until updates gain little. Meanwhile the fit is ``learner.finishing``.
"""

from __future__ import annotations

# A fit of so many observations or more ends when a lap gains less than ``tol`` for each of them. With fewer,
# laps are cheap, and a few nats decide about components: it goes on until a lap gains less in all.
_MANY = 1_000_000
# Nats that are not worth a lap.
_LEAST_GAIN = 0.05
# Laps after the last chance of proposals that have to gain, together, what is worth a lap.
_PATIENCE = 10


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


def conclude(learner, lap, tol, n, *, first):
    """After a lap that changed little, take the next step towards the end of a fit of ``n`` observations.

    A success gives proposals their last chance again, unless all laps since they had it have gained less
    together than is worth one lap. After ten such laps, trials that are planned no longer keep a fit from its
    end; only what is overdue still has its turn, and the lap in which its trials are judged.
    """
    worth = least_gain(tol, n)
    idle = laps_without(worth, learner.history, learner.retried)
    if lap.accepted or first:
        if not idle:
            learner.retried = 0
        return
    gain = lap.lower_bound - learner.history[-2].lower_bound
    if learner.finishing:
        learner.converged = gain <= worth
    elif gain <= tol * n and not learner.scheduler.has_more(idle < _PATIENCE):
        _come_to_rest(learner, lap, gain <= worth)
    elif gain <= learner.model.settled_gain * tol * n:
        learner.model = learner.model.released()


def _come_to_rest(learner, lap, gained_little):
    """Nothing is left to try: take the first of these steps that is still to be taken.

    What is held back is released; the prior suits a single component; proposals have their last chance. Then
    the fit ends as soon as a lap has gained little.
    """
    if learner.model.released() is not learner.model:
        learner.model = learner.model.released()
    elif learner.suit_one():
        learner.retried = 0
    elif learner.scheduler.proposals and not learner.retried:
        learner.scheduler.last_resort()
        learner.retried = lap.lap
    elif learner.was_taken_back:
        learner.finishing = True
    else:
        learner.converged = gained_little
