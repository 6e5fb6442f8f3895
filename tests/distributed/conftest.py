"""Clusters of real processes for the tests of data in chunks."""

import warnings

import pytest

# What a cluster notes of itself while it waits would take a fifth of a core, and nobody reads it here.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "200ms",
    "distributed.admin.system-monitor.interval": "5s",
}


@pytest.fixture(scope="package")
def clusters():
    """Two clients, of clusters with one worker process and with two; they end with these tests."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    with warnings.catch_warnings(), dask.config.set(QUIET):
        warnings.simplefilter("ignore")
        made = []
        for n_workers in (1, 2):
            cluster = distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
            )
            made.append(distributed.Client(cluster, set_as_default=False))
        yield made
        for client in made:
            client.close()
            client.cluster.close()
