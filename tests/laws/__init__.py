"""Laws that every family, allocation and proposal obeys; the registry is `tests.laws.families`."""
