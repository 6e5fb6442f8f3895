"""Benchmarks and studies; ``python -m tests.benchmarks.<script> --help`` says what each measures.

They are run by hand, never by pytest: speed is measured beside a peer in one run, not tested. Only
`asv_suite`, which asv runs, has a test that each of its benchmarks works.
"""
