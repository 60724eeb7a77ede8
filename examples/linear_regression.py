"""Linear regression in ten lines: find the line behind noisy points."""

import webgrad as wg

x = wg.random.uniform((256, 1), low=-1, high=1)
y = 3 * x + 0.5 + wg.random.normal(x.shape, std=0.1)
model = wg.nn.Linear(1, 1)
optimiser = wg.optim.SGD(model.parameters(), lr=0.5)
for _ in range(50):
    optimiser.zero_grad()
    wg.mse_loss(model(x), y).backward()
    optimiser.step()
print(f"y = {model.weight.item():.1f} x + {model.bias.item():.1f}")
