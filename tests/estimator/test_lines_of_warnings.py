"""A warning is shown at the line of the user's that led to it, however many calls are between."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, MemoryBoundedTopicVB

RNG = np.random.default_rng(0)
ROWS = RNG.normal(np.repeat([-6.0, -2.0, 2.0, 6.0], 40)[:, np.newaxis], size=(160, 2))
WORDS = RNG.poisson(3.0, size=(160, 6))
FEW = {"n_components": 3, "init_params": "k-means++", "max_iter": 1, "random_state": 0}

# A model that warns in each fit, of what, and data.
WARN = {
    "mixture": (DPMixtureVB(**FEW), ConvergenceWarning, ROWS, {}),
    "states": (HDPHMMVB(**FEW), ConvergenceWarning, ROWS, {}),
    "words": (HDPTopicVB(**FEW), ConvergenceWarning, WORDS, {}),
    "weights of words": (HDPTopicVB(**FEW), UserWarning, WORDS / (WORDS.sum(1, keepdims=True)), {}),
    "one topic": (HDPTopicVB(max_iter=4, random_state=0), UserWarning, WORDS, {}),
    "documents": (
        HDPTopicVB(observation="gaussian", **FEW),
        ConvergenceWarning,
        ROWS,
        {"groups": np.repeat(np.arange(16), 10)},
    ),
    "bounded": (
        MemoryBoundedTopicVB(16, max_document_groups=2),
        UserWarning,
        ROWS,
        {"groups": np.repeat(np.arange(16), 10)},
    ),
}


@pytest.mark.parametrize(
    "call", ["fit", "fit_transform", "set_output", "fit_predict", "pipeline", "search"]
)
@pytest.mark.parametrize("name", WARN)
def test_lines_are_those_of_the_user(name, call):
    model, kind, X, given = WARN[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if call == "set_output":
            pytest.importorskip("pandas")
            type(model)(**model.get_params()).set_output(transform="pandas").fit_transform(
                X, **given
            )
        elif call == "pipeline":
            step = type(model).__name__.lower()
            own = {f"{step}__{key}": value for key, value in given.items()}
            make_pipeline(FunctionTransformer(), model).fit(X, **own)
        elif call == "search":
            if given:
                pytest.skip("groups of searches are routed")
            cross_val_score(model, X, cv=2)
        elif hasattr(model, call):
            getattr(model, call)(X, **given)
        else:
            pytest.skip(f"{name} have no {call}")
    assert any(issubclass(each.category, kind) for each in caught)
    assert {each.filename for each in caught} == {__file__}
