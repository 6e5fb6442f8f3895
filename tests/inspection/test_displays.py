"""Displays draw what the estimators say: data, colours and axes."""

import copy
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_bnp import (
    HDPHMMVB,
    ColumnObservation,
    DPMixtureVB,
    GaussianObservation,
    HDPTopicVB,
    MemoryBoundedTopicVB,
)
from sklearn_bnp.inspection import (
    ComponentsDisplay,
    ConvergenceDisplay,
    StatesDisplay,
    TopicsDisplay,
    pyldavis_data,
)
from sklearn_bnp.inspection.drawing import colours, repeated
from tests.estimators import FEW_PROPOSALS, blobs

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.patches import Ellipse  # noqa: E402

ROWS, _ = blobs(240, seed=1)
COUNTS = np.random.default_rng(0).poisson(np.where(np.arange(30)[:, None] % 2, [3, 0.2], [0.2, 3]))
WORDS = np.repeat(COUNTS, 4, axis=1)
NAMES = [f"w{i}" for i in range(WORDS.shape[1])]


@pytest.fixture(scope="module")
def mixture():
    return DPMixtureVB(random_state=0).fit(ROWS)


@pytest.fixture(scope="module")
def topics():
    return HDPTopicVB(random_state=0).fit(WORDS)


@pytest.fixture(scope="module")
def states():
    return HDPHMMVB(random_state=0).fit([ROWS[:150], ROWS[150:]])


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def test_history_is_drawn(mixture):
    display = ConvergenceDisplay.from_estimator(mixture, line_kw={"lw": 3})
    laps = mixture.history_
    np.testing.assert_array_equal(display.bound_line_.get_ydata(), [r.lower_bound for r in laps])
    np.testing.assert_array_equal(
        display.components_line_.get_ydata(), [r.n_components for r in laps]
    )
    born = [r.lap for r in laps if r.accepted.get("birth")]
    np.testing.assert_array_equal(display.marks_["birth"].get_xdata(), born)
    assert display.bound_line_.get_linewidth() == 3
    later = ConvergenceDisplay.from_estimator(mixture, first_lap=2)
    np.testing.assert_array_equal(later.laps, display.laps[1:])
    with pytest.raises(
        ValueError, match=r"first_lap=999 .* laps was \d+\. Give that number or less"
    ):
        ConvergenceDisplay.from_estimator(mixture, first_lap=999)


@pytest.mark.quarter
@pytest.mark.parametrize(
    "model",
    [DPMixtureVB(2, random_state=0), HDPTopicVB(2, random_state=0), HDPHMMVB(2, random_state=0)],
)
def test_streams_are_drawn_if_they_make_laps(model):
    data = WORDS if isinstance(model, HDPTopicVB) else ROWS
    lapping, stepping = clone(model), clone(model).set_params(learning_method="stochastic")
    for batch in np.array_split(data, 3):
        lapping.partial_fit(batch)
        stepping.partial_fit(batch)
    display = ConvergenceDisplay.from_estimator(lapping)
    np.testing.assert_array_equal(display.lower_bound, lapping.lower_bounds_)
    assert display.axes_[1].get_xlabel() == "lap"
    with pytest.raises(
        ValueError, match=r"has made no laps.*streams with learning_method='memoized'"
    ):
        ConvergenceDisplay.from_estimator(stepping)


