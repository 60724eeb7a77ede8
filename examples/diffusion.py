"""Clothes out of noise: flow matching on Fashion-MNIST, of whichever of its ten classes is asked for.

    python examples/diffusion.py --checkpoint clothes.safetensors --model clothes/

learns in about a quarter of an hour on two cores, then writes a folder that `webgrad imagine`, `webgrad
export` and diffusers read, and a grid of samples. The pictures to learn from are fetched once, as Debian's
package of them, or taken from --data. Ctrl-C writes the checkpoint, and the same command goes on from it.
"""

from __future__ import annotations

import argparse
import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pictures
from arguments import above_zero, file_to_write, run

import webgrad as wg
from webgrad import nn
from webgrad.data.datasets import FASHION_CLASSES, fashion_mnist

Array = np.ndarray[Any, Any]
NO_CLASS = len(FASHION_CLASSES)  # what a picture is told to be of where its class is left out
LEFT_OUT = 0.1  # of the classes, so that the network knows pictures of no class too, and guidance works
TIMES = 1000  # steps of training, as published settings count them


class Paths:
    """Places on straight lines from noise to pictures; the velocity there is what the network learns.

    What a batch has is drawn from a seed that its pictures' numbers are, so that training goes on from a
    checkpoint as it would have without a stop.
    """

    def __init__(self, images: Array, labels: Array) -> None:
        self.images, self.labels = images, labels.astype(np.int32)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> Any:
        return tuple(each[0] for each in self.batch(np.asarray([number])))

    def batch(self, numbers: Array) -> tuple[Array, ...]:
        """Noisy pictures, their times, their classes; and noise - picture."""
        random = np.random.default_rng(numbers)
        pixels = self.images[numbers, None].astype(np.float32) / 127.5 - 1
        noise = random.standard_normal(pixels.shape, np.float32)
        # More often in the middle, where a prediction is hard.
        times = 1 / (1 + np.exp(-random.standard_normal(len(numbers), np.float32)))
        shares = times[:, None, None, None]
        kept = random.random(len(numbers)) >= LEFT_OUT
        classes = np.where(kept, self.labels[numbers], NO_CLASS).astype(np.int32)
        return pixels * (1 - shares) + noise * shares, times * TIMES, classes, noise - pixels


