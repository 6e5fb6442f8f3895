"""Denoising of photographs by a mixture of patches, learned from one component (NIPS 2013, Sec. 4.4).

A mixture of zero-mean Gaussians is learned from 8x8 patches of BSDS500, from K = 1, without noise and without
the images that follow. It is the prior of EPLL, "expected patch log likelihood" (Zoran and Weiss, ICCV 2011):
the image should be near to the noisy one, and all its patches should be probable. The images are those of
Set12, with seeded Gaussian noise of 15, 25 and 50 gray levels. Both need SKLEARN_BNP_DATA.

EPLL is optimised by half-quadratic splitting, as by its authors. For beta of 1, 2, 4, ..., 64 divided by the
variance of the noise, the Wiener filter of its most probable component cleans every patch, and the image is
the weighted mean of its cleaned patches and of the noisy image. These steps were chosen on scikit-learn's two
photographs, where they are .3 dB better than 1, 4, 8, 16, 32. Nothing is tuned on the images of Set12.

Known figures, in dB: 28.54 is the paper's for 30 images of BSDS at noise of 25, from 1.88 million patches,
.05 below the mixture of 200 components of Zoran and Weiss. That mixture has 31.21, 28.68 and 25.67 on the 68
images of BSD68 (Zhang et al., IEEE TIP 2017). Set12 has other images: these figures only stand beside.

Measured: from 100,000 patches 118 components in 58 laps and 156 s CPU. Mean PSNR of the twelve images, in
dB, by the 41 components with a weight of 1e-3 or more. An image of 256 x 256 (01 to 07) takes 3 s CPU, one of
512 x 512 takes 13 s:

    noise                     15      25      50
    noisy images           24.61   20.18   14.15
    one Gaussian           28.56   26.25   23.67
    mixture                31.82   29.27   25.94
    mixture, 01 to 07      31.79   29.23   25.76

An earlier fit had 131 components in 38 laps and 133 s, and the same means. With all, noise of 25, images 01
to 04: 28.67, 32.07, 29.93, 28.10, in 9 s CPU each; its 42 of that weight have 28.66, 32.06, 29.93, 28.10.

--single also denoises with one Gaussian for all patches, which a mixture has to beat. --model keeps the
mixture in a file, and takes it from there if it exists. --least-weight 1e-3 leaves out components of a few
patches, of which many are for plain areas: the time is that of the others.

    python -m tests.benchmarks.denoising --single --model patches.npz
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from sklearn_bnp import DPMixtureVB, GaussianObservation

from . import bsds, report

SIDE = 8  # of a patch
BETAS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # times the precision of the noise
_BLOCK = 30_000  # patches at a time


class PatchPrior(NamedTuple):
    """A mixture of zero-mean Gaussians of patches without their means, by its principal directions."""

    log_weights: np.ndarray  # (K,)
    variances: np.ndarray  # (K, D)
    directions: np.ndarray  # (K, 64, D), orthonormal columns, orthogonal to the constant patch


def prior_of(weights, covariances, basis):
    """The prior from weights (K,) and covariances (K, D, D) of coordinates in a basis (64, D)."""
    values, vectors = np.linalg.eigh(covariances)
    return PatchPrior(np.log(weights), np.maximum(values, 0.0), basis @ vectors)


def cleaned(patches, variance, prior):
    """Patches (n, 64) after the Wiener filter of the most probable component of each."""
    mean = patches.mean(axis=1, keepdims=True)
    Z = patches - mean
    total = prior.variances + variance
    best, component = np.full(len(Z), -np.inf), np.zeros(len(Z), dtype=int)
    for k, directions in enumerate(prior.directions):
        white = Z @ (directions / np.sqrt(total[k])).astype(Z.dtype)
        score = prior.log_weights[k] - 0.5 * np.log(total[k]).sum()
        score = score - 0.5 * np.einsum("nd,nd->n", white, white)
        better = score > best
        best[better], component[better] = score[better], k
    for k in np.unique(component):
        own, directions = component == k, prior.directions[k]
        wiener = (directions * (prior.variances[k] / total[k])) @ directions.T
        Z[own] = Z[own] @ wiener.astype(Z.dtype)
    return Z + mean


def mean_of_patches(image, variance, prior):
    """The image of which each pixel is the mean of its values in all cleaned patches that cover it."""
    rows, columns = np.subtract(image.shape, SIDE - 1)
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float32), (SIDE, SIDE))
    patches = windows.reshape(-1, SIDE * SIDE)
    for start in range(0, len(patches), _BLOCK):
        block = slice(start, start + _BLOCK)
        patches[block] = cleaned(patches[block], variance, prior)
    total, count = np.zeros(image.shape), np.zeros(image.shape)
    for at, (i, j) in enumerate(np.ndindex(SIDE, SIDE)):
        total[i : i + rows, j : j + columns] += patches[:, at].reshape(rows, columns)
        count[i : i + rows, j : j + columns] += 1.0
    return total / count


def denoised(noisy, sigma, prior):
    """The image (height, width) by EPLL; gray values from 0 to 1, noise of standard deviation sigma."""
    image, precision = noisy, 1.0 / sigma**2
    for beta in np.array(BETAS) * precision:
        mean = mean_of_patches(image, 1.0 / beta, prior)
        image = (precision * noisy + beta * mean) / (precision + beta)
    return np.clip(image, 0.0, 1.0)


def psnr(image, clean):
    """Peak signal-to-noise ratio, in dB, of gray values from 0 to 1."""
    return float(-10.0 * np.log10(np.mean((image - clean) ** 2)))


def images():
    """Names and gray images of Set12, values from 0 to 1."""
    from matplotlib.image import imread

    found = {}
    for file in sorted(report.data_file("set12").glob("*.png")):
        picture = np.asarray(imread(file), dtype=float)
        found[file.stem] = picture if picture.ndim == 2 else picture[..., :3].mean(axis=2)
    return found


def learned(args):
    """The prior of patches and the number of its components, and that of one Gaussian."""
    patches = bsds.load(args.rows, 0, 0, "float64")
    basis, Z = patches.basis, patches.X @ patches.basis
    path = Path(args.model) if args.model else None
    if path is not None and path.exists():
        with np.load(path) as file:
            weights, covariances = file["weights"], file["covariances"]
        print(f"{len(weights)} components, from {path}")
    else:
        model = DPMixtureVB(
            observation=GaussianObservation(zero_mean=True), max_iter=args.max_iter,
            random_state=args.seed, n_jobs=args.threads, verbose=1,
        )  # fmt: skip
        clock = report.fit_timed(model, Z)
        print(
            f"{model.n_components_} components of {len(Z)} patches after {model.n_iter_} laps,"
            f" {clock.cpu:.0f} s CPU"
        )
        weights, covariances = model.weights_, model.covariances_
        if path is not None:
            np.savez(path, weights=weights, covariances=covariances)
    kept = weights >= args.least_weight
    if not kept.all():
        print(f"{kept.sum()} of them have a weight of {args.least_weight:g} or more, and are used")
        weights, covariances = weights[kept], covariances[kept]
    single = prior_of(np.ones(1), (Z.T @ Z / len(Z))[np.newaxis], basis)
    return prior_of(weights, covariances, basis), single


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="patches to learn from")
    parser.add_argument("--max-iter", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the fit")
    parser.add_argument("--sigmas", type=float, nargs="+", default=[25, 15, 50])
    parser.add_argument("--images", nargs="+", help="some of them by name, as 01 (all)")
    parser.add_argument(
        "--single", action="store_true", help="one Gaussian for all patches as well"
    )
    parser.add_argument("--least-weight", type=float, default=0.0, help="of components to use")
    parser.add_argument("--model", help="file of the mixture: read if it exists, otherwise written")
    parser.add_argument("--plot", help="file of a picture of the first image")
    args = parser.parse_args()
    limits = report.start("denoising", args.threads)
    try:
        pictures = images()
        priors = dict(zip(("mixture", "one Gaussian"), learned(args), strict=True))
    except report.MissingData as missing:
        raise SystemExit(f"skipped: {missing}") from None
    if not args.single:
        del priors["one Gaussian"]
    chosen = args.images or list(pictures)
    for sigma in args.sigmas:
        lines = []
        for name in chosen:
            clean = pictures[name]
            noise = np.random.default_rng([int(sigma), int(name)]).normal(size=clean.shape)
            noisy = clean + sigma / 255.0 * noise
            with report.Clock() as clock:
                restored = {kind: denoised(noisy, sigma / 255.0, p) for kind, p in priors.items()}
            ratios = [psnr(image, clean) for image in (noisy, *restored.values())]
            lines.append([name, *ratios, clock.cpu])
            print(*(report.number(v) if i else v for i, v in enumerate(lines[-1])), flush=True)
            if args.plot and name == chosen[0] and sigma == args.sigmas[0]:
                draw(args.plot, clean, noisy, restored["mixture"])
        means = ["mean", *np.mean([line[1:] for line in lines], axis=0)]
        report.print_table(
            ["image", "noisy", *priors, "cpu s"],
            [[line[0], *(f"{v:.2f}" for v in line[1:])] for line in [*lines, means]],
            title=f"PSNR in dB, noise of {sigma:g} gray levels",
        )
    limits.unregister()


def draw(path, clean, noisy, restored):
    """The three images side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
    for panel, image, title in zip(
        axes, (clean, noisy, restored), ("clean", "noisy", "denoised"), strict=True
    ):
        panel.imshow(image, cmap="gray", vmin=0, vmax=1)
        panel.set_title(title if title == "clean" else f"{title}: {psnr(image, clean):.2f} dB")
        panel.set_axis_off()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
