"""The steps to which columns were recorded: found in what returns, nothing in what does not."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from sklearn_bnp import ColumnObservation, DPMixtureVB, GaussianObservation, load
from sklearn_bnp.inputs.batches import Batch
from sklearn_bnp.inputs.moments import column_moments
from sklearn_bnp.inputs.resolution import recording
from sklearn_bnp.likelihood.cells import CellRows
from sklearn_bnp.likelihood.change_of_units import in_units_of
from sklearn_bnp.likelihood.full_gaussian_missing import IncompleteFullGaussian
from tests.estimators import blobs

from .rows import clouds

STEP = np.array([0.1, 1.0, 0.0])


def recorded(n=400, seed=0):
    """Rows of which two columns were rounded, to 0.1 and to 1."""
    x = np.random.default_rng(seed).normal(size=(n, 3)) * [1.0, 5.0, 1.0]
    return np.column_stack([np.round(x[:, 0], 1), np.round(x[:, 1]), x[:, 2]])


def recording_steps(x, weight=None):
    return recording(x, weight).steps


def kinds_of_rows():
    """Rows with columns that were rounded, with none, and with rows that return."""
    rng = np.random.default_rng(1)
    return {
        "rounded": recorded(),
        "continuous": rng.normal(size=(300, 3)),
        "copies": np.repeat(rng.normal(size=(60, 3)), 9, axis=0),
    }


@pytest.fixture(params=["rounded", "continuous", "copies"])
def x(request):
    return kinds_of_rows()[request.param]


def test_steps_of_rounded_columns():
    assert_allclose(recording_steps(recorded()), STEP, atol=1e-12)
    assert_allclose(recording_steps(recorded().astype(np.float32)), STEP, rtol=1e-5)
    assert_allclose(recording_steps(np.round(recorded()[:, 1:2]).astype(np.int64)), [1.0])


@pytest.mark.parametrize("n", [1, 2, 5, 30, 3000])
def test_continuous_columns_have_none(n):
    rng = np.random.default_rng(n)
    assert not recording_steps(rng.standard_t(2, size=(n, 4))).any()
    # nor have rows drawn with replacement from them, nor constant columns
    drawn = rng.normal(size=(n, 4))[rng.integers(n, size=n)] if n > 5 else np.ones((n, 4))
    assert not recording_steps(drawn).any()


def test_a_common_value_is_no_step():
    """Nine rows of ten are 0 and the others continuous: the values say nothing of a step."""
    rng = np.random.default_rng(2)
    x = rng.exponential(size=(5000, 1)) * (rng.random((5000, 1)) < 0.1)
    assert recording_steps(x)[0] < 0.01


def test_units(x):
    """Shifts and scales of columns; order of rows and of columns."""
    step = recording_steps(x)
    for scale in (1e-120, 2.0, 1e120):
        assert_allclose(recording_steps(scale * x), scale * step, rtol=1e-9)
    assert_allclose(recording_steps(x * [1e-3, 1.0, 1e5]), step * [1e-3, 1.0, 1e5], rtol=1e-9)
    assert_allclose(recording_steps(x + 50.0), step, rtol=1e-9, atol=1e-12)
    order = np.random.default_rng(3).permutation(len(x))
    assert_array_equal(recording_steps(x[order]), step)
    assert_allclose(recording_steps(x[:, ::-1]), step[::-1], rtol=1e-9)


def test_weights_are_repetitions(x):
    weight = np.random.default_rng(4).integers(0, 6, size=len(x))
    assert_allclose(
        recording_steps(x, weight.astype(float)),
        recording_steps(np.repeat(x, weight, axis=0)),
        rtol=1e-9,
    )


@pytest.mark.parametrize("n_features", [1, 2, 4])
def test_cells_of_a_lattice_are_its_steps(n_features):
    points = np.stack(np.meshgrid(*[np.arange(6.0)] * n_features), axis=-1).reshape(-1, n_features)
    assert_allclose(recording_steps(np.repeat(points, 5, axis=0)), np.ones(n_features))


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
@pytest.mark.parametrize("zero_mean", [False, True])
def test_the_ridge_in_the_units_of_the_data(covariance_type, zero_mean):
    """``reg_covar`` times the variance and ``step ** 2 / 12``; blurred columns have variance 1."""
    x = recorded()
    observation = GaussianObservation(covariance_type, zero_mean=zero_mean, reg_covar=0.01)
    likelihood = DPMixtureVB(observation=observation, max_iter=0).fit(x)._model.likelihood
    square = np.mean((x if zero_mean else x - x.mean(axis=0)) ** 2, axis=0)
    blurred = square * 1.01 + STEP**2 / 12
    if covariance_type == "spherical":
        square = np.full(3, np.exp(np.mean(np.log(square))))
    expected = 0.01 * square + STEP**2 / 12
    assert_allclose(likelihood.ridge * likelihood.scaling.scale**2, expected, rtol=1e-10)
    if covariance_type != "spherical":
        assert_allclose(likelihood.scaling.scale**2, blurred, rtol=1e-10)


def test_the_user_knows_better():
    x = recorded()
    given, found = (
        DPMixtureVB(observation=GaussianObservation(resolution=step), random_state=0).fit(x)
        for step in (STEP, "auto")
    )
    assert given.lower_bound_ == pytest.approx(found.lower_bound_, rel=1e-9)
    none, zero = (
        DPMixtureVB(observation=GaussianObservation(resolution=step), random_state=0)
        .fit(x)
        .lower_bound_
        for step in (None, 0.0)
    )
    assert none == zero
    for wrong in (-1.0, [1.0, 2.0], [1.0, -1.0, 0.0], "fine"):
        with pytest.raises(ValueError, match="resolution"):
            DPMixtureVB(observation=GaussianObservation(resolution=wrong)).fit(x)


def test_continuous_data_are_left_alone():
    x, _ = clouds(np.random.default_rng(5), 200)
    bounds = [
        DPMixtureVB(observation=GaussianObservation(resolution=step), random_state=0)
        .fit(x)
        .lower_bounds_
        for step in ("auto", None)
    ]
    assert bounds[0] == bounds[1]


@pytest.mark.parametrize("n_features", [1, 2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_tell_no_steps(n_features, dtype):
    """Neither if rows are there several times, nor if they have weights."""
    for n in (25, 300, 1000):
        rng = np.random.default_rng(n)
        x = rng.lognormal(size=(n, n_features)).astype(dtype)
        for weight in (np.full(n, 500.0), 50.0 * rng.lognormal(size=n)):
            assert not recording_steps(x, weight).any()
        drawn = x[rng.integers(n, size=5000)]
        assert not recording_steps(drawn).any()


@pytest.mark.parametrize("weight", [None, 1.0, 12.0])
@pytest.mark.parametrize("scale", [np.log1p, np.sqrt, np.square])
def test_steps_of_other_scales(scale, weight):
    """Whole numbers of a single column, on a scale of their own: none is a copy."""
    x = scale(np.random.default_rng(0).poisson(60.0, size=(1000, 1)).astype(float))
    step = recording_steps(x, None if weight is None else np.full(1000, weight))
    distances = np.diff(np.unique(x))
    assert distances.min() < step[0] < distances.max()


@pytest.mark.extended
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_rows_that_return_are_no_clusters(n_features):
    """Three clouds of 60 rows, five times each: once there was a component for each row."""
    rng = np.random.default_rng(6)
    centers = (
        12.0 * np.arange(3.0)[:, np.newaxis] if n_features == 1 else 12.0 * np.eye(3, n_features)
    )
    labels = np.repeat(np.arange(3), 60)
    x = centers[labels] + rng.normal(size=(180, n_features))
    model = DPMixtureVB(random_state=0).fit(np.repeat(x, 5, axis=0))
    weighted = DPMixtureVB(random_state=0).fit(x, sample_weight=5.0)
    assert model.n_components_ == weighted.n_components_ == 3
    assert model.score(x) < DPMixtureVB(random_state=0).fit(x).score(x) + 1.0


def test_whole_numbers():
    x, _ = blobs(600)
    model = DPMixtureVB(random_state=0).fit(np.round(x))
    assert model.n_components_ == 3
    assert np.all(model.covariances_[:, [0, 1], [0, 1]] > 1.0 / 12.0)


# ---------------------------------------------------------------------- cells of unequal widths


TRANSFORMS = {
    "log": np.log1p, "square root": np.sqrt, "Anscombe": lambda n: 2.0 * np.sqrt(n + 0.375),
    "square": np.square,
}  # fmt: skip


def counts(n=1500, n_features=3, seed=0):
    """Counts in three clusters, and the clusters."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    rates = np.exp(rng.uniform(0.0, 3.0, size=(3, n_features)))
    return rng.poisson(rates[labels]).astype(float), labels


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("n_features", [1, 3])
def test_cells_of_transformed_counts(name, n_features):
    """Cells are about as wide as what the transform makes of a step of one."""
    transform = TRANSFORMS[name]
    x, _ = counts(n_features=n_features)
    found = recording(transform(x)).cells
    assert [own.column for own in found] == list(range(n_features))
    for own in found:
        often = np.flatnonzero(np.bincount(x[:, own.column].astype(int)) > 2)
        k = often[(often > 1) & np.isin(often + 1, often) & np.isin(often - 1, often)]
        assert len(k) > 3
        at = np.searchsorted(own.values, transform(k) - 1e-9)
        assert_allclose(own.values[at], transform(k), rtol=1e-12)
        assert_allclose(own.widths[at], (transform(k + 1) - transform(k - 1)) / 2, rtol=0.01)
        assert own.widths.min() > 0
        mass = np.bincount(np.searchsorted(own.values, transform(x[:, own.column]) - 1e-9))
        assert_allclose(own.typical**2, mass @ own.widths**2 / len(x))


