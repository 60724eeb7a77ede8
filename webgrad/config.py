"""Settings: what webgrad.toml and the environment say, checked, as one frozen record.

In: the environment and a TOML file. Out: `Settings`, read at first use and then kept until `reload()`.
This is the only module that reads environment variables. Every option is one field of `Settings`; a value
that cannot be understood is a `ConfigError` that names where it stands, never a silent default.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .device_profile import GPU_PROFILES
from .errors import ConfigError

BACKENDS = ("vulkan", "metal", "dx12", "opengl")
FEATURES = ("f16", "f64", "int64", "subgroups", "timestamps", "immediates", "f32-atomics")
# What WEBGRAD_DEBUG may write about; tools/debug.py has a writer for each.
LEVELS = ("device", "schedule", "ir", "wgsl", "llvm", "launches", "memory", "tune")
PROCESSORS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")  # native/processor.py has a row for each
LARGEST_FILE = 1 << 20  # bytes of webgrad.toml
CONFIG_VARIABLE = "WEBGRAD_CONFIG"
PREFIX = "WEBGRAD_"


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """How much device memory may be used: so many bytes, or a fraction of what the device has."""

    bytes: int | None = None
    fraction: float | None = None

    def of(self, total: int) -> int:
        """The budget in bytes on a device that has `total` bytes."""
        return self.bytes if self.bytes is not None else int(total * (self.fraction or 0.0))

    def __str__(self) -> str:
        return f"{self.bytes} bytes" if self.bytes is not None else f"{100 * (self.fraction or 0.0):g}%"


class _Form(NamedTuple):
    """What an option's values are like."""

    parse: Callable[[object], Any]  # from a string (environment) or a TOML value; ValueError for other things
    allowed: str  # completes "must be …"


def _device(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value.strip()


def _folder(value: object) -> Path:
    try:
        return Path(_device(value)).expanduser()
    except RuntimeError:  # a ~ without a home
        raise ValueError from None


def _flag(value: object) -> bool:
    words = {"0": False, "false": False, "no": False, "off": False}
    words |= {"1": True, "true": True, "yes": True, "on": True}
    try:
        return words[str(value).strip().lower()]
    except KeyError:
        raise ValueError from None


def _whole(low: int, high: int) -> _Form:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError
        number = int(value)
        if not low <= number <= high:
            raise ValueError
        return number

    return _Form(parse, f"an integer from {low} to {high}")


def _words(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list):
        raise ValueError
    if any(isinstance(part, bool) or not isinstance(part, int | str) for part in parts):
        raise ValueError
    return tuple(word for part in parts if (word := str(part).strip()))


def _names(allowed: tuple[str, ...]) -> _Form:
    def parse(value: object) -> frozenset[str]:
        names = frozenset(word.lower() for word in _words(value))
        if not names <= set(allowed):
            raise ValueError
        return names

    return _Form(parse, f"a list of {_listed(allowed)}")


def _listed(names: tuple[str, ...], separator: str = ", ") -> str:
    return separator.join(f"`{name}`" for name in names)


def _levels(value: object) -> frozenset[str]:
    words = {word.lower() for word in _words(value)}
    if not words <= {*LEVELS, "all"}:
        raise ValueError
    return frozenset(LEVELS) if "all" in words else frozenset(words)


def _one_of(*allowed: str) -> _Form:
    def parse(value: object) -> str:
        if str(value).strip().lower() not in allowed:
            raise ValueError
        return str(value).strip().lower()

    return _Form(parse, _listed(allowed, " or "))


_UNITS = {"": 1, "b": 1} | {
    unit: base**power
    for power, letter in enumerate("kmgt", start=1)
    for unit, base in ((letter, 1024), (letter + "ib", 1024), (letter + "b", 1000))
}


def _memory(value: object) -> MemoryBudget:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%|[a-z]*)", str(value).strip().lower())
    if match is None or isinstance(value, bool):
        raise ValueError
    number, unit = float(match[1]), match[2]
    if unit == "%":
        if not 0 < number <= 100:
            raise ValueError
        return MemoryBudget(fraction=number / 100)
    if unit not in _UNITS or int(number * _UNITS[unit]) < 1:
        raise ValueError
    return MemoryBudget(bytes=int(number * _UNITS[unit]))


def _size(value: object) -> int:
    if str(value).strip() == "0" and not isinstance(value, bool):
        return 0
    size = _memory(value).bytes
    if size is None:
        raise ValueError
    return size


_FLAG = _Form(_flag, "`0` or `1`")
_FOLDER = _Form(_folder, "the path of a folder")
_MEMORY = _Form(_memory, 'bytes, a size such as `"4GiB"`, or a percentage such as `"50%"`')
_SIZE = _Form(_size, 'bytes, or a size such as `"256MiB"`')
_DEVICE = _Form(_device, "`cpu`, `webgpu`, `webgpu:N`, or a part of an adapter's name")
_DEVICES = _Form(_words, "a list of adapter numbers or parts of adapter names")
_LEVELS = _Form(_levels, f"a list of {_listed(LEVELS)}, or `all` (checks are `WEBGRAD_CHECKS`)")


