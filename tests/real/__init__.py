"""Tests on real data, found through the environment variable SKLEARN_BNP_DATA."""
