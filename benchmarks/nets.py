"""The nets of training.py, made of the modules that webgrad and torch have under the same names.

In: a workload's name, and a library's `nn`. Out: a module, and the batch that it takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BATCH = 128
LETTERS, CONTEXT, WIDTH, HEADS, LAYERS, TEXTS = 65, 64, 128, 4, 2, 32  # of the GPT
STEPS, INPUTS, UNITS, SEQUENCES = 64, 64, 256, 32  # of the LSTM
WORKLOADS = ("mlp", "cnn", "gpt", "lstm")

Array = np.ndarray[Any, Any]


def batch_of(workload: str) -> tuple[Array, Array]:
    """What goes in, and the classes: the same for all libraries."""
    random = np.random.default_rng(0)
    if workload == "gpt":
        letters = random.integers(0, LETTERS, (2, TEXTS, CONTEXT)).astype(np.int32)
        return letters[0], letters[1].reshape(-1)
    if workload == "lstm":
        classes = random.integers(0, 10, SEQUENCES).astype(np.int32)
        return random.random((SEQUENCES, STEPS, INPUTS), np.float32), classes
    shape = (BATCH, 784) if workload == "mlp" else (BATCH, 1, 28, 28)
    return random.random(shape, np.float32), random.integers(0, 10, BATCH).astype(np.int32)


def net(workload: str, nn: Any, attend: Any) -> Any:
    """The net; `attend` is the library's scaled_dot_product_attention."""
    if workload == "mlp":
        return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    if workload == "gpt":
        return _gpt(nn, attend)
    if workload == "lstm":
        return _lstm(nn)
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10)),
    )


def _gpt(nn: Any, attend: Any) -> Any:
    """Letters to the letters after them, by attention to what stands before."""

    class Block(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.before_attention, self.before_net = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.queries_keys_values, self.attended = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.net = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU("tanh"), nn.Linear(4 * WIDTH, WIDTH)
            )

        def forward(self, x: Any) -> Any:
            parts = self.queries_keys_values(self.before_attention(x))
            parts = parts.reshape(TEXTS, CONTEXT, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            mixed = attend(parts[0], parts[1], parts[2], is_causal=True).permute(0, 2, 1, 3)
            x = x + self.attended(mixed.reshape(TEXTS, CONTEXT, WIDTH))
            return x + self.net(self.before_net(x))

    class Gpt(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.last, self.logits = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, LETTERS, bias=False)

        def forward(self, letters: Any) -> Any:
            x = self.blocks(self.letters(letters) + self.places.weight)
            return self.logits(self.last(x)).reshape(-1, LETTERS)

    return Gpt()


def _lstm(nn: Any) -> Any:
    """Sequences to classes, by the last state."""

    class Recurrent(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.classes = nn.LSTM(INPUTS, UNITS, batch_first=True), nn.Linear(UNITS, 10)

        def forward(self, x: Any) -> Any:
            output, _ = self.lstm(x)
            return self.classes(output[:, -1])

    return Recurrent()
