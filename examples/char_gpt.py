"""A small GPT that learns to write, letter by letter, from a text file.

    python examples/char_gpt.py --text story.txt --minutes 10 --sample 500 --checkpoint gpt.safetensors

Without --text it learns from Shakespeare's works, which are fetched once. Ctrl-C writes the checkpoint, and
the same command goes on from it; with --steps 0 it only writes.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pictures

import webgrad as wg
from webgrad import nn
from webgrad.data import datasets

Array = np.ndarray[Any, Any]


class Block(nn.Module):
    """Attention to what stands before, then a small net for each place; both are added to what comes in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.before_net = nn.LayerNorm(width)
        self.net = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        batch, length, width = x.shape
        parts = self.queries_keys_values(self.before_attention(x))
        parts = parts.reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = wg.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.attended(mixed.permute(0, 2, 1, 3).reshape(batch, length, width))
        return x + self.net(self.before_net(x))


class Gpt(nn.Module):
    """Numbers of letters (batch, length) to the logits of the letter after each (batch, length, letters)."""

    def __init__(self, letters: int, context: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.context = context
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.last = nn.LayerNorm(width)
        self.logits = nn.Linear(width, letters, bias=False)
        for name, each in self.named_parameters():
            if each.ndim > 1:  # small enough that a deep stack of sums begins near the identity
                is_end = name.endswith(("attended.weight", "net.2.weight"))
                nn.init.normal_(each, std=0.02 / math.sqrt(2 * layers) if is_end else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(each)

    def forward(self, letters: wg.Tensor) -> wg.Tensor:
        places = wg.arange(letters.shape[1], dtype=wg.int32, device=letters.device)
        return self.logits(self.last(self.blocks(self.letters(letters) + self.places(places))))


class Windows:
    """All pieces of a text that are so long, each with the same piece one letter later."""

    def __init__(self, numbers: Array, length: int) -> None:
        self.numbers, self.length = numbers, length

    def __len__(self) -> int:
        return len(self.numbers) - self.length

    def __getitem__(self, start: int) -> tuple[Array, Array]:
        piece = self.numbers[start : start + self.length + 1]
        return piece[:-1], piece[1:]

    def batch(self, starts: Array) -> tuple[Array, Array]:
        """Many pieces at once."""
        pieces = self.numbers[starts[:, None] + np.arange(self.length + 1)]
        return pieces[:, :-1], pieces[:, 1:]


def loss_of(logits: wg.Tensor, target: wg.Tensor) -> wg.Tensor:
    """The mean cross-entropy over all places, in nats a letter."""
    return wg.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))


def write(model: Gpt, alphabet: str, start: str, count: int, heat: float, seed: int) -> str:
    """So many letters more, each drawn by the model's odds; a window of one size needs one capture."""
    random = np.random.default_rng(seed)
    numbers = [alphabet.index(each) for each in start if each in alphabet] or [0]
    first = len(numbers)
    odds = wg.jit(lambda window: wg.softmax(model(window)[0] / heat, axis=-1))
    model.eval()
    with wg.no_grad():
        for _ in range(count):
            recent = numbers[-model.context :]
            window = np.zeros((1, model.context), np.int32)  # what is behind does not change what is before
            window[0, : len(recent)] = recent
            chances = odds(wg.asarray(window)).numpy()[len(recent) - 1].astype(np.float64)
            numbers.append(int(random.choice(len(chances), p=chances / chances.sum())))
    return start + "".join(alphabet[each] for each in numbers[first:])