def _option(default: Any, form: _Form, sentence: str, shown: str = "") -> Any:
    """A field of Settings: its default, what its values are like, and what it does.

    `shown` is what the page says of a default that the value does not tell.
    """
    if not shown:
        value = int(default) if isinstance(default, bool) else default
        shown = "none" if default in (None, (), frozenset()) else f"`{value}`"
    return field(default=default, metadata={"form": form, "default": shown, "sentence": sentence})


@dataclass(frozen=True, slots=True)
class Settings:
    """All options, with the place each came from in `sources` (option → variable or file:key)."""

    device: str | None = _option(
        None,
        _DEVICE,
        "The default device. `webgpu` is the best adapter, software ones included.",
        "a real GPU if there is one, else `cpu`",
    )
    disable_backends: frozenset[str] = _option(
        frozenset(),
        _names(BACKENDS),
        "Graphics interfaces to switch OFF; their drivers are not even loaded.",
    )
    disable_devices: tuple[str, ...] = _option((), _DEVICES, "Adapters that are never listed or used.")
    debug: frozenset[str] = _option(
        frozenset(),
        _LEVELS,
        "What is written to stderr while a program runs (see [debugging.md](debugging.md)).",
    )
    dump: Path | None = _option(
        None,
        _FOLDER,
        "Where the WGSL of every kernel, and native code's LLVM and assembly, are written; made when needed.",
    )
    checks: bool = _option(
        False,
        _FLAG,
        "Kernels' IR is verified, and our own kernels keep the bounds checks that users' always have.",
    )
    memory: MemoryBudget | None = _option(
        None,
        _MEMORY,
        "Budget of device memory; over it, what was unused longest is let go.",
        "decided by the device",
    )
    in_flight: int = _option(
        3, _whole(1, 64), "Submissions that may be under way on the GPU before recording waits."
    )
    queue: int = _option(
        4096, _whole(1, 1_000_000), "Commands recorded before the queue is flushed by itself."
    )
    encoder: Literal["fast", "plain"] = _option(
        "fast",
        _one_of("fast", "plain"),
        "How commands reach the native library: `fast` by ctypes, `plain` by cffi.",
    )
    profile: str | None = _option(
        None,
        _one_of(*GPU_PROFILES),
        "Kernels are chosen as for this GPU, whichever there is; it is used without a trial, even if its "
        "numbers are wrong (see [gpus.md](gpus.md#the-first-use-of-a-gpu)).",
        "the device's own",
    )
    immediates: bool = _option(
        True,
        _FLAG,
        "Kernel parameters as immediates where the adapter has them; `0` always uses uniform buffers.",
    )
    disable_features: frozenset[str] = _option(
        frozenset(), _names(FEATURES), "Adapter features to do without, as if the adapter lacked them."
    )
    graph: int = _option(
        2000,
        _whole(1, 10_000_000),
        "Ops that may wait to be computed; about there the newest value is computed by itself.",
    )
    graph_memory: MemoryBudget | None = _option(
        None,
        _MEMORY,
        "New data that waiting ops may hold on to before the newest value is computed by itself.",
        '`"12.5%"` of the machine\'s memory',
    )
    fuse: bool = _option(
        True,
        _FLAG,
        "Whether several ops may share a kernel on GPUs; `0` helps to find out which op is to blame.",
    )
    tune: bool = _option(
        False,
        _FLAG,
        "Kernels are chosen by measuring, as inside `with wg.tune():` (see [tuning.md](tuning.md)).",
    )
    native: bool = _option(
        True, _FLAG, "Native code on the cpu where llvmlite is installed; `0` computes everything by NumPy."
    )
    compile: Literal["captured", "repeated", "always"] = _option(
        "repeated",
        _one_of("captured", "repeated", "always"),
        "Which graphs become native code on the cpu: `captured` and large ones; `repeated`: those, too, that "
        "are seen again and again; or `always` every one, before it is run.",
    )
    processor: str = _option(
        "",
        _one_of(*PROCESSORS),
        "What native code is compiled for: less than the machine has, for the same results on several.",
        "the machine's own",
    )
    native_cache: int = _option(
        256 << 20,
        _SIZE,
        "Bytes of compiled native code that may be kept on disk, in `cache`; `0` keeps none.",
        '`"256MiB"`',
    )
    cache: Path | None = _option(
        None,
        _FOLDER,
        "Where what was measured, compiled or fetched (kernel choices, code, datasets, models) is kept; "
        "made when needed.",
        "the system's folder for caches",
    )
    path: Path | None = None  # the file that was read, None where there is none
    sources: Mapping[str, str] = field(default_factory=dict, hash=False)

    def source(self, option: str) -> str:
        """Where the value of an option comes from: a variable, file:key, or "default"."""
        return self.sources.get(option, "default")