def test_history_that_was_deleted():
    model = MemoryBoundedTopicVB(2000).fit(ROWS, groups=np.arange(len(ROWS)) // 20)
    del model.history_
    with pytest.raises(ValueError, match="This MemoryBoundedTopicVB has no history_ any more"):
        ConvergenceDisplay.from_estimator(model)


def test_history_of_other_estimators():
    for other in (GaussianMixture(2), make_pipeline(StandardScaler(), DPMixtureVB(random_state=0))):
        with pytest.raises(
            TypeError, match=f"{type(other).__name__} keeps no history: give a fitted"
        ):
            ConvergenceDisplay.from_estimator(other.fit(ROWS))
        with pytest.raises(NotFittedError):
            ConvergenceDisplay.from_estimator(clone(other))


def test_a_kind_of_change_has_one_mark():
    """Whatever other kinds there are in the picture."""
    bound, one = [-3.0, -2.0, -1.0], [0, 1, 0]
    alone = ConvergenceDisplay([1, 2, 3], bound, [1, 2, 2], {"merge": one}).plot()
    other = {"birth": [1, 0, 0], "merge": one, "own": [0, 0, 1]}
    among = ConvergenceDisplay([1, 2, 3], bound, [1, 2, 2], other).plot()
    looks = [(m.get_marker(), m.get_color()) for m in among.marks_.values()]
    assert len(set(looks)) == 3
    merge = alone.marks_["merge"]
    assert (merge.get_marker(), merge.get_color()) == looks[1]


def test_epochs_are_drawn():
    model = MemoryBoundedTopicVB()
    groups = np.repeat(np.arange(12), 20)
    for _ in range(2):
        model.partial_fit(ROWS, groups=groups)
    display = ConvergenceDisplay.from_estimator(model)
    assert display.axes_[1].get_xlabel() == "epoch"
    np.testing.assert_array_equal(display.laps, [1, 2])


@pytest.mark.quarter
@pytest.mark.parametrize("features", ["pca", [2, 0]])
@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_ellipses_are_the_covariances(covariance_type, features):
    """Points at two standard deviations lie on the ellipse, whatever the plane and the shape."""
    model = DPMixtureVB(observation=GaussianObservation(covariance_type), random_state=0).fit(ROWS)
    display = ComponentsDisplay.from_estimator(model, ROWS, features=features, n_std=2.0)
    assert len(display.ellipses_) == model.n_components_
    assert all(isinstance(ellipse, Ellipse) for ellipse in display.ellipses_)
    for k, ellipse in enumerate(display.ellipses_):
        circle = np.column_stack([np.cos([0.3, 2.0]), np.sin([0.3, 2.0])])
        on_it = display.means[k] + 2.0 * circle @ np.linalg.cholesky(display.covariances[k]).T
        inverse = ellipse.get_patch_transform().inverted()
        np.testing.assert_allclose(np.linalg.norm(inverse.transform(on_it), axis=1), 1.0)
    if features != "pca":
        np.testing.assert_array_equal(display.points, ROWS[:, features])
        np.testing.assert_allclose(display.means, model.means_[:, features])


def test_the_plane_of_principal_components_shows_most():
    """Means of rows and of components stay together, and no unit of a column matters."""
    scaled = ROWS * [1.0, 1e4, 1e-3]
    displays = [
        ComponentsDisplay.from_estimator(DPMixtureVB(random_state=0).fit(X), X)
        for X in (ROWS, scaled)
    ]
    first, second = displays
    np.testing.assert_allclose(first.points, second.points, atol=1e-6)
    np.testing.assert_allclose(first.means, second.means, atol=1e-3)
    for k in range(len(first.means)):
        mine = first.points[first.labels == k]
        np.testing.assert_allclose(mine.mean(axis=0), first.means[k], atol=0.3)


def test_rows_have_the_colour_of_their_component(mixture):
    display = ComponentsDisplay.from_estimator(mixture, ROWS)
    colours = display.scatter_.get_facecolors()[:, :3]
    bars = np.array([bar.get_facecolor()[:3] for bar in display.bars_])
    np.testing.assert_allclose(colours, bars[mixture.predict(ROWS)])
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], mixture.weights_)


def test_few_of_many_rows_are_drawn(mixture):
    display = ComponentsDisplay.from_estimator(mixture, ROWS, max_points=50)
    assert display.points.shape == (50, 2)
    again = ComponentsDisplay.from_estimator(mixture, ROWS, max_points=50)
    np.testing.assert_array_equal(display.points, again.points)


