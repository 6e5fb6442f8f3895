"""
Topics of texts
===============

`~sklearn_bnp.HDPTopicVB` finds the topics of a corpus and their number. The texts of this example are drawn
from the words of six subjects, mixed in each text, together with words that occur everywhere. The fit
starts from one topic and finds the six subjects, and says which shares of a text are about which of them.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_bnp import HDPTopicVB
from sklearn_bnp.inspection import ConvergenceDisplay, TopicsDisplay

# %%
# Texts
# -----
# A text of 80 words is about one to three subjects. Every fifth word is a common one.

SUBJECTS = {
    "cooking": "oven butter flour salt recipe simmer garlic onion dough pan sauce bake",
    "football": "goal match referee league striker coach penalty stadium team season keeper pass",
    "astronomy": "planet orbit telescope galaxy star comet moon eclipse light nebula crater probe",
    "money": "bank interest loan market price share profit tax credit debt invest budget",
    "gardening": "soil seed prune compost rose tomato water lawn bulb weed hedge spade",
    "music": "violin chord melody rhythm concert piano singer tune opera drum score stage",
}
EVERYWHERE = "today people often think small good time year place again long hand"
COMMON = EVERYWHERE.split()
rng = np.random.default_rng(0)


def text(n_words=80):
    """A text, and the share of each subject in it."""
    shares = rng.dirichlet(np.full(len(SUBJECTS), 0.15))
    lists = [words.split() for words in SUBJECTS.values()]
    about = rng.choice(len(lists), size=n_words, p=shares)
    common = rng.random(n_words) < 0.2
    return " ".join(
        rng.choice(COMMON if c else lists[s]) for s, c in zip(about, common, strict=True)
    ), shares


texts, truth = zip(*[text() for _ in range(500)], strict=True)
print(texts[0][:80], "...")

# %%
# Fit
# ---
# The model takes counts of words.

vectorizer = CountVectorizer()
X = vectorizer.fit_transform(texts)
model = HDPTopicVB(random_state=0).fit(X)
print(f"{model.n_components_} topics in {X.shape[0]} texts with {X.shape[1]} different words")

ConvergenceDisplay.from_estimator(model)

# %%
# Topics
# ------
# The title of a panel has the share of the topic in the corpus.

figure, axes = plt.subplots(2, 3, figsize=(8, 5), layout="constrained")
TopicsDisplay.from_estimator(
    model, vectorizer.get_feature_names_out(), n_topics=6, n_words=8, ax=axes.ravel()
)

# %%
# Shares of topics in texts
# -------------------------
# ``transform`` has a row of shares for each text. The upper bars are the shares that were found, the lower
# ones the true shares of subjects, in the colours of the topics that match them. A topic matches the
# subject with which its shares are correlated most.

shares, truth = model.transform(X), np.array(truth)
K, names = model.n_components_, list(SUBJECTS)
correlation = np.corrcoef(shares.T, truth.T)[:K, K:]
subjects = correlation.argmax(axis=1)
figure, panels = plt.subplots(2, 1, figsize=(8, 4.8), sharex=True, layout="constrained")
for panel, values in ((panels[0], shares[:15]), (panels[1], truth[:15, subjects])):
    ends = np.cumsum(values, axis=1)
    for k in range(K):
        label = f"topic {k}: {names[subjects[k]]}" if panel is panels[0] else None
        panel.bar(
            range(15), values[:, k], bottom=ends[:, k] - values[:, k], color=f"C{k}", label=label
        )
panels[0].set(ylabel="found shares", ylim=(0, 1))
panels[1].set(xlabel="text", ylabel="true shares", ylim=(0, 1))
figure.legend(loc="outside upper center", ncols=3)
error = np.abs(shares - truth[:, subjects]).mean()
print(f"mean difference between found and true shares: {error:.3f}")

# %%
# One fit found the six subjects, each topic has the words of one subject, and the bars of found and true
# shares differ little. Words of two subjects (*light*, *score*) are common in texts of both.

plt.show()
