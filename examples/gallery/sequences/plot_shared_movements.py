"""
Movements that recordings share
===============================

Six people exercise, each in a recording of their own, and nobody does all of the exercises. One fit of
`~sklearn_bnp.HDPHMMVB` to all recordings finds a common list of movements: what two recordings share has
one name in both, and says who did what.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import HDPHMMVB
from sklearn_bnp.inspection import StatesDisplay

# %%
# A generator like motion capture
# -------------------------------
# Four angles: two of an arm and two of a leg. In each movement the arm and the leg swing at speeds of their
# own, or come to rest. Each person does two to four of the movements, in any order.

SWING = {
    "walk": (0.25, 0.25),
    "wave": (0.5, 0.0),
    "squat": (0.0, -0.3),
    "jump": (-0.5, 0.5),
    "rest": (0.0, 0.0),
}
DOES = [[0, 1, 4], [0, 2], [1, 3, 4], [0, 3], [0, 1, 2, 4], [2, 3]]
NAMES = list(SWING)
RNG = np.random.default_rng(0)


def turn(speed):
    """Matrix that takes a pair of angles one step on."""
    cos, sin = np.cos(speed), np.sin(speed)
    return (0.99 if speed else 0.7) * np.array([[cos, -sin], [sin, cos]])


STEP = []
for arm, leg in SWING.values():
    STEP.append(np.block([[turn(arm), np.zeros((2, 2))], [np.zeros((2, 2)), turn(leg)]]))


def recording(does, n_steps=400):
    """Angles (n_steps, 4), and the movement at each step."""
    visits = [does[0]]
    while len(visits) < 12:
        visits.append(RNG.choice([m for m in does if m != visits[-1]]))
    movement = np.repeat(visits, RNG.integers(40, 90, len(visits)))[:n_steps]
    x = RNG.normal(size=(n_steps, 4))
    for t in range(1, n_steps):
        x[t] = STEP[movement[t]] @ x[t - 1] + 0.15 * RNG.normal(size=4)
    return x, movement


recordings, truth = zip(*[recording(does) for does in DOES], strict=True)
recordings = list(recordings)

# %%
# One fit of all recordings
# -------------------------

model = HDPHMMVB(observation="autoregressive", random_state=0).fit(recordings)
paths = model.predict(recordings)
rand = adjusted_rand_score(np.concatenate(truth), np.concatenate(paths))
print(f"{model.n_components_} movements, adjusted Rand index with the true ones {rand:.2f}")

# %%
# Each recording is a row, each colour a movement.

StatesDisplay.from_estimator(model, recordings, kind="rugs")

# %%
# Who does what
# -------------
# The share of each movement in each recording. A movement that was found has the name of the true one in
# whose steps it is most often.

K = model.n_components_
true, found = np.concatenate(truth), np.concatenate(paths)
name_of = [NAMES[np.bincount(true[found == k]).argmax()] for k in range(K)]
tables = (
    ("found", [np.bincount(path, minlength=K) / len(path) for path in paths], name_of),
    ("true", [np.bincount(m, minlength=len(NAMES)) / len(m) for m in truth], NAMES),
)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
for panel, (title, shares, names) in zip(axes, tables, strict=True):
    order = np.argsort([NAMES.index(name) for name in names], kind="stable")
    shares = np.array(shares)[:, order]
    image = panel.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    panel.set_xticks(range(len(names)), [names[k] for k in order])
    panel.set_title(title)
    for (i, k), share in np.ndenumerate(shares):
        if share > 0:
            panel.text(k, i, f"{share:.0%}", ha="center", va="center", color=f"{share > 0.5:d}")
axes[0].set_ylabel("recording")
figure.colorbar(image, ax=axes, label="share of its steps")

# %%
# Recordings apart
# ----------------
# A fit to each recording alone finds that person's movements too, but has no common names for them.

alone = [HDPHMMVB(observation="autoregressive", random_state=0).fit([x]) for x in recordings]
print("recording  true movements  found alone  found together")
for i, (one, path) in enumerate(zip(alone, paths, strict=True)):
    print(f"{i:>9}{len(DOES[i]):>16}{one.n_components_:>13}{len(np.unique(path)):>16}")

# %%
# Five movements in common, found in all recordings that have them, with the right shares: the table of who
# does what is that of the generator to a few per cent. Alone, each recording shows as many movements as its
# person does. But nothing says which movement of one person is the same as which one of another.

plt.show()