def test_frames_and_missing_values():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["length", "width", "height"])
    frame.iloc[3, 1] = np.nan
    model = DPMixtureVB(random_state=0).fit(frame)
    display = ComponentsDisplay.from_estimator(model, frame, features=["height", "width"])
    assert display.axis_names == ("height", "width")
    assert np.isnan(display.points).sum() == 1
    assert np.isfinite(ComponentsDisplay.from_estimator(model, frame).points).all()


def test_states_of_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["length", "width", "height"])
    model = HDPHMMVB(proposals=None).fit(frame)
    display = StatesDisplay.from_estimator(model, frame, lengths=[150, 90], kind="sequence")
    assert display.feature_names == list(frame.columns)
    assert [len(path) for path in display.paths] == [150, 90]


def test_likelihoods_without_covariances_have_no_ellipses():
    model = DPMixtureVB(observation="poisson", random_state=0).fit(WORDS)
    display = ComponentsDisplay.from_estimator(model, WORDS)
    assert display.ellipses_ == [] and len(display.points) == len(WORDS)


@pytest.mark.parametrize("features", ["umap", [0], [0, 3], ["length", 1], 7])
def test_planes_that_there_are_not(mixture, features):
    with pytest.raises(ValueError, match=r"features=.* must be 'pca', or two columns"):
        ComponentsDisplay.from_estimator(mixture, ROWS, features=features)


def test_what_has_no_components(topics, mixture):
    with pytest.raises(ValueError, match="TopicsDisplay is for topics"):
        ComponentsDisplay.from_estimator(topics, WORDS)
    with pytest.raises(ValueError, match="ComponentsDisplay is for rows"):
        StatesDisplay.from_estimator(mixture, ROWS)


def test_topics_are_bars(topics):
    display = TopicsDisplay.from_estimator(topics, NAMES, n_words=3, relevance=1.0)
    assert display.words == np.array(topics.top_words(NAMES, n=3))[display.topics].tolist()
    phi = topics.components_ / topics.components_.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        [[bar.get_width() for bar in bars] for bars in display.bars_],
        np.sort(phi, axis=1)[display.topics, :-4:-1],
    )
    np.testing.assert_array_equal(display.topics, np.arange(topics.n_components_))
    titles = [panel.get_title() for panel in display.axes_]
    for title, words, share in zip(titles, display.words, display.weights, strict=True):
        k = int(title.removeprefix("topic ").partition(":")[0])
        assert words == topics.top_words(NAMES, n=3)[k]
        assert title.endswith(f": {share:.1%}")
    assert [tick.get_text() for tick in display.axes_[0].get_yticklabels()] == display.words[0]
    few = TopicsDisplay.from_estimator(topics, NAMES, n_topics=1)
    assert len(few.axes_) == 1
    with pytest.raises(ValueError, match="relevance=2"):
        TopicsDisplay.from_estimator(topics, NAMES, relevance=2)
    with pytest.raises(ValueError, match="one name"):
        TopicsDisplay.from_estimator(topics, NAMES[:-1])


def test_the_largest_topics_keep_their_numbers_and_order(topics):
    """Also where the shares of the corpus are in another order than the weights."""
    other = copy.copy(topics)
    other.components_ = topics.components_ * (1.0 + np.arange(topics.n_components_))[:, np.newaxis]
    display = TopicsDisplay.from_estimator(other, NAMES)
    last = topics.n_components_ - 1
    assert last > 0 and display.weights[last] > display.weights[0]
    assert [panel.get_title().partition(":")[0] for panel in display.axes_] == [
        f"topic {k}" for k in range(last + 1)
    ]
    few = TopicsDisplay.from_estimator(other, NAMES, n_topics=1)
    assert few.axes_[0].get_title().startswith(f"topic {last}:")


