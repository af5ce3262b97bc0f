"""Tests, in the order of the package; `tests.model.build` makes values for all of them."""
