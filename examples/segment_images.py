"""Joint segmentation of tiles of two photographs, in memory that does not grow.

scikit-learn's two sample images are cut into 32 tiles, which arrive four at a time. A tile is a document, a
pixel a row: where it is in the tile, and its colour in CIELAB. After each epoch the pixels are forgotten, and
only sums over groups of them (clumps) are kept. Picture: segment_images.png.

    python examples/segment_images.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")  # pictures go to files

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

from sklearn_bnp import GaussianObservation, MemoryBoundedTopicVB

HEIGHT, WIDTH, STEP = 106, 160, 4  # of a tile in pixels, of which every fourth is taken each way
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)  # fmt: skip


def lab(rgb):
    """CIELAB of sRGB colours from 0 to 255."""
    value = rgb / 255.0
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    xyz = linear @ TO_XYZ.T / TO_XYZ.sum(axis=1)  # relative to white
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    x, y, z = np.moveaxis(f, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def tiles():
    """All tiles, mixed."""
    found = [
        image[i : i + HEIGHT : STEP, j : j + WIDTH : STEP]
        for image in load_sample_images().images
        for i in range(0, 4 * HEIGHT, HEIGHT)
        for j in range(0, 4 * WIDTH, WIDTH)
    ]
    return [found[i] for i in np.random.default_rng(0).permutation(len(found))]


def rows_of(images):
    """Pixels as rows (x, y, L, a, b), and the image of each."""
    height, width = images[0].shape[:2]
    y, x = np.mgrid[:height, :width]
    place = np.column_stack([x.ravel() - width / 2, y.ravel() - height / 2])
    rows = [np.column_stack([place, lab(image).reshape(-1, 3)]) for image in images]
    return np.concatenate(rows), np.repeat(np.arange(len(images)), len(place))


def draw(images, model):
    """Images over their segments, each in the mean colour of its pixels."""
    figure, axes = plt.subplots(4, 8, figsize=(13, 5), layout="constrained")
    X, groups = rows_of(images)
    labels = model.predict(X, groups=groups).reshape(len(images), *images[0].shape[:2])
    pixels = np.array(images)
    colours = [pixels[labels == k].mean(axis=0) if np.any(labels == k) else np.zeros(3)
               for k in range(model.n_components_)]  # fmt: skip
    segments = np.array(colours)[labels].astype(np.uint8)
    for i in range(16):
        row, column = 2 * (i // 8), i % 8
        axes[row, column].imshow(images[i])
        axes[row + 1, column].imshow(segments[i], interpolation="nearest")
    for axis in axes.ravel():
        axis.set(xticks=[], yticks=[])
    for row, label in enumerate(("photographs", "segments") * 2):
        axes[row, 0].set_ylabel(label)
    figure.suptitle(f"{model.n_components_} topics, learned from {model.n_clumps_} clumps")
    figure.savefig("segment_images.png", dpi=110)
    print("picture: segment_images.png")


def main():
    images = tiles()
    n_pixels = len(images) * images[0].shape[0] * images[0].shape[1]
    model = MemoryBoundedTopicVB(
        memory_bound=8_000, target_points=n_pixels, target_documents=len(images), max_components=40,
        observation=GaussianObservation(resolution=None), tol=1e-4,
    )  # fmt: skip
    for first in range(0, len(images), 4):
        X, groups = rows_of(images[first : first + 4])
        model.partial_fit(X, groups=groups)
        print(
            f"{model.n_documents_:2d} tiles, {model.n_rows_:6d} pixels: K={model.n_components_}, "
            f"{model.n_clumps_} clumps and {model.n_singlets_} pixels in {model.memory_bytes_} bytes"
        )
    draw(images[-16:], model)


if __name__ == "__main__":
    main()
