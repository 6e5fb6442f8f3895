"""Fits for tests of checkpoints, of all estimators that have them.

Run as a script, ``python -m tests.killed_fits NAME FOLDER``, it makes the fit of this name with checkpoints
in the folder, after each lap, and saves the model there. It is meant to be killed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sklearn_bnp import HDPHMMVB, Checkpoint, DPMixtureVB, HDPTopicVB
from sklearn_bnp.estimator.object_graph import graph_of
from sklearn_bnp.estimator.publishing import complete

from .estimators import FEW_PROPOSALS
from .saved_models import COUNTS, NEAR, SEQUENCES


class Fit(NamedTuple):
    """An estimator and its data.

    Attributes
    ----------
    made : callable
        Makes the estimator.
    data : object
    """

    made: Callable
    data: Any

    def __call__(self, model=None, *, fit=True):
        """The model, fitted; a new one if none is given."""
        model = self.made() if model is None else model
        return model.fit(self.data) if fit else model


class Part(NamedTuple):
    """A batch reference, whose documents stay beside it."""

    batch_id: int

    def load(self):
        return COUNTS[20 * self.batch_id : 20 * (self.batch_id + 1)]


PARTS = [Part(i) for i in range(-(-COUNTS.shape[0] // 20))]
# What documents have left beside their chunks is in the file of a checkpoint as well.
IN_CHUNKS = {
    "topics in chunks": Fit(lambda: HDPTopicVB(random_state=0, n_batches=2, max_iter=5), PARTS)
}
# One fit of each kind has all proposals, whose memories are in checkpoints; the others begin anew, or walk.
SEVERAL = {"proposals": FEW_PROPOSALS, "random_state": 0}
FITS = {
    "mixture": Fit(lambda: DPMixtureVB(random_state=0), NEAR),
    "several starts": Fit(lambda: DPMixtureVB(3, n_init=3, max_iter=5, **SEVERAL), NEAR),
    "stochastic": Fit(
        lambda: DPMixtureVB(3, learning_method="stochastic", max_iter=5, random_state=0), NEAR
    ),
    "topics": Fit(lambda: HDPTopicVB(random_state=0, n_batches=3, max_iter=12), COUNTS),
    "states": Fit(lambda: HDPHMMVB(random_state=0, n_batches=2), SEQUENCES),
    "several starts of states": Fit(
        lambda: HDPHMMVB(6, n_init=2, n_batches=2, max_iter=3, **SEVERAL), SEQUENCES
    ),
}


@cache
def whole(name):
    """The model of a fit that nothing interrupts; not to be changed."""
    return {**FITS, **IN_CHUNKS}[name]()


def same_fit(one, other):
    """Whether two models hold the same to the last bit, but for seconds and callbacks."""
    return _content(one) == _content(other)


def _content(model):
    complete(model, labels=True)
    attributes = {name: value for name, value in vars(model).items() if name != "_skl_callbacks"}
    graph = graph_of(_timeless(attributes), model)
    return graph.text, [array.tobytes() for array in graph.arrays]


def _timeless(attributes):
    """Attributes, with laps that took no time."""
    out = dict(attributes)
    out["history_"] = [_at_once(lap) for lap in out["history_"]]
    out["_learner_"] = _without_seconds(out["_learner_"])
    if "_paused" in out:
        out["_paused"] = out["_paused"]._replace(learner=_without_seconds(out["_paused"].learner))
    return out


def _without_seconds(state):
    known = {"seconds": 0.0, "history": [_at_once(lap) for lap in state.history], "evidence": None}
    return {**vars(state), **known}


def _at_once(lap):
    return lap._replace(seconds=0.0, proposal_seconds=0.0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, folder = sys.argv[1], Path(sys.argv[2])
    model = FITS[name](fit=False).set_callbacks(Checkpoint(folder, every=0))
    print("ready")
    FITS[name](model).save(folder / "model.bnp")
    print("done")
