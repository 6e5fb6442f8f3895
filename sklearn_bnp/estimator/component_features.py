"""``transform`` and names of features for estimators that find a number for each row and component.

Design note. scikit-learn puts the result of ``transform`` into a frame after ``set_output``, which suits one
array. Here a result may also be a list of arrays, one for each sequence, and it may be lazy. So predictors
turn scikit-learn's wrapper off (``auto_wrap_output_keys=None`` in the class statement), and their
``transform`` has the decorator `in_containers` instead. The estimators that derive from them do not turn it
off, or else they would have no ``set_output``.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._set_output import _wrap_data_with_container

from ..distributed.recognition import are_chunks


class ComponentFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin of predictors whose ``transform`` has one column for each component."""

    def __init_subclass__(cls, **given: Any) -> None:
        """Pass on what the class statement gives: scikit-learn is without annotations that say it may."""
        super().__init_subclass__(**given)

    @property
    def _n_features_out(self):
        return self.n_components_


def in_containers(transform):
    """Decorator of ``transform``: its result in the kind of frame that ``set_output`` asks for.

    A list of sequences gives a list of frames. Results for data in chunks stay lazy, as they are.
    """

    @wraps(transform)
    def called(self, X, *args, **given):
        found = transform(self, X, *args, **given)
        if are_chunks(X):
            return found
        if not isinstance(found, list):
            return _wrap_data_with_container("transform", found, X, self)
        each = zip(found, X, strict=True)
        return [_wrap_data_with_container("transform", one, x, self) for one, x in each]

    return called
