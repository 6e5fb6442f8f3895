"""When laps have gained so little that a fit may end."""

import pytest

from sklearn_bnp.engine.state import Lap
from sklearn_bnp.engine.stopping import laps_without, least_gain


def history(bounds, first=1):
    return [Lap(first + i, 3, bound, 0.0, 0.0, {}, {}) for i, bound in enumerate(bounds)]


@pytest.mark.parametrize(
    ("n", "expected"), [(1000, 0.05), (10_000, 1.0), (100_000, 100.0), (10**6, 1000.0)]
)
def test_small_data_end_by_nats_and_large_data_by_row(n, expected):
    assert least_gain(1e-3, n) == pytest.approx(expected)


def test_laps_count_from_the_last_chance_as_long_as_they_gain_little():
    laps = history([-90.0, -50.0, -49.5, -49.25, -49.0])
    assert laps_without(2.0, laps, last_chance=2) == 3
    assert laps_without(1.0, laps, last_chance=2) == 0  # they gained as much
    assert laps_without(2.0, laps, last_chance=1) == 0  # the lap after it gained more
    assert laps_without(2.0, laps, last_chance=5) == 0  # it has just been


def test_without_a_last_chance_none_counts():
    assert laps_without(2.0, history([-50.0, -50.0, -50.0]), last_chance=0) == 0


def test_a_stream_may_have_forgotten_the_lap_of_the_last_chance():
    assert laps_without(2.0, history([-50.0, -50.0], first=40), last_chance=10) == 0
