"""Data in files are read batch by batch: every row once, in order, and never all at once."""

import pickle
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from sklearn_bnp import HDPHMMVB, DPMixtureVB, HDPTopicVB, open_batches
from tests.estimators import peak_memory

X = np.random.default_rng(0).normal(size=(1003, 3))


def npy(folder):
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def npy_by_columns(folder):
    np.save(folder / "rows.npy", np.asfortranarray(X))
    return str(folder / "rows.npy")


def memory_map(folder):
    rows = np.memmap(folder / "rows.dat", float, "w+", offset=24, shape=X.shape)
    rows[:] = X
    rows.flush()
    return rows


def opened_npy(folder):
    return np.load(npy(folder), mmap_mode="r")


def some_rows_of_a_map(folder):
    np.save(folder / "more.npy", np.concatenate([X[:5], X, X[:7]]))
    return np.load(folder / "more.npy", mmap_mode="r")[5:-7]


def hdf5_file(folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "rows.h5", "w") as file:
        file.create_dataset("deep/rows", data=X, chunks=(100, 3))
    return folder / "rows.h5"


def hdf5_dataset(folder):
    h5py = pytest.importorskip("h5py")
    return h5py.File(hdf5_file(folder), "r")["deep/rows"]


def zarr_array(folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.open(folder / "rows.zarr", mode="w", shape=X.shape, chunks=(100, 3), dtype=float)
    array[:] = X
    return array


def zarr_file(folder):
    zarr_array(folder)
    return folder / "rows.zarr"


def zarr_group(folder):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(folder / "group.zarr", mode="w")
    array = group.create_array("rows", shape=X.shape, chunks=(100, 3), dtype=float)
    array[:] = X
    return folder / "group.zarr"


def parquet(folder):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("pandas")
    table = pyarrow.table({name: X[:, d] for d, name in enumerate("abc")})
    parquet.write_table(table, folder / "rows.parquet", row_group_size=100)
    return folder / "rows.parquet"


def several_npy(folder):
    parts = np.split(X, [300, 301, 700])
    for i, rows in enumerate(parts):
        np.save(folder / f"part{i}.npy", rows)
    return [folder / f"part{i}.npy" for i in range(len(parts))]


KINDS = {
    npy: {}, npy_by_columns: {}, memory_map: {}, opened_npy: {}, some_rows_of_a_map: {},
    hdf5_file: {"name": "deep/rows"}, hdf5_dataset: {}, zarr_array: {}, zarr_file: {},
    zarr_group: {"name": "rows"}, parquet: {}, several_npy: {},
}  # fmt: skip
every_kind = pytest.mark.parametrize(
    ("write", "options"), list(KINDS.items()), ids=[kind.__name__ for kind in KINDS]
)


@every_kind
@pytest.mark.parametrize("batch_size", [None, 40, 250, 10_000])
def test_every_row_once(write, options, batch_size, tmp_path):
    batches = open_batches(write(tmp_path), batch_size=batch_size, **options)
    assert [batch.batch_id for batch in batches] == list(range(len(batches)))
    found = [np.asarray(batch.load()) for batch in batches]
    assert [len(rows) for rows in found] == [batch.n_rows for batch in batches]
    assert_array_equal(np.concatenate(found), X)
    if batch_size is not None:
        most = max(batch_size, 100) if write is parquet else batch_size
        assert max(batch.n_rows for batch in batches) <= most


@every_kind
def test_references_travel_without_rows(write, options, tmp_path):
    """They can be pickled, are small, and read the same rows on the other side."""
    batches = open_batches(write(tmp_path), batch_size=400, **options)
    packed = pickle.dumps(batches)
    assert len(packed) < X.nbytes / 2
    for one, other in zip(batches, pickle.loads(packed), strict=True):
        assert other.batch_id == one.batch_id
        assert_array_equal(np.asarray(other.load()), np.asarray(one.load()))


@pytest.mark.parametrize("write", [hdf5_dataset, zarr_array])
def test_storage_chunks_are_not_cut(write, tmp_path):
    """To read a part of a chunk, all of it would have to be unpacked."""
    source = write(tmp_path)
    edges = np.cumsum([batch.n_rows for batch in open_batches(source, batch_size=250)])
    assert np.all(edges[:-1] % 100 == 0)
    sizes = [batch.n_rows for batch in open_batches(source, batch_size=60)]
    assert max(sizes) <= 60  # smaller than a chunk


def test_archives(tmp_path):
    counts = sparse.random(20, 5, 0.3, format="csr", random_state=0)
    sparse.save_npz(tmp_path / "a.npz", counts)
    np.savez(tmp_path / "b.npz", X=X[:9], sample_weight=np.arange(9.0))
    one, two = open_batches([tmp_path / "a.npz", tmp_path / "b.npz"])
    assert (one.load() != counts).nnz == 0
    assert sorted(two.load()) == ["X", "sample_weight"] and one.n_rows is None
    model = HDPTopicVB(random_state=0, proposals=None).partial_fit(one.load(), batch_id=0)
    assert model.n_components_ == 1


def test_whole_sequences(tmp_path):
    lengths = np.array([3, 500, 100, 100, 200, 100])
    batches = open_batches(npy(tmp_path), batch_size=250, lengths=lengths)
    found = [batch.load() for batch in batches]
    assert [batch["lengths"].tolist() for batch in found] == [[3], [500], [100, 100], [200], [100]]
    assert_array_equal(np.concatenate([batch["X"] for batch in found]), X)
    model = HDPHMMVB(random_state=0, proposals=None)
    for batch in batches:
        model.partial_fit(**batch.load(), batch_id=batch.batch_id)
    assert model.n_components_ == 1


def test_columns_of_parquet(tmp_path):
    first, *_ = open_batches(parquet(tmp_path), columns=["c", "a"])
    frame = first.load()
    assert frame.columns.tolist() == ["c", "a"]
    assert_array_equal(frame["a"], X[:100, 0])


@pytest.mark.parametrize("index", [["c"], ["a", "c"], [None, "c"]])
def test_columns_that_were_saved_as_an_index(index, tmp_path):
    """They are columns if they are asked for by name, and others keep their types."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["k"] = pd.Series([1, None, 3] * 334 + [4], dtype="Int64")
    frame["s"] = pd.Categorical(["low", "high"] * 501 + ["low"])
    named = [name for name in index if name is not None]
    saved = frame.set_index(named, append=None in index)
    saved.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    batches = open_batches(tmp_path / "rows.parquet", columns=["s", "c", "k", "a"])
    found = pd.concat([batch.load() for batch in batches], ignore_index=True)
    pd.testing.assert_frame_equal(found, frame[["s", "c", "k", "a"]])


def test_epochs_over_files_are_memoized_inference(tmp_path):
    """The same fit as that on the rows in memory, bit for bit."""
    batches = open_batches(npy(tmp_path), batch_size=300)
    there, here = (DPMixtureVB(3, proposals=None, random_state=0) for _ in range(2))
    for _ in range(3):
        start = 0
        for batch in batches:
            there.partial_fit(batch.load(), batch_id=batch.batch_id)
            here.partial_fit(X[start : start + batch.n_rows], batch_id=batch.batch_id)
            start += batch.n_rows
    assert there.lower_bound_ == here.lower_bound_
    assert_array_equal(there.means_, here.means_)


@pytest.mark.extended
@pytest.mark.parametrize("write", [memory_map, hdf5_file])
def test_memory_is_that_of_a_batch(write, tmp_path, monkeypatch):
    """Epochs over a file of 32 MB take a few batches of 1 MB, and the pool of the latest 20,000 rows."""
    rows = np.random.default_rng(1).normal(size=(200_000, 20))
    monkeypatch.setattr(f"{__name__}.X", rows)
    source, options = write(tmp_path), KINDS[write]
    del rows
    batches = open_batches(source, batch_size=6_500, **options)
    model = DPMixtureVB(5, proposals=None, random_state=0)
    most = 0
    tracemalloc.start()
    try:
        for batch in batches:
            model.partial_fit(batch.load(), batch_id=batch.batch_id)
            most = max(most, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert len(batches) == 31
    assert most < 6e6 + 20_000 * 20 * 8


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_of_references_holds_no_more_than_batches(tmp_path):
    """A file six times as large takes no more memory, but for the bookkeeping of its chunks."""

    def peak(n_rows):
        np.save(tmp_path / "rows.npy", np.random.default_rng(1).normal(size=(n_rows, 20)))
        batches = open_batches(tmp_path / "rows.npy", batch_size=2_500)
        model = DPMixtureVB(2, proposals=None, max_iter=2, random_state=0)
        return peak_memory(lambda: model.fit(batches))

    peak(5_000)  # what a first fit imports is not counted
    short, long = peak(10_000), peak(60_000)
    assert long < 0.5 * 60_000 * 20 * 8
    assert long - short < 0.1 * 50_000 * 20 * 8


@pytest.mark.parametrize(
    ("source", "options", "told"),
    [
        ("none.npy", {}, "none.npy, which source names"),
        ("rows.txt", {}, "'.txt'"),
        ("rows.npy", {"name": "x"}, "name='x'"),
        ("rows.h5", {}, "name of a dataset in it by name="),
        ("rows.h5", {"name": "deep"}, "'deep/rows'"),
        ("rows.npy", {"batch_size": 0}, "batch_size=0"),
        ("rows.npy", {"lengths": [3, 4]}, "add up to 7"),
        ("rows.npy", {"lengths": [1003, 0]}, "lengths=[1003, 0] must be whole numbers, 1 or more"),
        ("flat.npy", {}, "two axes, rows and columns. Save array.reshape(-1, 1)"),
        ("rows.parquet", {"columns": ["a", "z"]}, "['z']; the columns of"),
        ("rows.parquet", {"columns": "a"}, "['a']"),
        ("rows.npy", {"columns": ["a"]}, "rows.npy is not one"),
        ("rows.npz", {"columns": ["X"]}, "parquet"),
        ("rows.h5", {"name": "deep/rows", "columns": [0]}, "columns=[0]"),
        ("rows.parquet", {"lengths": [1003]}, "leave lengths out for"),
        (["rows.npy"], {"lengths": [1003]}, "rows in one file"),
        ([], {}, "no rows; give files"),
    ],
)
def test_errors_name_the_remedy(source, options, told, tmp_path):
    (tmp_path / "rows.txt").write_text("")
    np.save(tmp_path / "flat.npy", X[:, 0])
    np.savez(tmp_path / "rows.npz", X=X)
    npy(tmp_path)
    for ending, write in ((".h5", hdf5_file), (".parquet", parquet)):
        if str(source).endswith(ending):
            write(tmp_path)
    several = isinstance(source, list)
    source = [tmp_path / one for one in source] if several else tmp_path / source
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        open_batches(source, **options)
    assert told in str(error.value)


def test_rows_in_memory_are_not_for_files(tmp_path):
    with pytest.raises(ValueError, match="rows in memory"):
        open_batches(X)
    with pytest.raises(ValueError, match="follow one another"):
        open_batches(memory_map(tmp_path)[::2])
    with pytest.raises(ValueError, match="neither a path nor an array"):
        open_batches(3)
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array):
        with pytest.raises(ValueError, match=r"fit as it is, or save it by scipy.sparse.save_npz"):
            open_batches(kind(X))


def test_an_array_has_no_need_of_a_name(tmp_path):
    arrays = [memory_map(tmp_path)]
    with suppress(ImportError):
        import zarr

        arrays.append(zarr.array(X))
    for source in (*arrays, arrays):
        with pytest.raises(ValueError, match=r"name='rows' .* leave name out"):
            open_batches(source, name="rows")


def test_changes_that_are_not_in_the_file(tmp_path):
    """A memory map that is copied on write shows rows that nobody else can read."""
    rows = np.load(npy(tmp_path), mmap_mode="c")
    rows -= 100
    for source in (rows, rows[5:], np.asarray(rows)):
        with pytest.raises(ValueError, match="mode 'c'"):
            open_batches(source)


def test_collections_are_for_fit():
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(100, 3))
    for source in (lazy, [lazy], dask.delayed(X)):
        with pytest.raises(ValueError, match="give it to fit as it is"):
            open_batches(source)
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X)
    for source in (frame, dd.from_pandas(frame, npartitions=2)):
        with pytest.raises(ValueError, match="give it to fit as it is"):
            open_batches(source)
