"""
Topics of a stream of texts, in bounded memory
==============================================

News come in week by week and are not kept. `~sklearn_bnp.MemoryBoundedTopicVB` learns their topics. After
each week it forgets the sentences, and keeps only sums over groups of similar ones (clumps), so that its
memory stays within a bound for ever. A subject that appears in week 6 gets a topic of its own, and one that
has left the news in week 4 keeps its topic.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_bnp import MemoryBoundedTopicVB

# %%
# The stream
# ----------
# A text has six sentences of ten words and is about one to three subjects, a sentence about one. A fifth of
# the words are those of any text.

SUBJECTS = {
    "cooking": "oven butter flour salt recipe simmer garlic onion dough pan sauce bake",
    "football": "goal match referee league striker coach penalty stadium team season keeper pass",
    "money": "bank interest loan market price share profit tax credit debt invest budget",
    "gardening": "soil seed prune compost rose tomato water lawn bulb weed hedge spade",
    "astronomy": "planet orbit telescope galaxy star comet moon eclipse light nebula crater probe",
}
EVERYWHERE = "today people often think small good time year place again long hand"
COMMON = EVERYWHERE.split()
NAMES = list(SUBJECTS)
WORDS = [words.split() for words in SUBJECTS.values()]
WEEKS, TEXTS, SENTENCES = 12, 30, 6
RNG = np.random.default_rng(0)


def week(t):
    """Sentences of a week, the text of each, and its subject."""
    there = [s for s, name in enumerate(NAMES) if not (name == "gardening" and t >= 4)]
    there = [s for s in there if not (NAMES[s] == "astronomy" and t < 6)]
    sentences, subjects = [], []
    for _ in range(TEXTS):
        shares = RNG.dirichlet(np.full(len(there), 0.3))
        for subject in RNG.choice(there, size=SENTENCES, p=shares):
            lists = [COMMON if RNG.random() < 0.2 else WORDS[subject] for _ in range(10)]
            sentences.append(" ".join(RNG.choice(words) for words in lists))
            subjects.append(subject)
    return sentences, np.repeat(np.arange(TEXTS), SENTENCES), np.array(subjects)


# %%
# Learning
# --------
# A row is a sentence, as counts of words; the sentences of a text are a group. Each week is one call of
# ``partial_fit``. The vocabulary is known before; a hashing vectorizer would do without.

vectorizer = CountVectorizer(vocabulary=sorted({w for words in [*WORDS, COMMON] for w in words}))
model = MemoryBoundedTopicVB(
    memory_bound=8_000, max_document_groups=15, observation="multinomial",
    target_points=WEEKS * TEXTS * SENTENCES, target_documents=WEEKS * TEXTS,
)  # fmt: skip
kept, seen, topics, everything = [], [], [], []
for t in range(WEEKS):
    sentences, texts, subjects = week(t)
    everything += zip(sentences, subjects, strict=True)
    X = vectorizer.transform(sentences).toarray()
    model.partial_fit(X, groups=texts)
    kept.append(model.memory_)
    seen.append((t + 1) * X.size)
    topics.append(model.n_components_)

figure, axes = plt.subplots(2, 1, figsize=(7, 4.6), sharex=True, layout="constrained")
weeks = np.arange(WEEKS)
axes[0].plot(weeks, seen, "o-", color="0.6", label="counts seen")
axes[0].plot(weeks, kept, "o-", label="numbers kept")
axes[0].axhline(model.memory_bound, color="C0", ls=":", label="bound")
axes[0].set(yscale="log", ylabel="numbers")
axes[0].legend(fontsize="small")
axes[1].plot(weeks, topics, "o-", drawstyle="steps-mid")
axes[1].axvline(3.5, color="0.6", ls="--", label="gardening ends")
axes[1].axvline(5.5, color="0.6", ls=":", label="astronomy begins")
axes[1].set(xlabel="week", ylabel="topics", ylim=(0, 6))
axes[1].yaxis.get_major_locator().set_params(integer=True)
axes[1].legend(fontsize="small", loc="lower right")

# %%
# What the topics are about
# -------------------------
# In the end all sentences of all weeks are asked for their topic: the model has forgotten them, this script
# has not. Rows are true subjects.

sentences, subjects = zip(*everything, strict=True)
found = model.predict(
    vectorizer.transform(sentences).toarray(), groups=np.repeat(np.arange(WEEKS * TEXTS), SENTENCES)
)
K = model.n_components_
table = np.zeros((len(NAMES), K))
np.add.at(table, (np.array(subjects), found), 1)
table /= table.sum(axis=1, keepdims=True)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
image = axes.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
axes.set_yticks(range(len(NAMES)), NAMES)
axes.set_xticks(range(K), [f"topic {k}\n{p:.0%}" for k, p in enumerate(model.topic_probs_)])
for (i, k), share in np.ndenumerate(table):
    axes.text(k, i, f"{share:.0%}", ha="center", va="center", color=f"{share > 0.5:d}")
figure.colorbar(image, label="share of the sentences")

# %%
# What is kept stays below the bound while the stream grows without end: after twelve weeks it is a
# twentieth of what has been seen. Astronomy gets a topic in its first week. Gardening, of which nothing has
# been heard for eight weeks, still has its topic, and every sentence finds its subject.

plt.show()
