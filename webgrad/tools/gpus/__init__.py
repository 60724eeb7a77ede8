"""Real GPUs' compilers: what they make of a run's kernels, seen without such a GPU."""
