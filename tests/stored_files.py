"""Small files of models, one folder for each format, which later versions have to read.

Run as a script, ``python -m tests.stored_files``, it writes those of the present format. Files of formats
that a release has written stay here for good; others may be deleted with their format.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, MemoryBoundedTopicVB
from sklearn_bnp.estimator.saved_state import FORMAT

FOLDER = Path(__file__).parent / "stored_files"
ROWS = np.random.default_rng(0).normal(np.repeat([[-4.0, 0.0], [4.0, 1.0]], 15, axis=0))
COUNTS = np.random.default_rng(0).poisson(np.kron(np.eye(2), np.full((6, 3), 4.0)) + 0.1)
GROUPS = np.repeat(np.arange(6), 5)

MODELS = {
    "mixture": lambda: DPMixtureVB(random_state=0).fit(ROWS),
    "topics": lambda: HDPTopicVB(init_params="anchor", n_components=2, random_state=0).fit(COUNTS),
    "states": lambda: HDPHMMVB(random_state=0).fit(ROWS),
    "bounded": lambda: MemoryBoundedTopicVB(150).fit(ROWS, groups=GROUPS),
}
RESULTS = {
    "mixture": lambda model: model.score_samples(ROWS),
    "topics": lambda model: model.transform(COUNTS),
    "states": lambda model: model.predict_proba(ROWS),
    "bounded": lambda model: model.transform(ROWS, groups=GROUPS),
}
GO_ON = {
    "mixture": lambda model: model.partial_fit(ROWS),
    "topics": lambda model: model.partial_fit(COUNTS),
    "states": lambda model: model.partial_fit(ROWS),
    "bounded": lambda model: model.partial_fit(ROWS, groups=GROUPS),
}


def folder_of(number):
    """Folder with the files of a format, and with what their models predicted."""
    return FOLDER / f"format_{number}"


if __name__ == "__main__":
    folder = folder_of(FORMAT)
    folder.mkdir(parents=True, exist_ok=True)
    for name, made in MODELS.items():
        model = made()
        model.save(folder / f"{name}.bnp")
        np.save(folder / f"{name}.npy", RESULTS[name](model))
        print(name, model.n_components_, (folder / f"{name}.bnp").stat().st_size)