def learn_from(model: Gpt, numbers: Array, options: argparse.Namespace) -> None:
    """Train on nine tenths of a text, and measure on the rest."""
    split = len(numbers) * 9 // 10
    learn, test = Windows(numbers[:split], options.context), Windows(numbers[split:], options.context)
    # One epoch of so many pieces from anywhere in the text.
    starts = np.random.default_rng(options.seed).integers(0, len(learn), options.steps * options.batch)
    loader = wg.data.DataLoader(wg.data.Subset(learn, starts), options.batch)
    optimiser = wg.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.99), weight_decay=0.1)
    began = time.monotonic()

    def part_done(step: int) -> float:
        by_clock = (time.monotonic() - began) / 60 / options.minutes if options.minutes else 0.0
        return max(step / options.steps, by_clock)

    def rate(step: int) -> float:
        """Up within 100 steps, then down along a cosine to a tenth."""
        return min(1.0, (step + 1) / 100) * (0.55 + 0.45 * math.cos(math.pi * min(1.0, part_done(step))))

    schedule = wg.optim.lr_scheduler.LambdaLR(optimiser, rate)
    tests = list(wg.data.DataLoader(wg.data.Subset(test, np.linspace(0, len(test) - 1, 128)), 32))
    test_loss = wg.jit(lambda letters, target: loss_of(model(letters), target))
    curve: list[tuple[float, float]] = []

    def measure() -> float:
        model.eval()
        with wg.no_grad():
            found = float(np.mean([test_loss(letters, target).item() for letters, target in tests]))
        model.train()
        return found

    def on_step(step: int, loss: wg.Tensor) -> bool:
        if step % 250 == 0:
            curve.append((step, measure()))
        return part_done(step) >= 1

    history = wg.training.fit(
        model,
        loader,
        optimiser,
        loss_of,
        epochs=1,
        schedule=schedule,
        clip=1.0,
        checkpoint=options.checkpoint,
        every=500,
        on_step=on_step,
    )
    minutes = (time.monotonic() - began) / 60
    last, found = float(np.mean(history.losses[-100:])), measure()
    print(f"{history.step} steps in {minutes:.1f} minutes: loss {last:.3f}, on text not seen {found:.3f}")
    if options.curve:
        curve.append((history.step, found))
        smooth = np.convolve(history.losses, np.ones(20) / 20, "valid")
        learned = [(float(at + 20), float(smooth[at])) for at in range(0, len(smooth), 10)]
        pictures.write_curve(
            options.curve,
            {"learning": learned, "text not seen": curve},
            "Loss of the character-level GPT, nats a letter",
            "step",
            goal=1.8,
        )
        print(f"the curve is in {options.curve}")


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", help="a text file in UTF-8; Shakespeare's works without it")
    parser.add_argument("--device", help="cpu, webgpu, webgpu:N …; a GPU where there is one")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--minutes", type=float, help="stop after so long, the rate going down by the clock")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=128, help="letters the model sees at once")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--rate", type=float, default=2e-3, help="the highest learning rate")
    parser.add_argument("--sample", type=int, default=400, help="letters to write at the end")
    parser.add_argument("--start", default="\n", help="what the sample begins with")
    parser.add_argument("--heat", type=float, default=0.8, help="below 1: likelier letters")
    parser.add_argument("--checkpoint", help="a .safetensors file to write, and to go on from")
    parser.add_argument("--curve", type=Path, help="an SVG file for the losses")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Learn, measure, draw the curve, write."""
    options = arguments()
    if options.device:
        wg.set_default_device(options.device)
    wg.random.seed(options.seed)
    text = datasets.text(options.text) if options.text else datasets.shakespeare()
    if len(text) < 20 * (options.context + 1):
        raise SystemExit(f"{len(text)} letters are too few to learn from pieces of {options.context}")
    alphabet = "".join(sorted(set(text)))
    places = {letter: number for number, letter in enumerate(alphabet)}
    numbers = np.array([places[letter] for letter in text], np.int32)
    model = Gpt(len(alphabet), options.context, options.width, options.layers, options.heads)
    count = sum(math.prod(each.shape) for each in model.parameters())
    print(f"{len(text):,} letters, {len(alphabet)} different ones; a model of {count:,} parameters")

    if options.steps:
        learn_from(model, numbers, options)
    elif options.checkpoint:
        wg.training.load_checkpoint(options.checkpoint, model=model)
    if options.sample:
        print(write(model, alphabet, options.start, options.sample, options.heat, options.seed))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # fit has said what became of it
        raise SystemExit(130) from None
