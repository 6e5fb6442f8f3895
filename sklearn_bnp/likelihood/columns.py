"""Blocks of columns, each with a likelihood of its own.

Design note
-----------
(a) Names of columns are known only where there is a frame. There `for_frame` turns names and callables
    into numbers of columns, which are all that `bind` takes.
(b) Each block's model is bound to the moments of its own columns, so that it has the scaling and the prior
    that it would have alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import _BaseComposition

from ..inputs.advice import advice_on_observation
from .base import Likelihood, ObservationModel
from .column_likelihood import ColumnLikelihood, says_which_block
from .column_numbers import column_numbers


class ColumnObservation(ObservationModel, _BaseComposition):
    """Columns of several kinds, in blocks that have an observation model each.

    Given the component, blocks are independent of each other; the columns of one block are distributed
    as its model says. It is to observation models what `sklearn.compose.ColumnTransformer` is to
    transformers.

    Parameters
    ----------
    blocks : list of tuple (name, observation, columns)
        The parts of each block are:

        name : str
            Name of the block, by which its parameters are set: ``set_params(name__covariance_type="diag")``.
        observation : str or ObservationModel
            A name such as ``"gaussian"``, or a model. It may not be a model in which rows depend on those
            before them, nor another `ColumnObservation`.
        columns : int, str, slice, list of int, of str or of bool, or callable
            Columns as `sklearn.compose.ColumnTransformer` takes them: numbers, or names if X is a pandas or
            polars frame. Of a frame, they may also be chosen by a callable, such as
            `sklearn.compose.make_column_selector`. No column may be in two blocks. Columns that are in
            no block are ignored. In an array, they must be finite numbers all the same.

    See Also
    --------
    sklearn.compose.ColumnTransformer : Applies a transformer to each of several blocks of columns.

    Notes
    -----
    Fitted estimators have ``blocks_``, a dict of each block's attributes (``means_``,
    ``probabilities_``, ...) by its name, and ``means_`` of shape (n_components, n_features), which is
    NaN for columns whose models have no means. `sample` draws rows with all columns of X, which are
    NaN for columns in no block.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bnp import ColumnObservation, DPMixtureVB
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 2], 100)
    >>> X = np.column_stack([rng.normal(4 * labels), rng.binomial(2, labels / 2)])
    >>> columns = ColumnObservation([("size", "gaussian", [0]), ("kind", "categorical", [1])])
    >>> model = DPMixtureVB(observation=columns, random_state=0).fit(X)
    >>> model.n_components_, sorted(model.blocks_["kind"])
    (3, ['probabilities_'])
    """

    def __init__(self, blocks: Iterable[Any]) -> None:
        self.blocks = blocks

    # ------------------------------------------------------------------ parameters

    @property
    def _named(self):
        """Pairs of names and models, as `_BaseComposition` needs them."""
        return [(name, observation) for name, observation, _ in self.blocks]

    @_named.setter
    def _named(self, pairs):
        self.blocks = [
            (name, observation, columns)
            for (name, observation), (_, _, columns) in zip(pairs, self.blocks, strict=True)
        ]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this model and of the blocks.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return the blocks' models and their parameters as well.

        Returns
        -------
        params : dict
            Values by name.
        """
        if not deep or not _are_triples(self.blocks):
            return super().get_params(deep=False)
        return self._get_params("_named", deep=True)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this model and of the blocks, even of blocks whose models are names.

        Parameters
        ----------
        **params : dict
            ``blocks``, a block's model by its name, or a parameter of the model as ``name__parameter``.

        Returns
        -------
        self : ColumnObservation
            The model.
        """
        if "blocks" in params:
            self.blocks = params.pop("blocks")
        nested = {key.partition("__")[0] for key in params if "__" in key}
        if nested and _are_triples(self.blocks):
            self._named = [(name, _model(o) if name in nested else o) for name, o in self._named]
        self._set_params("_named", **params)
        return self

    # ------------------------------------------------------------------ abilities

    def _checked(self):
        """Triples of names, models and columns; all but the columns is checked."""
        if not _are_triples(self.blocks) or not self.blocks:
            raise ValueError(
                f"blocks={self.blocks!r} must be a list of (name, observation, columns), such as "
                '("size", "gaussian", [0, 1]).'
            )
        names = [name for name, _, _ in self.blocks]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"{names.count(name)} blocks have the name {name!r}, but attributes and parameters go by "
                    "names: give each block one of its own."
                )
        self._validate_names(names)
        out = [(name, _model(o, name), columns) for name, o, columns in self.blocks]
        for name, model, _ in out:
            if isinstance(model, ColumnObservation):
                # its columns would be looked up in the whole frame, and then taken from the block
                raise ValueError(
                    f"Block {name!r} has a ColumnObservation as its model, which cannot be within another; "
                    "list its blocks in the outer one."
                )
            if hasattr(model, "_parameter_constraints"):
                model._validate_params()
            if model.lags:
                raise ValueError(
                    f"Block {name!r} has the model {model!r}, which explains each row by those before it; "
                    "use it alone, or take another model of rows."
                )
        return out

    @property
    def needs_covariance(self) -> bool:
        """Whether `bind` needs the covariances of the columns, and not only their variances."""
        return any(model.needs_covariance for _, model, _ in self._checked())

    @property
    def needs_step(self) -> bool:
        """Whether `bind` needs the steps to which columns were recorded."""
        return any(model.needs_step for _, model, _ in self._checked())

    @property
    def scales_rows(self) -> bool:
        """Whether rows are modelled in standard deviations of the data."""
        return any(model.needs_step and model.scales_rows for _, model, _ in self._checked())

    @property
    def needs_increments(self) -> bool:
        """Whether `bind` needs the differences between successive rows of sequences."""
        return any(model.needs_increments for _, model, _ in self._checked())

    @property
    def needs_codes(self) -> bool:
        """Whether `bind` needs the codes of categories that columns hold."""
        return any(model.needs_codes for _, model, _ in self._checked())

    @property
    def allows_missing(self) -> bool:
        """Whether entries of rows may be NaN, which stands for a missing value."""
        try:
            return all(model.allows_missing for _, model, _ in self._checked())
        except ValueError:  # it is raised by fit
            return False

    @property
    def zeros_say_nothing(self) -> bool:
        """Whether a row of zeros is equally probable under all components."""
        try:
            return all(model.zeros_say_nothing for _, model, _ in self._checked())
        except ValueError:  # it is raised by fit
            return False

    def for_sequences(self) -> ObservationModel:
        """The model with defaults that suit rows of sequences; see `ObservationModel.for_sequences`."""
        return ColumnObservation([(n, model.for_sequences(), c) for n, model, c in self._checked()])

    # ------------------------------------------------------------------ columns

    def for_frame(self, frame: Any, columns: Any) -> Any:
        """The model with numbers for columns; see `ObservationModel.for_frame`."""
        blocks = []
        for name, model, own in self._numbers(len(columns), frame.data):
            with says_which_block(name, own):
                blocks.append((name, model.for_frame(frame, columns[own]), own))
        return ColumnObservation(blocks)

    def _numbers(self, n_features, frame=None):
        """Triples of names, models and numbers of columns (D_b,), for data with ``n_features``."""
        blocks = []
        for name, model, columns in self._checked():
            try:
                blocks.append((name, model, column_numbers(columns, n_features, frame)))
            except ValueError as error:
                raise ValueError(f"Block {name!r}: {error}") from error
        taken = {}
        for (name, _, columns), (_, _, given) in zip(blocks, self.blocks, strict=True):
            if len(columns) == 0:
                raise ValueError(
                    f"Block {name!r} has no columns: columns={given!r} of n_features={n_features}; leave "
                    "it out, or give it columns."
                )
            for d in columns.tolist():
                if d in taken:
                    column = d if frame is None else frame.columns[d]
                    raise ValueError(
                        f"Column {column!r} is in block {taken[d]!r} and in block {name!r}; each column can "
                        "be in one block, once."
                    )
                taken[d] = name
        return blocks

    def used_columns(self, n_features: int) -> Any:
        """The columns (m,) that are in some block; see `ObservationModel.used_columns`."""
        return np.sort(np.concatenate([own for _, _, own in self._numbers(n_features)]))

    def bind(self, moments: Any, *, streaming: bool = False) -> Likelihood:
        """The likelihood for data with these moments; see `ObservationModel.bind`."""
        n_features, blocks = len(moments.mean), []
        for name, model, columns in self._numbers(n_features):
            with says_which_block(name, columns):
                likelihood = model.bind(_of_columns(moments, columns, model), streaming=streaming)
            blocks.append((name, likelihood, columns))
        return ColumnLikelihood(blocks, n_features)


def _are_triples(blocks):
    try:
        return all(len(block) == 3 and isinstance(block[0], str) for block in blocks)
    except TypeError:
        return False


def _model(observation, name=""):
    """An `ObservationModel` from a name or a model, of the block ``name``."""
    from . import OBSERVATIONS  # not at the top: it imports this module

    if isinstance(observation, ObservationModel):
        return observation
    if isinstance(observation, str) and observation in OBSERVATIONS:
        return OBSERVATIONS[observation]()
    advice = advice_on_observation(observation, OBSERVATIONS, ObservationModel)
    raise ValueError(
        f"Block {name!r} has observation={observation!r}, which is not known.{advice} Use one of "
        f"{sorted(OBSERVATIONS)} or an instance of one of the observation models."
    )


def _of_columns(moments, columns, model):
    """`Moments` of some columns, with the covariances that a model needs."""
    each = {name: v[columns] for name, v in moments._asdict().items() if getattr(v, "ndim", 0) == 1}
    if moments.increments is not None:
        each["increments"] = moments.increments.of_columns(columns)
    places = {int(d): i for i, d in enumerate(columns)}
    each["cells"] = tuple(
        cells._replace(column=places[cells.column])
        for cells in moments.cells
        if cells.column in places
    )
    if not model.needs_covariance:
        covariance = moments.variance[columns]
    else:
        covariance = moments.covariance[np.ix_(columns, columns)]
    return moments._replace(**{**each, "covariance": covariance})