def test_relevant_words_tell_topics_apart():
    """A word that is everywhere comes first by probability, and later by relevance."""
    everywhere = np.column_stack([np.full(30, 9), WORDS])
    model = HDPTopicVB(n_components=2, random_state=0, proposals=None).fit(everywhere)
    names = ["the", *NAMES]
    by_probability = TopicsDisplay.from_estimator(model, names, relevance=1.0)
    by_lift = TopicsDisplay.from_estimator(model, names, relevance=0.0)
    assert any(words[0] == "the" for words in by_probability.words)
    assert all(words[0] != "the" for words in by_lift.words)


def test_data_for_pyldavis(topics):
    sparse = pytest.importorskip("scipy.sparse")
    X = sparse.csr_array(np.vstack([WORDS, np.zeros((1, WORDS.shape[1]), dtype=int)]))
    data = pyldavis_data(topics, X, NAMES)
    np.testing.assert_allclose(data["topic_term_dists"].sum(axis=1), 1.0)
    np.testing.assert_allclose(data["doc_topic_dists"].sum(axis=1), 1.0)
    assert len(data["doc_lengths"]) == len(data["doc_topic_dists"]) == (WORDS.sum(axis=1) > 0).sum()
    np.testing.assert_array_equal(data["term_frequency"], WORDS.sum(axis=0))
    assert data["sort_topics"] is False  # pyLDAvis would give them other numbers


def test_states_over_time(states):
    sequences = [ROWS[:150], ROWS[150:]]
    display = StatesDisplay.from_estimator(states, sequences)
    assert list(display.axes_) == ["sequence", "rugs", "transitions", "durations"]
    paths = states.predict(sequences)
    assert sum(map(np.sum, display.durations())) == len(ROWS)
    np.testing.assert_array_equal(display.matrix_.get_array(), states.transmat_)
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), ROWS[:150, 1])
    changes = int((paths[0][1:] != paths[0][:-1]).sum())
    assert len(display.spans_) == changes + 1
    strips = display.image_.get_array()
    assert strips.shape[:2] == (2, 150)
    np.testing.assert_array_equal(strips[1, 90:], 1.0)  # nothing there
    same = StatesDisplay.from_estimator(states, ROWS, lengths=[150, 90], kind="rugs")
    np.testing.assert_array_equal(same.image_.get_array(), strips)
    with pytest.raises(ValueError, match=r"kind='pie' must be among sequence, rugs"):
        StatesDisplay.from_estimator(states, ROWS, kind="pie")


def test_axes_of_ones_own(mixture, topics):
    figure, axes = plt.subplots(2, 2)
    one = ComponentsDisplay.from_estimator(mixture, ROWS, ax=axes[0])
    assert one.axes_[0] is axes[0, 0] and one.figure_ is figure
    two = ConvergenceDisplay.from_estimator(mixture, ax=axes[1, 0])
    assert two.figure_ is figure and len(two.axes_) == 2
    three = TopicsDisplay.from_estimator(topics, NAMES, n_topics=1, ax=axes[1, 1])
    assert three.axes_[0] is axes[1, 1]  # nothing to divide
    with pytest.raises(ValueError, match="ax has 3 axes; give 2"):
        ConvergenceDisplay.from_estimator(mixture, ax=list(axes.ravel()[:3]))
    assert TopicsDisplay.from_estimator(topics, NAMES, ax=axes[1, 1]).figure_ is figure


def test_a_name_has_one_colour():
    """Thirty names are told apart as well as the first ten are, whatever others there are."""
    palette = colours(range(30))
    lab = _oklab(palette[:, :3])
    distances = np.linalg.norm(lab[:, np.newaxis] - lab, axis=2) + np.eye(30)
    assert distances.min() == distances[:10, :10].min() > 0.11
    for names in (range(3), [7, 3, 29], [12]):
        np.testing.assert_array_equal(colours(names), palette[list(names)])
    np.testing.assert_array_equal(colours([31, 60]), palette[[1, 0]])
    assert repeated(range(30)) == "" != repeated(range(31))
    assert repeated([4, 34]) == " (some share a colour)" and repeated([100, 104]) == ""


