"""Order of the gallery: a section for each kind of data, in it first steps first and special cases last."""

from pathlib import PurePath

SECTIONS = {
    "mixtures": [
        "getting_started", "cluster_comparison", "bic_or_one_fit", "birth_of_components",
        "grid_search", "columns_of_a_cluster", "mixed_columns", "overdispersed_counts",
        "missing_values", "outliers_and_density", "embeddings", "power_law", "denoising",
    ],
    "topics": ["topics_of_texts", "short_texts", "cells_of_samples"],
    "sequences": [
        "segment_a_sequence", "shared_movements", "visit_lengths", "predict_next",
        "chromatin_states",
    ],
    "streams": ["drifting_stream", "stream_of_texts", "memory_map", "combine_hospitals"],
}  # fmt: skip

_PLACES = {
    f"plot_{name}.py": place for names in SECTIONS.values() for place, name in enumerate(names)
}


def place_of(file_name):
    """Position of an example in its section: the key by which sphinx-gallery sorts."""
    return _PLACES[PurePath(file_name).name]
