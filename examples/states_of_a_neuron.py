"""States of a nerve cell's voltage: a recording that comes with matplotlib, six seconds of a driven cell.

Gaussian states say where the voltage is, autoregressive ones how it goes on from where it is. The
voltage is a slow curve with fast spikes. Gaussian states cut it into levels. Autoregressive states are
the slow drift, rest included, and the parts of a spike: its foot, its rise, its peak and its fall. The
wavering before the first spike and between the later ones has a state of its own.

Both fits start from one state. Other seeds may end in other optima; the fit with the greatest
``lower_bound_`` is shown. There is only one recording, so held-out scores are those of pieces of it.

    python examples/states_of_a_neuron.py [--output states_of_a_neuron.png]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # pictures go to files

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from sklearn_bnp import HDPHMMVB, AutoregressiveObservation

# A sample every half millisecond, recorded in coarse steps and finer in time than these curves need:
# rows are means of so many samples.
SAMPLES_A_ROW = 4
MILLISECONDS = 0.5 * SAMPLES_A_ROW  # a row
SEEDS = range(3)
# Rows of the second and third picture: spikes at unequal distances, and some that fail.
CLOSE = slice(1950, 2450)


def recording():
    """The voltage in mV, (n_rows, 1)."""
    path = Path(matplotlib.get_data_path()) / "sample_data" / "membrane.dat"
    samples = 100.0 * np.fromfile(path, dtype=np.float32).astype(float)
    return samples.reshape(-1, SAMPLES_A_ROW).mean(axis=1, keepdims=True)


def best_fit(model, X):
    """The fit with the greatest bound of those from a few seeds."""
    fits = [clone(model).set_params(random_state=seed).fit(X) for seed in SEEDS]
    found = ", ".join(f"{fit.n_components_} ({fit.lower_bound_ / len(X):.3f})" for fit in fits)
    print(f"  states found from one, and ELBO a row, by seed: {found}")
    return max(fits, key=lambda fit: fit.lower_bound_)


def print_states(X, states):
    """A line a state: how often it is visited, how long it lasts, and where the voltage is then."""
    edges = np.flatnonzero(np.diff(states)) + 1
    visits = [(run[0], len(run)) for run in np.split(states, edges)]
    print("  state  share  visits  median length  voltage, 9 rows in 10")
    for k in np.unique(states):
        lengths = [n for state, n in visits if state == k]
        low, high = np.quantile(X[states == k, 0], [0.05, 0.95])
        print(
            f"  {k:5d} {sum(lengths) / len(X):6.1%} {len(lengths):7d}"
            f" {MILLISECONDS * np.median(lengths):11.0f} ms  {low:4.0f} to {high:.0f} mV"
        )


def colour(state):
    """Twenty colours; the second ten are pale."""
    return plt.get_cmap("tab20")((2 * state + state // 10) % 20)


def draw(axis, X, states, rows, title):
    """The voltage of some rows, each in the colour of its state. Each model has states of its own."""
    seconds = MILLISECONDS / 1000.0 * np.arange(rows.start, rows.stop)
    axis.plot(seconds, X[rows, 0], color="0.8", linewidth=0.8, zorder=1)
    for state in np.unique(states[rows]):
        here = states[rows] == state
        axis.plot(seconds[here], X[rows, 0][here], ".", color=colour(state), ms=5, label=state)
    axis.legend(title="state", loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=2, fontsize=8)
    axis.set_title(title, fontsize=10, loc="left")
    axis.set_ylabel("mV")
    axis.margins(x=0.01)


def draw_states(X, paths, output):
    """All of the first path, and a piece of each."""
    figure, axes = plt.subplots(1 + len(paths), 1, figsize=(12, 8), layout="constrained")
    titles = {name: f"{len(np.unique(states))} {name} states" for name, states in paths.items()}
    first = next(iter(paths))
    draw(axes[0], X, paths[first], slice(0, len(X)), titles[first])
    for axis, (name, states) in zip(axes[1:], paths.items(), strict=True):
        draw(axis, X, states, CLOSE, f"{titles[name]}, a part")
    axes[-1].set_xlabel("seconds")
    figure.savefig(output, dpi=120)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="states_of_a_neuron.png", help="the picture's file")
    options = parser.parse_args()
    X = recording()
    print(f"One sequence of {len(X)} rows, each the mean of {SAMPLES_A_ROW} samples")
    # the next row from the last two: level and slope
    regressions = HDPHMMVB(observation=AutoregressiveObservation(order=2))
    kinds = {"autoregressive": regressions, "Gaussian": HDPHMMVB(observation="gaussian")}
    paths = {}
    for name, model in kinds.items():
        print(f"\n{name[0].upper()}{name[1:]} states")
        start = time.perf_counter()
        fit = best_fit(model, X)
        made = sum((Counter(lap.accepted) for lap in fit.history_), Counter())
        moves = ", ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in made.items())
        print(f"  {time.perf_counter() - start:.1f} s; in the best fit {moves} accepted")
        paths[name] = fit.decode(X)[1]
        print_states(X, paths[name])
    draw_states(X, paths, options.output)
    print(f"\nPicture          {options.output}\n")

    print("Heldout score of pieces of 150 rows, in nats a row, higher is better:")
    pieces, folds = np.split(X, 20), KFold(5, shuffle=True, random_state=0)
    kinds["one autoregression"] = clone(regressions).set_params(proposals=None)
    for name, model in kinds.items():
        scores = cross_val_score(model.set_params(random_state=0), pieces, cv=folds)
        print(
            f"  {name:<20} {scores.mean():.2f}  (folds: {scores.min():.2f} to {scores.max():.2f})"
        )


if __name__ == "__main__":
    main()
