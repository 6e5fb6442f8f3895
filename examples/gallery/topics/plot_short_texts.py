"""
Short texts: what is found in 8 to 15 words
===========================================

Titles, messages and comments have few words each, of which hardly any occurs twice.
`~sklearn_bnp.HDPTopicVB` finds the six subjects of 2000 such texts without being told their number.
scikit-learn's LatentDirichletAllocation, told that there are six, joins two of them with the first seed,
and does as well with the next.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import confusion_matrix

from sklearn_bnp import HDPTopicVB
from sklearn_bnp.inspection import TopicsDisplay

# %%
# Short texts
# -----------
# Each text is about one subject. Four of ten words are common ones, which say nothing about it.

SUBJECTS = {
    "delivery": "parcel late courier delivery tracking arrived box damaged door address shipping lost",
    "payment": "card charged twice refund invoice bank payment declined price discount coupon account",
    "login": "password reset login locked code email verify username access forgot link expired",
    "app": "crash screen update phone button freeze install version slow battery bug loading",
    "sizes": "shirt size tight large sleeve fits shoes narrow waist length exchange small",
    "praise": "great love friendly helpful quick thanks perfect recommend happy excellent staff best",
}
EVERYWHERE = "please hello could again still very today order would after because really have"
COMMON = EVERYWHERE.split()
rng = np.random.default_rng(1)
lists = [words.split() for words in SUBJECTS.values()]
truth = rng.choice(6, size=2000, p=[0.25, 0.2, 0.2, 0.15, 0.1, 0.1])
texts = [
    " ".join(
        rng.choice(COMMON if rng.random() < 0.4 else lists[s]) for _ in range(rng.integers(8, 16))
    )
    for s in truth
]
for example in texts[:3]:
    print(example)

# %%
# Two models
# ----------
# Each text goes to its topic with the greatest share.

vectorizer = CountVectorizer()
X = vectorizer.fit_transform(texts)
ours = HDPTopicVB(random_state=0).fit(X)
lda = LatentDirichletAllocation(6, random_state=0).fit(X)
print(f"HDPTopicVB found {ours.n_components_} topics")

figure, axes = plt.subplots(2, 3, figsize=(8, 4.2), layout="constrained")
TopicsDisplay.from_estimator(
    ours, vectorizer.get_feature_names_out(), n_topics=6, n_words=6, ax=axes.ravel()
)

# %%
# Texts by subject and topic
# --------------------------
# Columns are matched to rows one to one, so that as many texts as possible are on the diagonal. Their part
# of all texts is in the titles.

names = list(SUBJECTS)
figure, axes = plt.subplots(1, 2, figsize=(8.5, 4), sharey=True, layout="constrained")
for panel, title, model in (
    (axes[0], "HDPTopicVB", ours),
    (axes[1], "LatentDirichletAllocation (told 6)", lda),
):
    topics = model.transform(X).argmax(axis=1)
    counts = confusion_matrix(truth, topics)[:6, : max(6, topics.max() + 1)]
    rows, columns = linear_sum_assignment(-counts)
    others = [k for k in range(counts.shape[1]) if k not in columns]
    counts = counts[:, [*columns, *others]]
    image = panel.imshow(counts, cmap="Blues", vmin=0, vmax=np.bincount(truth).max(), aspect="auto")
    for (i, j), count in np.ndenumerate(counts):
        panel.text(
            j, i, count, ha="center", va="center", fontsize=8, color="w" if count > 250 else "k"
        )
    panel.set_title(
        f"{title}\n{np.trace(counts) / len(texts):.1%} of texts on the diagonal", fontsize=10
    )
    panel.set_xticks(range(counts.shape[1]), [*columns, *others])
    panel.set(xlabel="topic")
axes[0].set_yticks(range(6), names)
axes[0].set_ylabel("true subject")
figure.colorbar(image, ax=axes, label="texts")

# %%
# All but one of the texts are in the topic of their subject, and nobody had to say that there are six. With
# this seed the model that was told six joins two subjects in one topic and leaves another topic almost
# empty. It depends on its start: with ``random_state=1`` it does as well.

plt.show()
