"""Images as documents of pixels: what the benchmarks of memory bounded learning look at.

scikit-learn's two photographs in tiles or in random crops, and the small gray images of the data folder
(CIFAR-10 back from its 50 principal components). A pixel is a row: its place relative to the middle of the
image, and its colour.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_sample_images

from . import report

# Linear RGB of the sRGB primaries to CIE XYZ, over the white point D65.
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)  # fmt: skip


def lab(rgb):
    """CIELAB (..., 3) of sRGB colours from 0 to 255 (IEC 61966-2-1; CIE 15)."""
    value = np.asarray(rgb, dtype=float) / 255.0
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    xyz = linear @ _TO_XYZ.T / _TO_XYZ.sum(axis=1)
    cut = (6.0 / 29.0) ** 3
    f = np.where(xyz > cut, np.cbrt(xyz), xyz * (29.0 / 6.0) ** 2 / 3.0 + 4.0 / 29.0)
    x, y, z = np.moveaxis(f, -1, 0)
    return np.stack([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)], axis=-1)


def colour_tiles(step=2):
    """Both photographs in 4 x 4 tiles of 106 x 160, of which every ``step``-th pixel is taken."""
    tiles = []
    for photograph in load_sample_images().images:
        for i in range(0, 4 * 106, 106):
            tiles += [
                photograph[i : i + 106 : step, j : j + 160 : step] for j in range(0, 640, 160)
            ]
    return tiles


def colour_crops(n, rng, size=96, step=3):
    """``n`` square crops of the photographs at random places, of which every ``step``-th pixel is taken."""
    photographs, crops = load_sample_images().images, []
    for _ in range(n):
        photograph = photographs[rng.integers(2)]
        i, j = (rng.integers(length - size) for length in photograph.shape[:2])
        crops.append(photograph[i : i + size : step, j : j + size : step])
    return crops


def gray_images(n, rng):
    """``n`` of CIFAR-10's images (32, 32), in gray values about 0 to 255."""
    with np.load(report.data_file("cifar10_gray_pca50.npz")) as file:
        chosen = rng.choice(len(file["X_train"]), n, replace=False)
        images = file["X_train"][chosen].astype(float) @ file["components"] + file["mean"]
    return list(images.reshape(n, 32, 32))


def gray_crops(n, rng, size=96, step=3):
    """``n`` square crops of the images of Set12 at random places, of every ``step``-th pixel."""
    from matplotlib.image import imread

    files = sorted(report.data_file("set12").glob("*.png"))
    pictures, crops = [255.0 * np.asarray(imread(file), dtype=float) for file in files], []
    for i in range(n):
        picture = pictures[i % len(pictures)]
        picture = picture if picture.ndim == 2 else picture[..., :3].mean(axis=2)
        i, j = (rng.integers(length - size) for length in picture.shape)
        crops.append(picture[i : i + size : step, j : j + size : step])
    return crops


def patches(n, rng, n_columns=8):
    """Rows and images of the patches of ``n`` images of BSDS, in their principal components."""
    with np.load(report.data_file("bsds_patches8x8_100k.npz")) as file:
        X, image = file["X"] / 255.0, file["image_id"]
    X = X - X.mean(axis=1, keepdims=True)
    axes = np.linalg.eigh(np.cov(X[::10].T))[1][:, -n_columns:]
    own = np.isin(image, rng.permutation(np.unique(image))[:n])
    return X[own] @ axes, image[own]


def places(height, width):
    """Columns x and y of the pixels, from the middle of the image."""
    y, x = np.mgrid[:height, :width]
    return [x.ravel() - (width - 1) / 2, y.ravel() - (height - 1) / 2]


def pixel_rows(image):
    """Rows of the pixels: (x, y, L, a, b), or (x, y, gray and its differences to the right and down)."""
    height, width = image.shape[:2]
    if image.ndim == 3:
        return np.column_stack([*places(height, width), lab(image).reshape(-1, 3)])
    right, down = (
        np.diff(image, axis=axis, append=np.take(image, [-1], axis=axis)) for axis in (1, 0)
    )
    columns = [channel.ravel() for channel in (image, right, down)]
    return np.column_stack([*places(height, width), *columns])


def documents(images):
    """Rows of all images, and the image of each."""
    rows = [pixel_rows(image) for image in images]
    return np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(x) for x in rows])
