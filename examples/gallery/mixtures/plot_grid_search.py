"""
Grid search: which covariances?
===============================

The number of components needs no search, but the shape of covariances is a choice. ``GridSearchCV`` makes
it by the held-out score, with the mixture as the last step of a ``Pipeline``. For the measurements of
wines, whose columns are many for their rows, full covariances have the best score in each fold.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_bnp import DPMixtureVB

# %%
# Wines
# -----
# 178 wines of three growers, with 13 measurements each. The file is sorted by grower, so folds must be
# shuffled.

X, grower = load_wine(return_X_y=True, as_frame=True)
print(X.shape)

# %%
# Search
# ------
# The scaler is the same for all candidates, so that their scores are in the same units and can be compared.
# The score is the mean log density of a held-out row, in nats.

pipeline = make_pipeline(StandardScaler(), DPMixtureVB(random_state=0))
kinds = ["full", "diag", "spherical"]
search = GridSearchCV(
    pipeline,
    {"dpmixturevb__observation__covariance_type": kinds},
    cv=KFold(5, shuffle=True, random_state=0),
).fit(X)
print("best:", search.best_params_)

# %%
# Scores of the candidates
# ------------------------
# A line joins the scores of the three candidates on one fold; black dots are the means.

results = search.cv_results_
scores = np.array([results[f"split{fold}_test_score"] for fold in range(5)])
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for fold, values in enumerate(scores):
    axes.plot(range(3), values, "-", color=f"C{fold}", label=f"fold {fold}")
axes.plot(range(3), scores.mean(axis=0), "o", color="k", label="mean")
axes.set_xticks(range(3), kinds)
axes.set(xlabel="covariances", ylabel="held-out score\n(higher is better)")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))

# %%
# Components and growers
# ----------------------
# The growers were not used. They tell whether the components mean something.

print(f"{'covariances':<14}{'K':>3}{'adjusted Rand index':>22}")
for kind in kinds:
    pipeline.set_params(dpmixturevb__observation__covariance_type=kind).fit(X)
    rand = adjusted_rand_score(grower, pipeline.predict(X))
    print(f"{kind:<14}{pipeline[-1].n_components_:>3}{rand:>22.2f}")

# %%
# Full covariances win in each of the five folds, by a nat a row on average, and the components that they
# give are also nearest to the growers. There are four of them and not three.
# Diagonal covariances need more components, because they make up for correlations by cutting clusters in
# pieces.

plt.show()
