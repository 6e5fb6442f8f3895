"""Image patches as tokens of images: an HDP admixture beside a DP mixture (thesis Sec. 5.6.3).

8x8 gray patches of BSDS500 (needs SKLEARN_BNP_DATA) without their means, in the 63 coordinates
orthogonal to the constant patch, zero-mean Gaussians with full covariance, both from K = 1 at default
settings. Images are the documents. Heldout images: half of the patches of each show its weights, and
the other half are scored, in nats a patch; the mixture, which has the same weights for all images,
is scored on the same patches.

Target (Fig. 5.8): the admixture's score above the mixture's.

    python -m tests.benchmarks.bsds_admixture
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

from sklearn_bnp import DPMixtureVB, GaussianObservation, HDPTopicVB

from . import report

HEADER = ["fit", "K", "laps", "cpu s", "wall s", "ELBO/N", "heldout"]


def load(n_train: int, n_heldout: int, split_seed: int):
    """Patches and images of either side; whole images go to one of them."""
    with np.load(report.data_file("bsds_patches8x8_100k.npz")) as file:
        X, image = file["X"] / 255.0, file["image_id"]
    X = (X - X.mean(axis=1, keepdims=True)) @ null_space(np.ones((1, X.shape[1])))
    rng = np.random.default_rng(split_seed)
    images = rng.permutation(np.unique(image))
    order = np.concatenate([np.flatnonzero(image == i) for i in images])
    cut = image[order[n_train - 1]]
    rest = order[n_train:]
    train, heldout = order[:n_train], rest[image[rest] != cut][:n_heldout]
    return X[train], image[train], X[heldout], image[heldout]


def line(name, model, clock, n_rows, score):
    return [
        name,
        model.n_components_,
        model.n_iter_,
        f"{clock.cpu:.1f}",
        f"{clock.wall:.1f}",
        f"{model.lower_bound_ / n_rows:.3f}",
        f"{score:.3f}",
    ]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--heldout", type=int, default=20_000)
    parser.add_argument("--split-seed", type=int, default=0)
    parser.add_argument("--max-iter", type=int, default=100)
    args = parser.parse_args()
    X, groups, X_heldout, groups_heldout = load(args.rows, args.heldout, args.split_seed)
    lines = []
    for seed in range(args.seeds):
        common = {
            "observation": GaussianObservation(zero_mean=True),
            "random_state": seed,
            "max_iter": args.max_iter,
        }
        mixture = DPMixtureVB(**common)
        clock = report.fit_timed(mixture, X)
        score = mixture.score(X_heldout)
        lines.append(line(f"mixture, seed {seed}", mixture, clock, len(X), score))
        admixture = HDPTopicVB(**common)
        with report.Clock() as clock:
            admixture.fit(X, groups=groups)
        score = admixture.score_completion(
            X_heldout, by="tokens", heldout=0.5, groups=groups_heldout
        )
        lines.append(line(f"admixture, seed {seed}", admixture, clock, len(X), score))
    report.print_table(HEADER, lines, title=f"{args.rows} patches")


if __name__ == "__main__":
    main()