def _oklab(rgb):
    """Colours in OKLab (B. Ottosson, 2020), where distances are those that one sees."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    opponents = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.cbrt(linear @ np.transpose(cones)) @ np.transpose(opponents)


def test_names_that_last():
    """Positions follow the weights, which change in a stream; lasting names keep rows and colours."""
    model = DPMixtureVB(random_state=0)
    shades, rng = [], np.random.default_rng(0)
    for share in (0.8, 0.2):
        right = rng.random(200) < share
        X = np.where(right[:, np.newaxis], 9.0, -9.0) + rng.normal(size=(200, 2))
        model.partial_fit(X, batch_id="the only one")
        display = ComponentsDisplay.from_estimator(model, X, lasting_names=True)
        ticks = [int(tick.get_text()) for tick in display.axes_[1].get_yticklabels()]
        assert ticks == model.component_ids_.tolist() == list(display.names)
        point = tuple(display.scatter_.get_facecolors()[np.argmax(right), :3])
        shades.append(
            (point, {n: b.get_facecolor() for n, b in zip(ticks, display.bars_, strict=True)})
        )
    assert model.n_components_ == 2 and shades[0] == shades[1]
    assert list(shades[0][1]) != list(shades[1][1]), "positions have changed"


def test_names_of_states_and_topics(states, topics):
    display = StatesDisplay.from_estimator(states, ROWS, lasting_names=True)
    names = [str(name) for name in states.component_ids_]
    for panel in ("transitions", "durations"):
        ticks = display.axes_[panel].get_xticklabels()
        assert [tick.get_text() for tick in ticks] == names
    titles = TopicsDisplay.from_estimator(topics, NAMES, lasting_names=True).axes_
    shown = [panel.get_title().partition(":")[0] for panel in titles]
    assert shown == [f"topic {topics.component_ids_[k]}" for k in range(topics.n_components_)]


def test_ellipses_say_what_they_are(mixture):
    labels = mixture.predict(ROWS)
    display = ComponentsDisplay.from_estimator(mixture, ROWS[labels > 0])
    assert [ellipse.get_linestyle() for ellipse in display.ellipses_][:2] == ["--", "-"]
    legend = display.axes_[0].get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["no row drawn", "2 std"]


def test_a_key_says_which_colour_is_which_state(states):
    display = StatesDisplay.from_estimator(states, [ROWS[:150], ROWS[150:]], kind="rugs")
    key = display.image_.axes.figure.axes[-1]
    assert key.get_ylabel() == "state"
    assert [tick.get_text() for tick in key.get_yticklabels()] == [
        str(k) for k in range(states.n_components_)
    ]


@pytest.mark.extended
def test_without_matplotlib():
    """The package and the Displays are imported without it; drawing says what to install."""
    code = """
import sys
sys.modules["matplotlib"] = None
import numpy as np
from sklearn_bnp import DPMixtureVB
from sklearn_bnp.inspection import ConvergenceDisplay
model = DPMixtureVB(random_state=0).fit(np.arange(40.0).reshape(20, 2))
try:
    ConvergenceDisplay.from_estimator(model)
