"""What the examples ask of their arguments, and what they say where something is wrong.

In: words of a command line. Out: numbers and paths, or one line of text: what takes minutes to compute must
not fail at its end for want of a folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import webgrad as wg

__all__ = ["above_zero", "file_to_write", "run", "zero_or_more"]


def above_zero(word: str) -> int:
    """An integer, 1 or more."""
    return _whole(word, 1)


def zero_or_more(word: str) -> int:
    """An integer, 0 or more."""
    return _whole(word, 0)


def _whole(word: str, least: int) -> int:
    try:
        number = int(word)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"an integer, {least} or more, not {word!r}")
    return number


def file_to_write(word: str) -> Path:
    """A path whose folder is there."""
    path = Path(word)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def run(main: Callable[[], None]) -> None:
    """Run an example; what a user can do something about is one line, not a traceback."""
    try:
        main()
    except KeyboardInterrupt:  # fit has said what became of it
        raise SystemExit(130) from None
    except (wg.ModelFileError, wg.NoAdapterError, wg.ArgumentError) as error:
        raise SystemExit(f"error: {error}") from None
