"""Visits that are not geometric: how they are noticed, parts by age, concentrations, what is found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_bnp import HDPHMMVB
from sklearn_bnp.hmm.nested_chain import NestedModel
from sklearn_bnp.hmm.nested_links import NestedSettings, Surroundings
from sklearn_bnp.hmm.searches import StateSearch
from sklearn_bnp.hmm.state_ages import parts_by_age, uneven_states, unevenness

from .test_state_exchanges import chain_of
from .test_state_oversplit import model_and_totals, search_of, toys

LENGTHS = np.array([1, 5, 2, 4])


def staged(n_visits=120, lasts=(5, 8), seed=0, distance=6.0):
    """A sequence in which each stage lasts a fixed number of rows, and the stage and age of each row."""
    rng = np.random.default_rng(seed)
    stage = np.tile(np.repeat(np.arange(len(lasts)), lasts), n_visits)
    age = np.tile(np.concatenate([np.arange(n) for n in lasts]), n_visits)
    return distance * stage[:, np.newaxis] + rng.normal(size=(len(stage), 1)), stage, age


# ---------------------------------------------------------------------- which visits are geometric


def is_uneven(lengths, ended=True):
    [found] = uneven_states(lengths, np.zeros(len(lengths), dtype=int), 1, ended)
    return bool(found)


def test_visits_that_the_end_of_a_sequence_cuts_have_not_ended():
    """Geometric visits of up to 30 rows on average, in sequences of 20 rows."""
    rng = np.random.default_rng(0)
    whole = rng.geometric(1 / 30, size=400)
    assert is_uneven(np.minimum(whole, 20))
    assert not is_uneven(np.minimum(whole, 20), whole <= 20)


@pytest.mark.parametrize("mean", [1.0, 1.5, 5.0, 40.0])
def test_geometric_visits_are_even(mean):
    """Most of the time: a chance of one or two in a hundred is allowed."""
    rng = np.random.default_rng(0)
    found = [is_uneven(rng.geometric(1.0 / mean, size=n)) for n in (3, 20, 100, 3000) * 100]
    assert np.count_nonzero(found) <= 16


def test_geometric_visits_to_many_states_are_even():
    rng, state = np.random.default_rng(0), np.repeat(np.arange(20), 40)
    found = [
        uneven_states(rng.geometric(rng.uniform(0.05, 0.9, 20)[state]), state, 20).any()
        for _ in range(200)
    ]
    assert np.count_nonzero(found) <= 16


@pytest.mark.parametrize(
    "lengths",
    [
        np.full(30, 5),
        np.random.default_rng(0).geometric(0.2, size=(3, 200)).sum(axis=0),
        np.random.default_rng(0).geometric(np.repeat([0.5, 0.02], 100)),
        np.random.default_rng(0).integers(8, 16, size=50),
    ],
    ids=["fixed", "phases", "two kinds", "between"],
)
def test_other_visits_are_not(lengths):
    assert is_uneven(lengths)
    # it is seen, and seen alone, among other states
    others = np.random.default_rng(1).geometric(0.2, size=(5, 40))
    state = np.repeat(np.arange(6), [len(lengths), *[40] * 5])
    found = uneven_states(np.concatenate([lengths, *others]), state, 6)
    assert found[0] and np.count_nonzero(found) <= 2


def test_few_visits_to_each_of_several_states_tell_it_together():
    rng, state = np.random.default_rng(0), np.repeat(np.arange(8), 25)
    lengths = rng.geometric(0.2, size=(2, 200)).sum(axis=0)
    alone = [is_uneven(lengths[state == k]) for k in range(8)]
    assert not all(alone)
    together = uneven_states(lengths, state, 8)
    assert np.count_nonzero(together) > np.count_nonzero(alone)


def test_weighted_visits_are_so_many_visits():
    rng = np.random.default_rng(0)
    lengths, weight = rng.geometric(0.3, size=60), rng.integers(1, 4, size=60)
    copies = np.repeat(lengths, weight)
    ended = lengths < 6
    found = unevenness(lengths, ended * weight.astype(float), weight.astype(float))
    assert found == pytest.approx(unevenness(copies, 1.0 * (copies < 6), np.ones(len(copies))))


def test_ages_that_are_all_alike_say_nothing():
    """Rounding may leave a little less than nothing."""
    assert not is_uneven(np.ones(50, dtype=int))
    for n in (5, 7, 30):
        lengths = np.repeat([1, 2, 3], n)
        assert unevenness(lengths, np.zeros(3 * n), np.ones(3 * n)) == (0.0, 1)


def test_one_visit_says_nothing():
    assert not is_uneven(np.array([1000]))
    assert unevenness(np.array([], dtype=int), np.array([]), np.array([])) == (0.0, 0)


# ---------------------------------------------------------------------- parts


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("passed", [0, 0, 0, 1, 1, 2, 0, 1, 0, 0, 1, 2]),
        ("before", [0, 0, 1, 2, 2, 2, 0, 1, 0, 1, 2, 2]),
        ("after", [0, 2, 2, 2, 1, 0, 1, 0, 2, 2, 1, 0]),
        ("length", [0, 2, 2, 2, 2, 2, 1, 1, 2, 2, 2, 2]),
    ],
)
def test_parts_of_visits(way, expected):
    found = parts_by_age(LENGTHS, 3, way)
    if way == "length":  # names do not matter, and quantiles are between lengths
        assert len(set(zip(found.tolist(), np.repeat(LENGTHS, LENGTHS).tolist(), strict=True))) == 4
        assert len(set(found.tolist())) == 3
    else:
        assert_array_equal(found, expected)


def test_states_of_geometric_visits_are_left_alone():
    """Of two stages, the one whose visits are geometric is not split by age."""
    rng, rows, labels = np.random.default_rng(0), [], []
    for _ in range(100):
        for stage, n in enumerate((6, rng.geometric(0.2))):
            rows.append(8.0 * stage + rng.normal(size=(n, 1)))
            labels.append(np.full(n, stage))
    labels = np.concatenate(labels)
    search = search_of([np.concatenate(rows)], labels)
    assert_array_equal(search._have_ages, [True, False])
    for _ in range(6):
        parts = search._parts(1.0, "ages")
        assert len(np.unique(parts[labels == 1])) == 1
    assert not toys_have_ages()


def toys_have_ages():
    rows, labels, _ = toys()
    return search_of(rows, labels)._have_ages.any()


# ---------------------------------------------------------------------- concentrations


def nested_of(labels, learned, J, *, stickiness=20.0):
    rows = [np.zeros((len(labels), 1))]
    model, _, sample = model_and_totals(rows, labels)
    settings = NestedSettings(1.5, stickiness, learned=learned)
    nested = NestedModel(model.likelihood, model.prior, sample, settings)
    return nested, nested.labelled(np.ones((J, model.likelihood.n_statistics)), labels).links


def test_slopes_of_concentrations():
    _, stage, age = staged(20)
    nested, links = nested_of(8 * stage + age, ("concentration", "stickiness"), 16)
    at, step = np.log([1.5, 20.0]), 1e-5 * np.eye(2)
    slopes = [(value(nested, links, at + d) - value(nested, links, at - d)) / 2e-5 for d in step]
    assert_allclose(nested.around._slopes(links), slopes, rtol=1e-6)


def value(nested, links, logs):
    """Evidence of links under concentrations with these logarithms."""
    settings = NestedSettings(*np.exp(logs).tolist())
    other = NestedModel(nested.likelihood, nested.prior, nested.sample, settings)
    return other.around.evidence(links)


@pytest.mark.parametrize(
    "learned", [(), ("concentration",), ("stickiness",), ("concentration", "stickiness")]
)
def test_concentrations_suit_the_links(learned):
    """No values within a factor of e^2 have a higher evidence; what is fixed stays as it is."""
    _, stage, age = staged(20)
    nested, links = nested_of(8 * stage + age, learned, 16)
    before = nested.around
    nested.learn(links)
    assert set(nested.around.concentrations) == set(learned)
    assert nested.learns == bool(learned)
    if not learned:
        assert nested.around is before
        return
    here, names = np.array([1.5, 20.0]), ("concentration", "stickiness")
    found = np.array([nested.around.alpha, nested.around.kappa])
    assert all(found[i] == here[i] for i in range(2) if names[i] not in learned)
    grid = [np.linspace(-2.0, 2.0, 33) if name in learned else [0.0] for name in names]
    moved = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
    best = max(value(nested, links, np.log(here) + one) for one in moved)
    assert nested.around.evidence(links) >= best - 1e-6
    assert nested.around.evidence(links) > before.evidence(links) + 0.5


@pytest.mark.parametrize("stickiness", [0.2, 2000.0, 50_000.0])
def test_concentrations_do_not_depend_on_where_learning_starts(stickiness):
    """States that last for one row may replace some that last for thousands."""
    _, stage, age = staged(20)
    names = ("concentration", "stickiness")
    (near, links), (far, _) = (
        nested_of(8 * stage + age, names, 16, stickiness=kappa) for kappa in (5.0, stickiness)
    )
    for nested in (near, far):
        nested.learn(links)
    assert near.around.kappa < 0.01
    assert far.around.evidence(links) == pytest.approx(near.around.evidence(links), abs=0.01)


def test_concentrations_move_little_where_rows_depend_on_rows_before():
    _, stage, age = staged(20)
    names = ("concentration", "stickiness")
    nested, links = nested_of(8 * stage + age, names, 16, stickiness=2000.0)
    settings = NestedSettings(1.5, 2000.0, learned=names)
    nested.around = Surroundings(settings, nested.sample, lags=1)
    nested.learn(links)
    assert nested.around.kappa == pytest.approx(2000.0 / 7.0)


def test_concentrations_of_some_states_stay():
    """Other states depend on them as well. If all are searched, they suit what was found."""
    rows, labels, _ = toys()
    model, totals, sample = model_and_totals(rows, labels)
    model = model._replace(learned=("concentration", "stickiness", "start_concentration"))
    every = NestedSettings.of(model, totals, [0, 1, 2, 3])
    assert every.learned == ("concentration", "stickiness")
    assert NestedSettings.of(model, totals, [0, 1]).learned == ()
    fixed = model._replace(learned=("start_concentration",))
    assert NestedSettings.of(fixed, totals, [0, 1, 2, 3]).learned == ()
    rng = np.random.RandomState(0)
    search = StateSearch(model, totals, [0, 1, 2, 3], sample, 3, 50, rng)
    assert set(search.concentrations) == {"concentration", "stickiness"}


def test_values_do_not_depend_on_what_was_learned_before():
    """Gains are measured from the same place, so those under other concentrations can be compared."""
    _, stage, age = staged(20)
    labels = 8 * stage + age
    nested, _ = nested_of(labels, ("concentration", "stickiness"), 16)
    chain = chain_of(nested, np.unique(labels, return_inverse=True)[1])
    chain = nested.pass_over(chain)
    before, bound = nested.gain(chain, nested.prior), nested.bound(chain)
    nested.learn(chain.links)
    rise = nested.bound(chain) - bound
    assert rise > 0 and nested.gain(chain, nested.prior) - before == pytest.approx(rise)


# ---------------------------------------------------------------------- what is found


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(2))
def test_states_of_one_row_take_the_place_of_long_ones(seed):
    """Two regimes of about 200 rows each have cycles of symbols of their own: births find two states."""
    rng, n = np.random.default_rng(seed), 1000
    regime = np.cumsum(rng.random(n) < 0.005) % 2
    symbols = np.array([[0, 0, 0, 1], [0, 1, 1, 1]])[regime, np.arange(n) % 4]
    x = np.where(rng.random(n) < 0.1, 1 - symbols, symbols)[:, np.newaxis]
    truth = np.eye(8)[4 * regime + np.arange(n) % 4]
    model = HDPHMMVB(observation="categorical", random_state=0).fit(x)
    told = HDPHMMVB(8, observation="categorical", init_params=truth, random_state=0).fit(x)
    assert model.n_components_ == 8
    assert model.lower_bound_ > told.lower_bound_ - 5.0
    assert model.stickiness_ < 5.0


@pytest.mark.extended
def test_a_search_by_ages_finds_them():
    """Two stages of five and eight rows are thirteen states; contexts of rows see no more than four."""
    x, stage, age = staged(120)
    model = HDPHMMVB(random_state=0).fit([x])
    truth = np.eye(13)[np.where(stage == 1, 5, 0) + age]
    told = HDPHMMVB(13, init_params=truth, proposals=None, random_state=0).fit([x])
    assert model.n_components_ == 13
    assert model.lower_bound_ > told.lower_bound_ - 1.0