except ImportError as error:
    assert "ConvergenceDisplay.plot needs matplotlib" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def mixed_frame():
    """A frame with two columns of numbers, one of categories, and names of rows; its model; and labels."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    frame = pandas.DataFrame(
        {
            "id": [f"u{i}" for i in range(300)],
            "age": rng.normal(20.0 * labels, 4.0),
            "plan": np.array(["basic", "free", "gold"])[labels],
            "inc": rng.normal(5.0 * labels),
            "visits": rng.poisson(2 + 4 * labels),
        }
    )
    frame.loc[5, "age"] = np.nan
    blocks = [
        ("n", "gaussian", ["inc", "age"]),
        ("p", "categorical", ["plan"]),
        ("v", "poisson", ["visits"]),
    ]
    return frame, DPMixtureVB(observation=ColumnObservation(blocks), random_state=0).fit(frame)


@pytest.mark.extended
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_mixed_frames_are_drawn(library):
    """Texts and categories beside the plane are left alone; in the plane they are an error."""
    frame, model = mixed_frame()
    given = frame
    if library == "polars":
        given = pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    display = ComponentsDisplay.from_estimator(model, given, features=["age", "inc"])
    np.testing.assert_array_equal(display.points, frame[["age", "inc"]].to_numpy())
    np.testing.assert_array_equal(display.means, model.means_[:, [1, 3]])
    swapped = model.blocks_["n"]["covariances_"][:, ::-1, ::-1]
    np.testing.assert_array_equal(display.covariances, swapped)
    assert len(display.ellipses_) == model.n_components_
    by_position = ComponentsDisplay.from_estimator(model, given, features=[1, -2])
    np.testing.assert_array_equal(by_position.points, display.points)
    counts = ComponentsDisplay.from_estimator(model, given, features=["age", "visits"])
    assert counts.ellipses_ == [] and counts.axis_names == ("age", "visits")
    whole = ComponentsDisplay.from_estimator(model, given)  # the three columns of numbers
    assert whole.axis_names[0] == "principal component 1" and np.isfinite(whole.points).all()
    with pytest.raises(ValueError, match=r"column 'plan' was fitted as categories.*'age', 'inc'"):
        ComponentsDisplay.from_estimator(model, given, features=["age", "plan"])
    with pytest.raises(ValueError, match=r"Column 'id' of X .* holds 'u0'"):
        ComponentsDisplay.from_estimator(model, given, features=["id", "inc"])


def test_columns_of_categories_are_not_drawn():
    codes = np.random.default_rng(0).integers(3, size=(60, 3)).astype(float)
    model = DPMixtureVB(observation="categorical", random_state=0).fit(codes)
    with pytest.raises(ValueError, match="3 columns, of which the model takes 0 for numbers"):
        ComponentsDisplay.from_estimator(model, codes)
    with pytest.raises(ValueError, match="column 1 was fitted as categories"):
        ComponentsDisplay.from_estimator(model, codes, features=[1, 2])


def test_ellipses_of_blocks_are_those_of_the_whole():
    """Blocks are independent: the covariances of both are side by side."""
    observation = GaussianObservation("diag")
    blocks = ColumnObservation([("a", observation, [2, 0]), ("b", observation, [1])])
    model = DPMixtureVB(observation=blocks, proposals=FEW_PROPOSALS, random_state=0).fit(ROWS)
    shown = ComponentsDisplay.from_estimator(model, ROWS, features=[1, 2])
    expected = np.zeros_like(shown.covariances)
    expected[:, 0, 0] = model.blocks_["b"]["covariances_"][:, 0]
    expected[:, 1, 1] = model.blocks_["a"]["covariances_"][:, 0]
    np.testing.assert_array_equal(shown.covariances, expected)
    assert len(ComponentsDisplay.from_estimator(model, ROWS).ellipses_) == model.n_components_


GROUPS = np.arange(len(ROWS)) % 12


# Displays read covariances without heed of the kind of model: each of both is met.
@pytest.mark.parametrize(
    ("kind", "covariance_type"),
    [
        (HDPTopicVB, "full"),
        (HDPTopicVB, "spherical"),
        (MemoryBoundedTopicVB, "diag"),
        *(
            pytest.param(*both, marks=pytest.mark.extended)
            for both in (
                (HDPTopicVB, "diag"),
                (MemoryBoundedTopicVB, "full"),
                (MemoryBoundedTopicVB, "spherical"),
            )
        ),
    ],
)
def test_topics_of_rows_are_components(kind, covariance_type):
    model = kind(observation=GaussianObservation(covariance_type)).fit(ROWS, groups=GROUPS)
    display = ComponentsDisplay.from_estimator(model, ROWS, groups=GROUPS, features=[2, 0])
    np.testing.assert_array_equal(display.labels, model.predict(ROWS, groups=GROUPS))
    np.testing.assert_array_equal(display.weights, model.topic_probs_)
    np.testing.assert_array_equal(display.means, model.means_[:, [2, 0]])
    assert len(display.ellipses_) == model.n_components_ > 1
    plane = ComponentsDisplay.from_estimator(model, ROWS, groups=GROUPS)
    assert len(plane.ellipses_) == model.n_components_
    with pytest.raises(ValueError, match="groups=None"):
        ComponentsDisplay.from_estimator(model, ROWS)


def test_lasting_names_that_there_are_not():
    model = MemoryBoundedTopicVB().fit(ROWS, groups=GROUPS)
    with pytest.raises(ValueError, match="lasting_names=True, but components of MemoryBounded"):
        ComponentsDisplay.from_estimator(model, ROWS, groups=GROUPS, lasting_names=True)


def test_all_forms_of_rows_are_drawn(mixture, states):
    """Lists, arrays, sparse rows, and sequences in their three forms."""
    shown = ComponentsDisplay.from_estimator(mixture, ROWS)
    same = ComponentsDisplay.from_estimator(mixture, ROWS.tolist())
    np.testing.assert_array_equal(same.points, shown.points)
    sparse = pytest.importorskip("scipy.sparse")
    counts = DPMixtureVB(observation="poisson", random_state=0).fit(WORDS)
    shown = ComponentsDisplay.from_estimator(counts, WORDS)
    same = ComponentsDisplay.from_estimator(counts, sparse.csr_array(WORDS))
    np.testing.assert_allclose(same.points, shown.points, atol=1e-12)
    shown = ComponentsDisplay.from_estimator(states, [ROWS[:150], ROWS[150:]])
    number = (np.arange(len(ROWS)) >= 150).astype(int)
    for given in ({"lengths": [150, 90]}, {"groups": number}):
        same = ComponentsDisplay.from_estimator(states, ROWS, **given)
        np.testing.assert_array_equal(same.points, shown.points)
        np.testing.assert_array_equal(same.labels, shown.labels)


def test_words_without_names(topics):
    """They have the names that `top_words` gives them."""
    display = TopicsDisplay.from_estimator(topics, n_words=3, relevance=1.0)
    assert display.words == np.array(topics.top_words(n=3))[display.topics].tolist()
    np.testing.assert_array_equal(
        pyldavis_data(topics, WORDS)["vocab"], [f"x{i}" for i in range(WORDS.shape[1])]
    )


def test_data_for_pyldavis_of_all_forms(topics):
    """Lists, frames, sparse and dense arrays, with whole numbers and with others."""
    pandas, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    padded = np.vstack([WORDS, np.zeros((1, WORDS.shape[1]), dtype=int)])
    expected = pyldavis_data(topics, padded, NAMES)
    np.testing.assert_array_equal(expected["doc_lengths"], padded.sum(axis=1)[padded.any(axis=1)])
    assert expected["doc_lengths"].dtype.kind == "i"
    floats = padded.astype(float)
    for given in (padded.tolist(), pandas.DataFrame(padded), sparse.coo_matrix(padded), floats):
        data = pyldavis_data(topics, given, NAMES)
        for name, value in expected.items():
            np.testing.assert_array_equal(data[name], value)


def test_displays_of_topics_point_at_each_other_no_more():
    model = HDPTopicVB(observation="gaussian", random_state=0).fit(ROWS, groups=GROUPS)
    with pytest.raises(ValueError, match=r"topics are of rows.*ComponentsDisplay"):
        TopicsDisplay.from_estimator(model)
    with pytest.raises(TypeError, match=r"no topics of words.*ComponentsDisplay .* topics of rows"):
        TopicsDisplay.from_estimator(MemoryBoundedTopicVB().fit(ROWS, groups=GROUPS))


def test_states_of_sequences_in_all_forms(states):
    """A list, ``lengths``, ``groups`` with rows of both sequences among each other, and lists of lists."""
    shown = StatesDisplay.from_estimator(states, [ROWS[:150], ROWS[150:]])
    number = np.repeat(["a", "b"], [150, 90])
    mixed = np.sort(np.random.default_rng(0).permutation(len(ROWS))[:150])
    place = np.empty(len(ROWS), dtype=int)  # rows of a sequence keep their order
    place[:150], place[150:] = mixed, np.setdiff1d(np.arange(len(ROWS)), mixed)
    among, ids = np.empty_like(ROWS), np.empty(len(ROWS), dtype=number.dtype)
    among[place], ids[place] = ROWS, number
    forms = [
        (ROWS, {"lengths": [150, 90]}),
        (ROWS, {"groups": number}),
        (among, {"groups": ids}),
        ([ROWS[:150].tolist(), ROWS[150:].tolist()], {}),
    ]
    for X, given in forms:
        same = StatesDisplay.from_estimator(states, X, kind="rugs", **given)
        for one, other in zip(same.paths, shown.paths, strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(same.sequences, shown.sequences, strict=True):
            np.testing.assert_array_equal(one, other)
    single = StatesDisplay.from_estimator(states, ROWS.tolist(), kind="sequence")
    assert len(single.paths) == 1 and len(single.paths[0]) == len(ROWS)
    with pytest.raises(ValueError, match="lengths and groups are both given"):
        StatesDisplay.from_estimator(states, ROWS, lengths=[150, 90], groups=number)


def test_states_of_frames_with_texts():
    """Columns that hold no numbers are left out of the lines."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["length", "width", "height"])
    frame.insert(1, "kind", np.where(ROWS[:, 0] > 0, "up", "down"))
    blocks = [("n", "gaussian", ["length", "height"]), ("k", "categorical", ["kind"])]
    model = HDPHMMVB(observation=ColumnObservation(blocks), proposals=None).fit(frame)
    display = StatesDisplay.from_estimator(model, frame, kind="sequence")
    assert display.feature_names == ["length", "width", "height"]
    np.testing.assert_array_equal(display.lines_[2].get_ydata(), ROWS[:, 2])
    alone = HDPHMMVB(observation="categorical", proposals=None).fit(frame[["kind"]])
    assert StatesDisplay.from_estimator(alone, frame[["kind"]]).lines_ == []


