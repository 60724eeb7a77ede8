"""A function's slope, the slope's slope, and where the function is highest."""

import webgrad as wg


def f(x):
    """A wave that dies away."""
    return wg.sin(x) * wg.exp(-0.1 * x * x)


slope = wg.grad(f)
bend = wg.grad(slope)  # a gradient's gradient is a graph like any other

for at in (0.0, 0.5, 1.0):
    x = wg.asarray(at)
    print(f"f({at}) = {f(x).item():+.4f}   f' = {slope(x).item():+.4f}   f'' = {bend(x).item():+.4f}")

x = wg.asarray(1.0)
for _ in range(5):  # Newton's way to where the slope is zero
    x = x - slope(x) / bend(x)
print(f"the top is at x = {x.item():.5f}, where f is {f(x).item():.5f}")
