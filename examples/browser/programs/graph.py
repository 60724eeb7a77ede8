"""Softmax of a matrix product, normalised: a graph, and the kernels it becomes."""

import webgrad as wg

x = wg.random.normal((64, 128))
w = wg.random.normal((128, 32), std=0.1)
y = wg.layer_norm(wg.softmax(x @ w, axis=-1), 32)  # a graph so far: nothing is computed

# the kernels it will be
print(wg.explain(y))
# which runs them
print("mean", round(y.mean().item(), 4), "std", round(y.std().item(), 4))
print([round(each, 4) for each in y[0, :4].tolist()])
