"""The tests; a package so that helpers are imported by their full name, `tests.kernels.harness` say."""
