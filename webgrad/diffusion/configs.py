"""config.json of a part as a checked record.

In: the settings of a file. Out: a frozen dataclass of them, whose fields have the defaults of diffusers. The
invariant: a setting that changes what is computed is obeyed, or the file is refused by the setting's name.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

import webgrad as wg

__all__ = ["Idle", "by_block", "read_config", "read_text"]

Record = TypeVar("Record")
# Settings that no field has, each with the values that change nothing; an empty sequence says that none does.
Idle = Mapping[str, Sequence[Any]]
# Settings that count what is made, and how many there may be, so that no number of a file is dear.
MOST = {
    "layers_per_block": 64, "transformer_layers_per_block": 64, "num_encoder_blocks": 64,
    "num_decoder_blocks": 64, "num_hidden_layers": 256, "num_layers": 256, "num_train_timesteps": 100_000,
    "depth": 256, "blocks": 64, "levels": 16, "bottleneck_blocks": 256,
}  # fmt: skip


def read_config(kind: type[Record], data: Mapping[str, Any], source: str, idle: Idle) -> Record:
    """The fields of a record out of a file's settings.

    Names that begin with an underscore say where a file comes from.
    """
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    given = {}
    for name, value in data.items():
        if name in known:
            given[name] = _as_tuple(value)
            if name in MOST and not _is_count(given[name], MOST[name]):
                most = f"{MOST[name]:,}"
                raise wg.ModelFileError(f"{source}: {name} is {value!r}, not a count up to {most}")
        elif not name.startswith("_") and not _is_idle(idle, name, value):
            raise wg.ModelFileError(
                f"{source}: {name} is {value!r}, and webgrad.diffusion has no {kind.__name__} of that kind"
            )
    missing = [each.name for each in known.values() if each.default is MISSING and each.name not in given]
    if missing:
        raise wg.ModelFileError(f"{source}: there is no {missing[0]}, which {kind.__name__} needs")
    return kind(**given)


def _is_idle(idle: Idle, name: str, value: Any) -> bool:
    return value is None or (name in idle and (not idle[name] or value in idle[name]))


def _is_count(value: Any, most: int) -> bool:
    if isinstance(value, tuple):
        return all(_is_count(each, most) for each in value)
    return value is None or (isinstance(value, int) and 0 <= value <= most)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def read_text(path: Path, most: int) -> str:
    """The text of a plain file of at most so many bytes."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise wg.ModelFileError(f"{path} cannot be read: it is not a plain file")
        if facts.st_size > most:
            raise wg.ModelFileError(f"{path} has more than {most:,} bytes")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise wg.ModelFileError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise wg.ModelFileError(f"{path} is no UTF-8: {error.reason}") from None


def by_block(value: Any, count: int) -> list[Any]:
    """A setting for each of a network's blocks: what is given for all of them counts for each."""
    if isinstance(value, list | tuple):
        if len(value) != count:
            raise wg.ModelFileError(f"there are {count} blocks, and settings for {len(value)}: {value}")
        return list(value)
    return [value] * count
