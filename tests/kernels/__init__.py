"""Each kernel against its NumPy twin in `tests.reference`."""
