"""Kinds of patients: a table with a category and numbers, clustered without recoding.

442 diabetes patients: sex, three measures of the body and six of the blood serum; and how the
disease had progressed a year later, which the model does not see. The category has a block of its
own. Are body and serum one block, in which columns are correlated within a cluster, or two that
are independent within it? Heldout scores say.

The patients whose disease got worst are in other clusters than those whose disease did not.

    python examples/mixed_columns.py
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

from sklearn_bnp import ColumnObservation, DPMixtureVB

BODY = ["age", "bmi", "bp"]
SERUM = ["s1", "s2", "s3", "s4", "s5", "s6"]
SEX = ("sex", "categorical", ["sex"])
MODELS = {
    "one block of numbers": ColumnObservation([SEX, ("numbers", "gaussian", BODY + SERUM)]),
    "body and serum apart": ColumnObservation(
        [SEX, ("body", "gaussian", BODY), ("serum", "gaussian", SERUM)]
    ),
}


def patients():
    """A frame of the columns, sex as a category, and the progression of the disease."""
    data = load_diabetes(as_frame=True, scaled=False)
    sex = data.data["sex"].map({1.0: "first", 2.0: "second"})  # the data do not say which is which
    return data.data.assign(sex=sex), data.target.to_numpy()


def print_clusters(model, X, progression):
    """A line a cluster: its share, one of the sexes, means, and what became of the patients."""
    labels = model.predict(X)
    columns = [*BODY, "s1", "s3", "s5"]
    where = [X.columns.get_loc(name) for name in columns]
    print("  share  P(first sex)  " + "  ".join(f"{name:>6}" for name in columns) + "  progression")
    for k in np.unique(labels):
        means = "  ".join(f"{value:6.1f}" for value in model.means_[k, where])
        p = model.blocks_["sex"]["probabilities_"][k, 0, 0]
        found = progression[labels == k]
        print(f"  {model.weights_[k]:5.0%}  {p:12.2f}  {means}  {found.mean():11.0f}")
    between = sum(np.sum(labels == k) * progression[labels == k].mean() ** 2 for k in set(labels))
    between -= len(labels) * progression.mean() ** 2
    print(f"  clusters explain {between / progression.var() / len(labels):.0%} of its variance\n")


def main():
    X, progression = patients()
    start = DPMixtureVB(n_init=3, random_state=0)
    for name, observation in MODELS.items():
        model = clone(start).set_params(observation=observation).fit(X)
        print(f"{name}: {model.n_components_} clusters, ELBO {model.lower_bound_:.0f}")
        print_clusters(model, X, progression)
    print(f"Categories: {dict(model.categories_)}\n")

    print("Heldout score of each, in nats a patient, higher is better:")
    folds = KFold(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = GridSearchCV(start, {"observation": list(MODELS.values())}, cv=folds).fit(X)
    for name, score in zip(MODELS, search.cv_results_["mean_test_score"], strict=True):
        print(f"  {name:<22} {score:.2f}")


if __name__ == "__main__":
    main()