def test_the_bound_of_growing_data_is_that_of_a_row():
    """Epochs of the same rows have about the same bound a row, whereas the bound of all falls with each."""
    model = MemoryBoundedTopicVB()
    for epoch in range(4):
        model.partial_fit(ROWS, groups=GROUPS, sample_weight=np.full(len(ROWS), 1.5))
        assert model.history_[epoch].n_rows == model.n_rows_ == 360 * (epoch + 1)
    display = ConvergenceDisplay.from_estimator(model)
    bounds = np.array([entry.lower_bound for entry in model.history_])
    np.testing.assert_allclose(display.bound_line_.get_ydata(), bounds / (360 * np.arange(1, 5)))
    assert np.all(np.diff(bounds) < 0) and display.lower_bound[-1] > display.lower_bound[0]
    assert display.axes_[0].get_ylabel() == "bound on the evidence (nats a row)"
    model.history_ = [entry._replace(n_rows=0) for entry in model.history_]  # as of an older file
    older = ConvergenceDisplay.from_estimator(model)
    np.testing.assert_array_equal(older.lower_bound, bounds)
    assert older.axes_[0].get_ylabel() == "bound on the evidence (nats)"


def test_the_legend_covers_no_mark():
    kinds = {
        kind: np.ones(12, dtype=int) for kind in ("birth", "merge", "delete", "split", "regroup")
    }
    for bound in (np.arange(12.0), -np.arange(12.0)):
        display = ConvergenceDisplay(np.arange(12), bound, np.arange(12), kinds).plot()
        display.figure_.canvas.draw()
        box = display.axes_[0].get_legend().get_window_extent()
        for mark in display.marks_.values():
            shown = mark.get_transform().transform(mark.get_xydata())
            assert not any(box.contains(*point) for point in shown)
        assert box.x1 <= display.figure_.bbox.x1
