"""How many threads a call of a kernel is worth.

Design note
-----------
(a) Threads of a loop wait for each other at its end. Those of GCC's OpenMP spin meanwhile. If another program
    has the core of one of them, the others spin until it has run: then a call takes 5 to 30 ms, however
    short the loop is. Fits on samples make hundreds of calls of a quarter of a millisecond. A second thread
    without a core of its own made them many times slower.
(b) So each thread is given some work, and short loops have one thread. The functions below estimate how long
    a call takes one thread, in nanoseconds, and say how many threads it is worth. Their numbers were
    measured for double precision on a processor with AVX-512, and are right to a factor of two or three. No
    bit of any result depends on the number of threads, so no more is needed.
(c) Longer loops wait in the same way where cores are shared, unless the user sets the environment variable
    ``OMP_WAIT_POLICY=passive`` (doc/costs.rst). OpenMP reads it once for the whole process, of which a
    library is not the master.
"""

from __future__ import annotations

# Nanoseconds of work for each thread, at the least.
LEAST_WORK = 500_000


def threads_for(nanoseconds, n_threads):
    """Number of threads, ``n_threads`` at the most, for what takes one thread so long."""
    return max(1, min(n_threads, int(nanoseconds / LEAST_WORK)))


def threads_for_shares(n, n_components, n_products, n_threads):
    """Threads for the shares of ``n`` rows, each of which takes so many products for a component."""
    return threads_for(n * (60.0 + n_components * (1.0 + n_products / 16)), n_threads)


def threads_for_forward(n, n_states, n_threads):
    """Threads for the forward pass over ``n`` rows."""
    return threads_for(n * (15.0 + n_states * (1.0 + n_states / 30)), n_threads)


def threads_for_backward(n, n_states, n_threads):
    """Threads for the backward pass over ``n`` rows."""
    return threads_for(n * (30.0 + n_states * (2.0 + n_states / 12)), n_threads)


def threads_for_viterbi(n, n_states, n_threads):
    """Threads for the most probable paths of ``n`` rows."""
    return threads_for(n * n_states * (4.0 + n_states / 5), n_threads)


def threads_for_renaming(n, n_maps, n_threads):
    """Threads for the entropies of chains of ``n`` rows in which states are renamed in so many ways."""
    return threads_for(n * (50.0 + 20.0 * n_maps), n_threads)


def threads_for_unions(n, n_members, n_threads):
    """Threads for the entropies of unions that have so many members together, over ``n`` rows."""
    return threads_for(n * n_members, n_threads)


def threads_for_documents(n_entries, n_topics, n_threads):
    """Threads for the local step of documents with so many entries."""
    return threads_for(8.0 * n_entries * n_topics, n_threads)


def threads_for_collapsed_documents(n_entries, n_topics, n_threads):
    """Threads for the topics of new documents with so many entries."""
    return threads_for(30.0 * n_entries * n_topics, n_threads)