@dataclass(frozen=True, slots=True)
class Option:
    """One option as it is asked about: its name is the field of Settings and the TOML key."""

    name: str
    form: _Form
    default: str  # as documented; the value itself is the field's default in Settings
    sentence: str

    @property
    def variable(self) -> str:
        """The environment variable of the same meaning."""
        return PREFIX + self.name.upper()

    @property
    def allowed(self) -> str:
        """What its values are like: completes "must be …"."""
        return self.form.allowed


OPTIONS = tuple(Option(each.name, **each.metadata) for each in fields(Settings) if each.metadata)


def config_path(
    environ: Mapping[str, str] | None = None, platform: str = sys.platform, home: Path | None = None
) -> Path:
    """Where webgrad.toml is looked for: WEBGRAD_CONFIG, else the platform's folder for settings."""
    environ = os.environ if environ is None else environ
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE]).expanduser()
    home = home or Path.home()
    if platform == "win32":
        folder = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    elif platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return folder / "webgrad" / "webgrad.toml"


def cache_path(
    environ: Mapping[str, str] | None = None, platform: str = sys.platform, home: Path | None = None
) -> Path | None:
    """The platform's folder for what webgrad may make anew, None where there is no home to keep it in."""
    environ = os.environ if environ is None else environ
    try:
        home = home or Path.home()
    except RuntimeError:
        return None
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "webgrad" / "Cache"
    if platform == "darwin":
        return home / "Library" / "Caches" / "webgrad"
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "webgrad"


def wants_colours(environ: Mapping[str, str] | None = None, platform: str = sys.platform) -> bool:
    """Whether a terminal should be written to in colours: not with NO_COLOR, nor where it has none."""
    environ = os.environ if environ is None else environ
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    # Windows' old console shows the codes as they are; the terminals that do not set these.
    return platform != "win32" or bool(environ.get("WT_SESSION") or environ.get("TERM"))


def child_environment(changes: Mapping[str, str]) -> dict[str, str]:
    """The environment for a program that webgrad starts: our own, with changes."""
    return {**os.environ, **changes}


def load_settings(
    environ: Mapping[str, str], platform: str = sys.platform, home: Path | None = None
) -> Settings:
    """The settings of an environment and its webgrad.toml.

    A variable goes before the file; an empty variable counts as unset.
    """
    path = config_path(environ, platform, home)
    table = _read_file(path, required=bool(environ.get(CONFIG_VARIABLE)))
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for option in OPTIONS:
        if environ.get(option.variable):
            raw: object = environ[option.variable]
            source = option.variable
        elif table is not None and option.name in table:
            raw, source = table[option.name], f"{path}:{option.name}"
        else:
            continue
        values[option.name] = _parse(option, raw, source)
        sources[option.name] = source
    return Settings(**values, path=None if table is None else path, sources=sources)


@functools.cache
def settings() -> Settings:
    """The settings of this process, read at the first call."""
    return load_settings(os.environ)


def reload() -> Settings:
    """Read the file and the environment again."""
    settings.cache_clear()
    return settings()


def unknown_variables(environ: Mapping[str, str] | None = None) -> tuple[tuple[str, str], ...]:
    """Variables that begin with WEBGRAD_ and mean nothing, each with the nearest known name or ""."""
    known = {option.variable for option in OPTIONS} | {CONFIG_VARIABLE}
    # Compared without the prefix, which alone makes any two of them look alike.
    words = {name.removeprefix(PREFIX): name for name in known}
    names = sorted(os.environ if environ is None else environ)
    unknown = [name for name in names if name.startswith(PREFIX) and name not in known]
    return tuple((name, words.get(_nearest(name.removeprefix(PREFIX), words), "")) for name in unknown)


def _parse(option: Option, raw: object, source: str) -> Any:
    try:
        return option.form.parse(raw)
    except (ValueError, OverflowError):
        allowed = option.allowed.replace("`", "")
        raise ConfigError(f"{source}: {raw!r} is not allowed here; it must be {allowed}.") from None


def _read_file(path: Path, *, required: bool) -> dict[str, Any] | None:
    try:
        table = tomllib.loads(_file_text(path))
    except (FileNotFoundError, NotADirectoryError):
        if required:
            raise ConfigError(f"{CONFIG_VARIABLE} names {path}, and there is no such file.") from None
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path} is not valid TOML: its brackets are nested too deeply") from None
    known = {option.name for option in OPTIONS}
    for key in table:
        if key not in known:
            near = _nearest(key, known)
            hint = f"did you mean {near}?" if near else f"the options are {', '.join(sorted(known))}."
            raise ConfigError(f"{path}:{key}: there is no such option; {hint}")
    return table


def _file_text(path: Path) -> str:
    """The text of a file of settings. A pipe would keep us waiting, and a device may never end."""
    if not stat.S_ISREG(path.stat().st_mode) and not path.samefile(os.devnull):
        raise ConfigError(f"{path} cannot be read: it is not a file, and settings are a text file.")
    with path.open("rb") as file:
        text = file.read(LARGEST_FILE + 1)
    if len(text) > LARGEST_FILE:
        raise ConfigError(f"{path} cannot be read: it is larger than {LARGEST_FILE:,} bytes.")
    return text.decode("utf-8")


def _nearest(name: str, known: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1)), "")
