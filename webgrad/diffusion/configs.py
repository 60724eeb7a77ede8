"""config.json of a part as a checked record.

In: the settings of a file. Out: a frozen dataclass of them, whose fields have the defaults of diffusers. The
invariant: a setting that changes what is computed is obeyed, or the file is refused by the setting's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import webgrad as wg

__all__ = ["by_block", "read_config"]

Record = TypeVar("Record")


def read_config(
    kind: type[Record], data: Mapping[str, Any], source: str, idle: Mapping[str, Sequence[Any]]
) -> Record:
    """The fields of a record out of a file's settings.

    `idle` are settings without a field, each with the values that change nothing; an empty sequence says that
    none does. Names that begin with an underscore say where a file comes from.
    """
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    given = {}
    for name, value in data.items():
        if name in known:
            given[name] = _as_tuple(value)
        elif not name.startswith("_") and not _is_idle(idle, name, value):
            raise wg.ModelFileError(
                f"{source}: {name} is {value!r}, and webgrad.diffusion has no {kind.__name__} of that kind"
            )
    missing = [each.name for each in known.values() if each.default is MISSING and each.name not in given]
    if missing:
        raise wg.ModelFileError(f"{source}: there is no {missing[0]}, which {kind.__name__} needs")
    return kind(**given)


def _is_idle(idle: Mapping[str, Sequence[Any]], name: str, value: Any) -> bool:
    return value is None or (name in idle and (not idle[name] or value in idle[name]))


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def by_block(value: Any, count: int) -> list[Any]:
    """A setting for each of a network's blocks: what is given for all of them counts for each."""
    if isinstance(value, list | tuple):
        if len(value) != count:
            raise wg.ModelFileError(f"there are {count} blocks, and settings for {len(value)}: {value}")
        return list(value)
    return [value] * count
