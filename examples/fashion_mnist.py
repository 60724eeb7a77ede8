"""A convolutional net that tells clothes apart: Fashion-MNIST, 60,000 pictures to learn from, 10,000 to test.

    python examples/fashion_mnist.py --epochs 3 --checkpoint fashion.safetensors

The pictures are fetched once, as Debian's package of them, or taken from --data. Ctrl-C writes the
checkpoint, and the same command goes on from it. `--export page/` makes a web page of the net, which tells
what is drawn: `webgrad serve-static page/` shows it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pictures
from arguments import above_zero, file_to_write, run

import webgrad as wg
from webgrad import nn
from webgrad.data.datasets import FASHION_CLASSES, fashion_mnist


class Net(nn.Module):
    """Two convolutions, each with a pool, and two linear layers; it takes pictures as they are, in bytes."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.classes = nn.Sequential(
            nn.Linear(2 * channels * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.25), nn.Linear(128, 10)
        )

    def forward(self, images: wg.Tensor) -> wg.Tensor:
        pixels = (images.astype(wg.float32) / 255 - 0.286) / 0.353  # the mean and deviation of all of them
        return self.classes(self.features(pixels.unsqueeze(1)))


def predictions(model: nn.Module, images: Any, device: str | None) -> np.ndarray[Any, Any]:
    """The class of each picture, by the model in eval mode."""
    predict = wg.jit(lambda batch: model(batch).argmax(axis=1))
    model.eval()
    with wg.no_grad():
        found = [predict(batch).numpy() for batch in wg.data.DataLoader(images, 500, device=device)]
    return np.concatenate(found)


def report(labels: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Print the accuracy of each class and the confusion matrix, which is returned."""
    matrix = np.zeros((10, 10), np.int64)
    np.add.at(matrix, (labels, found), 1)
    print(f"{'':12s} accuracy   taken for")
    for name, row, number in zip(FASHION_CLASSES, matrix, range(10), strict=True):
        others = sorted((int(count), other) for other, count in enumerate(row) if other != number and count)
        worst = ", ".join(f"{FASHION_CLASSES[other]} {count}" for count, other in others[:-4:-1])
        print(f"{name:12s} {row[number] / max(1, row.sum()):8.1%}   {worst}")
    print(f"{'all':12s} {np.trace(matrix) / matrix.sum():8.1%}")
    return matrix


def export_page(model: nn.Module, images: Any, labels: Any, folder: Path) -> Path:
    """A page that tells what is drawn, or what is on a picture, with one of each class to try."""
    model.eval()
    firsts = [int(np.argmax(labels == number)) for number in range(10)]

    def classify(picture: wg.Tensor) -> wg.Tensor:
        return model(picture * 255)  # pages give pixels from 0 to 1

    with wg.no_grad():
        return wg.export(
            classify,
            wg.zeros((1, 28, 28)),
            folder,
            name="Fashion-MNIST",
            labels=FASHION_CLASSES,
            inverted=True,  # light on dark
            samples=[(name, images[at]) for name, at in zip(FASHION_CLASSES, firsts, strict=True)],
        )


def main() -> None:
    """Learn, then tell how well."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", help="cpu, webgpu, webgpu:N …; a GPU where there is one")
    parser.add_argument("--epochs", type=above_zero, default=4)
    parser.add_argument("--batch", type=above_zero, default=128)
    parser.add_argument("--rate", type=float, default=4e-3, help="the highest learning rate")
    parser.add_argument("--data", help="a folder with the four files, or the Debian package")
    parser.add_argument(
        "--checkpoint", type=file_to_write, help="a .safetensors file to write, and to go on from"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=above_zero, help="learn from so many pictures only")
    parser.add_argument("--steps", type=above_zero, help="stop after so many steps")
    parser.add_argument("--losses", type=file_to_write, help="a JSON file for the loss of every step")
    parser.add_argument(
        "--picture", type=file_to_write, default=Path("confusion.svg"), help="the confusion matrix"
    )
    parser.add_argument("--export", type=file_to_write, help="a folder for a web page of the net")
    options = parser.parse_args()

    if options.device:
        wg.set_default_device(options.device)
    wg.random.seed(options.seed)
    data = fashion_mnist(options.data)
    images, labels = data.train_images[: options.limit], data.train_labels[: options.limit].astype(np.int32)
    model = Net()
    loader = wg.data.DataLoader((images, labels), options.batch, shuffle=True, seed=options.seed)
    optimiser = wg.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=1e-2)
    schedule = wg.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=options.rate, total_steps=options.epochs * len(loader)
    )

    def validate() -> dict[str, float]:
        found = predictions(model, data.test_images, options.device)
        return {"test accuracy": float((found == data.test_labels).mean())}

    history = wg.training.fit(
        model,
        loader,
        optimiser,
        nn.CrossEntropyLoss(),
        epochs=options.epochs,
        schedule=schedule,
        validate=validate,
        checkpoint=options.checkpoint,
        on_step=lambda step, loss: options.steps is not None and step >= options.steps,
    )
    if options.losses:
        options.losses.write_text(json.dumps(history.losses), encoding="utf-8")
    matrix = report(data.test_labels, predictions(model, data.test_images, options.device))
    pictures.write_matrix(options.picture, matrix, FASHION_CLASSES, "Fashion-MNIST: what is taken for what")
    print(f"the confusion matrix is in {options.picture}")
    if options.export:
        page = export_page(model, data.test_images, data.test_labels, options.export)
        print(f"the page is {page}: webgrad serve-static {options.export}")


if __name__ == "__main__":
    run(main)