@pytest.mark.parametrize("scale", [1.0, 0.25, 1e-120, 1e100])
def test_even_and_continuous_columns_have_no_cells(scale, x):
    """Whole numbers, of which some do not occur; rounded, continuous and repeated rows."""
    rng = np.random.default_rng(3)
    for rows in (
        counts()[0],
        rng.poisson(1000.0, size=(800, 2)),
        rng.choice([1, 2, 3, 5], (90, 2)),
        x,
    ):
        assert recording(scale * rows).cells == ()
        assert recording(rows.astype(np.float32)).cells == ()


@pytest.mark.parametrize("n", [14, 20, 60])
def test_weights_of_continuous_rows_make_no_cells(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        rows = rng.normal(size=(n, 3))
        assert recording(rows, np.full(n, 5.0)).cells == ()


def test_units_of_cells():
    """Shifts and scales of columns, order of rows, weights that repeat them, and single precision."""
    x = np.log1p(counts()[0])
    cells = recording(x).cells
    weight = np.random.default_rng(1).integers(1, 4, size=len(x))
    alike = [
        (recording(1e-3 * x + 7.0), 1e-3, 7.0, 1e-8),
        (recording(x[::-1]), 1.0, 0.0, 1e-12),
        (recording(x.astype(np.float32)), 1.0, 0.0, 1e-4),
    ]
    for (_, found), factor, shift, rtol in alike:
        for one, other in zip(cells, found, strict=True):
            assert_allclose(factor * one.values + shift, other.values, rtol=rtol)
            assert_allclose(factor * one.widths, other.widths, rtol=rtol)
    weighted = recording(x, weight.astype(float)).cells
    for one, other in zip(weighted, recording(np.repeat(x, weight, axis=0)).cells, strict=True):
        assert_allclose(one.widths, other.widths)


def test_a_common_value_has_a_narrow_cell():
    """Zeros beside amounts that differ by little, far away from them."""
    rng = np.random.default_rng(2)
    x = np.round(np.exp(rng.normal(4.0, 0.3, size=(3000, 1)))) * (rng.random((3000, 1)) < 0.7)
    own = recording(np.column_stack([np.log1p(x), rng.normal(size=3000)])).cells[0]
    assert own.values[0] == 0.0
    assert own.widths[0] <= 2.5 * (own.values[2] - own.values[1])


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("linked", [False, True])
def test_the_bound_is_a_mean_over_cells(kind, linked):
    """The expected log likelihood of a row is that of rows that have the variances of its cells about it."""
    rng = np.random.default_rng(5)
    x = np.log1p(counts(400)[0])
    if linked:
        x = np.column_stack(
            [x, x[:, 0] - x[:, 1]]
        )  # internal axes are no columns, if covariances are full
    found = recording(x)
    moments = column_moments([Batch(0, x)], covariance=True)
    moments = moments._replace(step=found.steps / moments.magnitude, cells=found.cells)
    likelihood = GaussianObservation(kind).bind(moments)
    assert likelihood.scaling.is_rotated == (linked and kind == "full")
    z = likelihood.prepare(x)
    s = np.zeros((2, likelihood.n_statistics))
    likelihood.summarise(z, np.eye(2)[rng.integers(2, size=len(z))], s)
    coef = likelihood.coefficients(likelihood.prior, s)
    spread = np.zeros(x.shape)
    for own in found.cells:
        nearest = np.abs(own.values - x[:, [own.column]]).argmin(axis=1)
        spread[:, own.column] = own.widths[nearest] / np.sqrt(12.0)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=x.shape[1])))
    plain = likelihood.without_cells()
    each = [plain.log_table(coef, plain.prepare(x + sign * spread)) for sign in signs]
    assert_allclose(likelihood.log_table(coef, z), np.mean(each, axis=0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_missing_entries_have_no_cells(kind):
    """Complete rows have the same log weights, and rows with less entries the cells of these."""
    x, labels = counts(400)
    x = np.log1p(x)
    holes = np.random.default_rng(6).random(x.shape) < 0.2
    model = DPMixtureVB(
        observation=GaussianObservation(kind), max_iter=0, proposals=None,
        init_params=np.eye(3)[labels],
    ).fit(np.where(holes, np.nan, x))  # fmt: skip
    state = model._learner_
    likelihood, coef = state.model.likelihood, state.model.coefficients(state.totals)
    z = likelihood.prepare(np.where(holes, np.nan, x))
    variances = likelihood.blur.variances(z)
    assert_array_equal(variances == 0, holes)
    s, own = (np.zeros_like(state.totals.s) for _ in range(2))
    shares = model.predict_proba(np.where(holes, np.nan, x))
    likelihood.summarise(z, shares, s, coef=coef)
    super(CellRows, likelihood).summarise(z, shares, own, coef=coef)
    D = x.shape[1]
    at = {"full": [0, D, 2 * D - 1], "diag": [0, 1, 2], "spherical": [0, 0, 0]}[kind]
    expected = shares.T @ variances
    np.add.at(own, (slice(None), at), expected)
    assert_allclose(s, own)
    loss = likelihood.log_table(coef, z) - likelihood.blur.log_weights(coef, variances)
    narrow = likelihood.blur.log_weights(coef, variances) <= 0
    assert narrow.all()
    if kind == "full":
        assert_allclose(loss, IncompleteFullGaussian.log_table(likelihood, coef, z))


@pytest.mark.quarter
@pytest.mark.parametrize("name", ["log", "square root"])
def test_clusters_of_transformed_counts(name):
    """With one step for all values, there were 5 to 22 components on single values."""
    x, labels = counts(900, 6, seed=4)
    model = DPMixtureVB(random_state=0).fit(TRANSFORMS[name](x))
    assert model.n_components_ <= 4
    assert adjusted_rand_score(labels, model.labels_) > 0.9


def test_cells_of_blocks():
    """A block of columns has the cells that it would have alone."""
    x = np.column_stack([np.random.default_rng(1).poisson(3.0, 400), np.log1p(counts(400)[0])])
    alone = DPMixtureVB(max_iter=0).fit(x[:, [3, 1]])._model.likelihood
    blocks = [("others", "poisson", [0]), ("logs", GaussianObservation(), [3, 1])]
    block = DPMixtureVB(observation=ColumnObservation(blocks), max_iter=0).fit(x)._model.likelihood
    own = block.blocks[1].likelihood
    z = own.prepare(x[:, [3, 1]])
    assert_allclose(own.features(z), alone.features(z), rtol=1e-12)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("missing", [False, True])
def test_cells_are_saved(kind, missing, tmp_path):
    x = np.log1p(counts(300)[0])
    if missing:
        x[::7, 1] = np.nan
    model = DPMixtureVB(observation=GaussianObservation(kind), max_iter=0).fit(x)
    model.save(tmp_path / "model.bnp")
    again = load(tmp_path / "model.bnp")
    assert_array_equal(again.score_samples(x), model.score_samples(x))
    likelihood = again._model.likelihood
    assert_array_equal(
        likelihood.features(likelihood.prepare(x)),
        model._model.likelihood.features(likelihood.prepare(x)),
    )


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_statistics_in_other_cells(kind):
    """Statistics given to a likelihood without cells have the scatter that it finds, on average."""
    x = np.log1p(counts(300)[0])
    fits = [
        DPMixtureVB(observation=GaussianObservation(kind, resolution=h), max_iter=0).fit(x)
        for h in ("auto", None)
    ]
    cells, plain = (fit._model.likelihood for fit in fits)
    s, t = (fit._learner_.totals.s for fit in fits)
    assert isinstance(cells, CellRows)
    assert not isinstance(plain, CellRows)
    assert_allclose(in_units_of(cells, plain, s), t, rtol=1e-9, atol=1e-9)
    assert_allclose(in_units_of(plain, cells, t), s, rtol=1e-9, atol=1e-9)
