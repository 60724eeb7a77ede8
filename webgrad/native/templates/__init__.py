"""Hand-written kernels in LLVM's text, with holes: products, attention, quantised blocks."""
