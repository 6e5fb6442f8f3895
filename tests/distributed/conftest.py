"""Clusters of real processes for the tests of data in chunks."""

import warnings

import pytest


@pytest.fixture(scope="session")
def clusters():
    """Two clients, of clusters with one worker process and with two."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
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