class Learner(nn.Module):
    """A network, and the mean of what its weights were lately, which makes the better pictures."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        super().__init__()
        self.network, self.average = network, copy.deepcopy(network).requires_grad_(False)
        self.decay = decay
        self._follow = wg.jit(self._step)

    def forward(self, *inputs: wg.Tensor) -> wg.Tensor:
        return self.network(*inputs)

    def follow(self, step: int) -> None:
        """After a step: the mean, over few steps at first."""
        with wg.no_grad():
            self._follow(min(self.decay, step / (step + 10)))

    def _step(self, decay: Any) -> None:
        for mean, weight in zip(self.average.parameters(), self.network.parameters(), strict=True):
            mean[...] = mean * decay + weight * (1 - decay)


def network(width: int) -> nn.Module:
    """A U-Net of three sizes, 28, 14 and 7 pixels, that knows ten classes and none."""
    return wg.diffusion.UNet2D(
        wg.diffusion.UNet2DConfig(
            sample_size=28,
            in_channels=1,
            out_channels=1,
            block_out_channels=(width, 3 * width, 6 * width),
            down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
            layers_per_block=1,
            norm_num_groups=width // 2,
            attention_head_dim=2 * width,
            num_class_embeds=NO_CLASS + 1,
        )
    )


def learn(learner: Learner, paths: Paths, options: argparse.Namespace) -> list[float]:
    """Train; gives the loss of every step."""
    random = np.random.default_rng(options.seed)
    count = options.steps * options.batch
    # One epoch of so many pictures, of which each comes as often as any other, or once more.
    rounds = [random.permutation(len(paths)) for _ in range(-(-count // len(paths)))]
    loader = wg.data.DataLoader(wg.data.Subset(paths, np.concatenate(rounds)[:count]), options.batch)
    optimiser = wg.optim.AdamW(learner.network.parameters(), lr=options.rate, weight_decay=0.0)

    def rate(step: int) -> float:
        """Up within 50 steps, then down along a cosine."""
        return min(1.0, (step + 1) / 50) * (
            0.505 + 0.495 * math.cos(math.pi * min(1.0, step / options.steps))
        )

    history = wg.training.fit(
        learner,
        loader,
        optimiser,
        wg.mse_loss,
        epochs=1,
        schedule=wg.optim.lr_scheduler.LambdaLR(optimiser, rate),
        clip=1.0,
        checkpoint=options.checkpoint,
        every=200,
        on_step=lambda step, loss: learner.follow(step),
    )
    return history.losses


def write_samples(pipe: Any, path: Path, columns: int, seed: int) -> None:
    """A row of samples for each class, light on dark as the pictures are, twice as large."""
    classes = [number for number in range(NO_CLASS) for _ in range(columns)]
    found = pipe(len(classes), classes=classes, guidance=2.0, steps=40, seed=seed)
    rows = found.reshape(NO_CLASS, columns, 28, 28).transpose(0, 2, 1, 3).reshape(NO_CLASS * 28, -1)
    wg.io.write_picture(path, rows.repeat(2, axis=0).repeat(2, axis=1))


def write_losses(path: Path, losses: list[float]) -> None:
    """The loss over the steps, as the mean of the last fifty."""
    span = min(50, len(losses))
    means = np.convolve(losses, np.ones(span) / span, "valid")
    points = [(float(at + span), float(means[at])) for at in range(0, len(means), 5)]
    pictures.write_curve(
        path, {"the mean of 50 steps": points}, "Flow matching: the velocity's error", "step"
    )


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="a folder with the four files, or the Debian package")
    parser.add_argument("--device", help="cpu, webgpu, webgpu:N …; a GPU where there is one")
    parser.add_argument("--steps", type=above_zero, default=1700)
    parser.add_argument("--batch", type=above_zero, default=128)
    parser.add_argument("--width", type=above_zero, default=16, help="channels at the full size, even")
    parser.add_argument("--rate", type=float, default=2e-3, help="the highest learning rate")
    parser.add_argument("--decay", type=float, default=0.995, help="of the mean of the weights")
    parser.add_argument("--quick", action="store_true", help="a few steps of a small network, to try it")
    parser.add_argument(
        "--checkpoint", type=file_to_write, help="a .safetensors file to write, and to go on from"
    )
    parser.add_argument("--model", type=file_to_write, default=Path("clothes"), help="the folder to write")
    parser.add_argument("--samples", type=file_to_write, help="a PNG file for samples of all classes")
    parser.add_argument("--columns", type=above_zero, default=10, help="samples of each class")
    parser.add_argument("--curve", type=file_to_write, help="an SVG file for the losses")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.quick:
        options.steps, options.batch, options.width, options.columns = 4, 8, 4, 1
    if options.width % 2:
        parser.error(f"--width {options.width} is not even")
    return options


def main() -> None:
    """Learn, write the model, draw samples and the curve."""
    options = arguments()
    if options.device:
        wg.set_default_device(options.device)
    wg.random.seed(options.seed)
    data = fashion_mnist(options.data)
    learner = Learner(network(options.width), options.decay)
    count = sum(math.prod(each.shape) for each in learner.network.parameters())
    print(f"{len(data.train_images):,} pictures; a network of {count:,} parameters")
    losses = learn(learner, Paths(data.train_images, data.train_labels), options)
    print(f"{len(losses)} steps; loss {float(np.mean(losses[-50:])):.4f}")

    pipe = wg.diffusion.Unconditional(learner.average.eval(), wg.diffusion.FlowMatching(), FASHION_CLASSES)
    print(f"the model is in {wg.diffusion.save(pipe, options.model)}")
    if options.samples:
        write_samples(pipe, options.samples, options.columns, options.seed)
        print(f"samples are in {options.samples}")
    if options.curve:
        write_losses(options.curve, losses)
        print(f"the curve is in {options.curve}")


if __name__ == "__main__":
    run(main)
