"""A small convolutional net learns to tell rings from crosses."""

import random

import webgrad as wg

SIZE = 12


def drawn(kind):
    """A ring (0) or a cross (1) at a random place, as rows of numbers."""
    top, left, radius = random.uniform(4, 7), random.uniform(4, 7), random.uniform(2.5, 4)
    rows = []
    for y in range(SIZE):
        row = []
        for x in range(SIZE):
            down, along = abs(y - top), abs(x - left)
            ring = abs((down * down + along * along) ** 0.5 - radius) < 0.8
            cross = abs(down - along) < 0.9 and max(down, along) <= radius
            row.append(float((ring, cross)[kind]))
        rows.append(row)
    return rows


def pictures(count):
    """As many of both kinds, and which they are."""
    kinds = [number % 2 for number in range(count)]
    return wg.asarray([[drawn(kind)] for kind in kinds]), wg.asarray(kinds)


model = wg.nn.Sequential(
    wg.nn.Conv2d(1, 8, 3, padding=1),
    wg.nn.ReLU(),
    wg.nn.MaxPool2d(2),
    wg.nn.Conv2d(8, 16, 3, padding=1),
    wg.nn.ReLU(),
    wg.nn.AdaptiveAvgPool2d(1),
    wg.nn.Flatten(),
    wg.nn.Linear(16, 2),
)
optimiser = wg.optim.Adam(model.parameters(), lr=0.01)


@wg.jit
def step(x, y):
    """Learn from a batch."""
    optimiser.zero_grad()
    loss = wg.cross_entropy(model(x), y)
    loss.backward()
    optimiser.step()
    return loss


x, y = pictures(64)
for number in range(61):
    loss = step(x, y)
    if number % 20 == 0:
        print(f"step {number:2}: loss {loss.item():.3f}")

x, y = pictures(64)  # new ones
guesses = wg.argmax(model(x), axis=1)
print(f"{wg.mean((guesses == y).astype(wg.float32)).item():.0%} of 64 new pictures are right; the first:")
for row in x[0, 0].tolist():
    print("".join(" #"[value > 0] * 2 for value in row))
print("it says:", ("ring", "cross")[guesses[0].item()])
