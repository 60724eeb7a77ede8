"""A line through points that do not quite lie on one."""

import webgrad as wg

x = wg.random.uniform((256, 1), low=-1, high=1)
y = 3 * x + 0.5 + wg.random.normal(x.shape, std=0.1)
model = wg.nn.Linear(1, 1)
optimiser = wg.optim.SGD(model.parameters(), lr=0.5)
for step in range(50):
    optimiser.zero_grad()
    loss = wg.mse_loss(model(x), y)
    loss.backward()
    optimiser.step()
    if step % 10 == 0:
        print(f"step {step:2}: loss {loss.item():.4f}")
print(f"y = {model.weight.item():.1f} x + {model.bias.item():.1f}")
