"""Convolution and pooling, all made of one movement, `window`."""
