"""Clusters of real processes for the tests of data in chunks."""

import warnings

import pytest

# What a cluster notes of itself while it waits would take a fifth of a core, and nobody reads it here.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "200ms",
    "distributed.admin.system-monitor.interval": "5s",
}


class Clusters:
    """Clients of clusters with one worker process and with two; each starts when it is first used."""

    def __init__(self, distributed):
        self._distributed, self._made = distributed, {}

    def __getitem__(self, i):
        """The client of the cluster with ``i + 1`` workers."""
        if i not in self._made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cluster = self._distributed.LocalCluster(
                    n_workers=(1, 2)[i],
                    threads_per_worker=1,
                    dashboard_address=":0",
                    silence_logs=50,
                )
                self._made[i] = self._distributed.Client(cluster, set_as_default=False)
        return self._made[i]

    def close(self):
        for client in self._made.values():
            client.close()
            client.cluster.close()


@pytest.fixture(scope="package")
def clusters():
    """Two clients, of clusters with one worker process and with two; they end with these tests."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    made = Clusters(distributed)
    with dask.config.set(QUIET):
        yield made
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.close()
