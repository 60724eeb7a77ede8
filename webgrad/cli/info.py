"""`webgrad info`: everything about this machine that decides how webgrad runs, as text or as JSON.

In: the adapters, the settings and the installed versions. Out: a `Report`, then its text. It exits 0 without
a GPU and says what to install; only a setting that cannot be understood makes it fail.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from .. import __version__, config
from ..errors import ArgumentError, NoAdapterError
from ..native import compiler
from ..runtime import adapters, host
from .onnx_info import info_onnx
from .onnx_models import is_onnx
from .options import Parser, add_device, add_json
from .text import NO_BREAK, Line, encodable, layout, size

__all__ = ["Report", "collect", "in_short", "main", "versions"]

# extra → the packages that it installs
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "lm": ("tokenizers", "jinja2"),
    "hub": ("huggingface_hub",),
}
# limit → (what to call it, whether it is a number of bytes)
LIMITS: Mapping[str, tuple[str, bool]] = {
    "max-buffer-size": ("buffer", True),
    "max-storage-buffer-binding-size": ("binding", True),
    "max-storage-buffers-per-shader-stage": ("storage buffers", False),
    "max-compute-workgroup-storage-size": ("workgroup memory", True),
    "max-compute-invocations-per-workgroup": ("threads per workgroup", False),
    "max-compute-workgroups-per-dimension": ("workgroups per dimension", False),
    "max-immediate-size": ("immediates", True),
    "cores": ("cores", False),
    "memory": ("memory", True),
}


@dataclass(frozen=True, slots=True)
class Report:
    """What `webgrad info` knows, before it is text."""

    versions: Mapping[str, str]
    devices: tuple[adapters.AdapterInfo, ...]
    default: str  # "" where the device asked for is not there
    reason: str
    advice: tuple[str, ...]  # what to install; empty where there is a GPU
    settings: config.Settings
    unknown_variables: tuple[tuple[str, str], ...]
    extras: Mapping[str, Mapping[str, str]]  # extra → package → its version, "" where it is not installed
    cache: Path | None  # None where there is no home to keep it in
    cache_bytes: int
    objects: tuple[int, int]  # files of native code in the cache, and their bytes


def collect(device: str | None = None) -> Report:
    """Ask the machine; a missing GPU is a part of the answer, a wrong setting is a ConfigError."""
    settings = config.settings()
    with _quiet():
        devices = adapters.devices()
        problem = adapters.enumeration_problem()
    gpus = tuple(device for device in devices if device.type != "cpu")
    try:
        choice = adapters.choose(device, gpus, settings)
        default, reason = choice.device, choice.reason
    except NoAdapterError as error:
        if device is not None:
            raise
        default, reason = "", str(error).splitlines()[0]
    advice: tuple[str, ...] = ()
    if all(gpu.software for gpu in gpus):
        advice = host.install_advice(host.this_host(), has_software=any(gpus))
        advice = (problem, *advice) if problem else advice
    cache = settings.cache or config.cache_path()
    return Report(
        versions=versions(),
        devices=devices,
        default=default,
        reason=reason,
        advice=advice,
        settings=settings,
        unknown_variables=config.unknown_variables(),
        extras={extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()},
        cache=cache,
        cache_bytes=_bytes_in(cache) if cache is not None else 0,
        objects=compiler.objects().usage(),
    )


def in_short(device: str | None = None) -> str:
    """The device that is used and why, in a line."""
    return _short(collect(device))


def main(arguments: Sequence[str]) -> int:
    """Print the report to standard output."""
    parser = Parser(
        prog="webgrad info",
        description="Show devices, features, packages and settings; or what is in an ONNX model.",
    )
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="an .onnx file, or a name of webgrad models"
    )
    add_device(parser)
    add_json(parser)
    parser.add_argument("--short", action="store_true", help="only the device that is used, and why")
    options = parser.parse_args(arguments)
    if options.model is not None:
        if not is_onnx(options.model):
            raise ArgumentError(
                f"{options.model} is no ONNX model; of others: webgrad models {options.model}"
            )
        return info_onnx(options.model, as_json=options.json)
    report = collect(options.device)
    if options.json:
        print(json.dumps(as_json(report), indent=2))
    elif options.short:
        print(encodable(_short(report), sys.stdout.encoding or "ascii"))
    else:
        show(report, sys.stdout, shutil.get_terminal_size((100, 24)).columns)
    return 0


def show(report: Report, stream: TextIO, width: int) -> None:
    """Write the report as text, `width` columns wide, in characters the stream can carry."""
    text = "\n".join(layout(_lines(report), width))
    print(encodable(text, stream.encoding or "ascii"), file=stream)


def as_json(report: Report) -> dict[str, Any]:
    """The report in plain JSON types."""
    return {
        "versions": dict(report.versions),
        "devices": [_device_json(device) for device in report.devices],
        "default": {"device": report.default or None, "reason": report.reason},
        "advice": list(report.advice),
        "extras": {
            extra: {name: version or None for name, version in packages.items()}
            for extra, packages in report.extras.items()
        },
        "cache": {
            "path": str(report.cache) if report.cache else None,
            "bytes": report.cache_bytes,
            "native": {"files": report.objects[0], "bytes": report.objects[1]},
        },
        "config": {
            "path": str(report.settings.path or config.config_path()),
            "found": report.settings.path is not None,
            "settings": {
                option.name: {
                    "value": _plain(getattr(report.settings, option.name)),
                    "source": report.settings.source(option.name),
                }
                for option in config.OPTIONS
            },
            "unknown_variables": [name for name, _ in report.unknown_variables],
        },
    }


def versions() -> dict[str, str]:
    """What is installed, and the system."""
    found = {"webgrad": __version__, "Python": platform.python_version()}
    for name in ("numpy", "ml_dtypes", "wgpu"):
        found[name] = _version(name) or "not installed"
    return found | {"system": f"{platform.system()} {platform.release()} {platform.machine()}"}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _bytes_in(folder: Path) -> int:
    """What the files in a folder take; those that vanish or cannot be seen count nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(place) / name).lstat().st_size
    return total


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what drivers write to standard error (Mesa does) out of the report; give it back on an error."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as noise:
        kept = os.dup(2)
        os.dup2(noise.fileno(), 2)
        try:
            yield
        except BaseException:
            noise.seek(0)
            os.write(kept, noise.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _lines(report: Report) -> Iterator[Line]:
    yield Line(" · ".join(f"{name}{NO_BREAK}{text}" for name, text in report.versions.items()))
    yield Line("Devices")
    for device in report.devices:
        yield from _device_lines(device)
    yield Line("Default device")
    yield Line(report.default or "none", report.reason)
    if report.advice:
        yield Line("To get a GPU adapter")
        yield from (Line("", "· " + sentence) for sentence in report.advice)
    yield Line("Packages and files")
    for extra, packages in report.extras.items():
        yield Line(extra, _extra_text(extra, packages))
    if report.cache is not None:
        yield Line("cache", f"{report.cache} ({size(report.cache_bytes)})")
        count, nbytes = report.objects
        yield Line("native code", f"{count} files ({size(nbytes)}) of the cache: webgrad native")
    else:
        yield Line("cache", "there is no home folder to keep it in: name one with WEBGRAD_CACHE")
    yield Line("Settings")
    found = report.settings.path is not None
    path = report.settings.path or config.config_path()
    yield Line("file", f"{path}" + ("" if found else " (not there)"))
    for option in config.OPTIONS:
        value, source = _plain(getattr(report.settings, option.name)), report.settings.source(option.name)
        yield Line(option.name, f"{_say(value)}" + ("" if source == "default" else f" ({source})"))
    for name, near in report.unknown_variables:
        yield Line("unknown", f"{name} means nothing" + (f"; did you mean {near}?" if near else ""))


def _extra_text(extra: str, packages: Mapping[str, str]) -> str:
    text = ", ".join(f"{name}{NO_BREAK}{version or '–'}" for name, version in packages.items())
    return text if all(packages.values()) else f'{text}: pip install "webgrad[{extra}]"'


def _short(report: Report) -> str:
    """The device that is used and why, in a line."""
    names = {device.device: device.name for device in report.devices}
    shown = f"{report.default} ({names[report.default]})" if report.default else "no device"
    return f"webgrad {__version__} on {shown}: {report.reason}"


def _device_lines(device: adapters.AdapterInfo) -> Iterator[Line]:
    facts = (device.name, device.type if device.type != "cpu" else "", device.backend, device.driver)
    yield Line(device.device, " · ".join(fact for fact in facts if fact))
    if device.type != "cpu":
        marks = (
            f"{'✓' if name in device.features else '–'}{NO_BREAK}{name}" for name in adapters.FEATURE_NAMES
        )
        yield Line("", "features: " + ", ".join(marks))
        if "subgroups" in device.features:
            low, high = device.subgroup_sizes
            yield Line("", f"subgroup size: {low}" + (f" to {high}" if high != low else ""))
    known = ((*LIMITS[name], device.limits[name]) for name in LIMITS if name in device.limits)
    limits = (f"{title} {size(value) if is_bytes else value}" for title, is_bytes, value in known if value)
    yield Line("", "limits: " + ", ".join(limits))


def _device_json(device: adapters.AdapterInfo) -> dict[str, Any]:
    return {
        "device": device.device,
        "name": device.name,
        "vendor": device.vendor,
        "backend": device.backend,
        "type": device.type,
        "driver": device.driver,
        "software": device.software,
        "features": sorted(device.features),
        "missing": list(device.missing),
        "raw_features": sorted(device.raw_features),
        "subgroup_sizes": list(device.subgroup_sizes),
        "limits": dict(device.limits),
    }


def _plain(value: object) -> object:
    if isinstance(value, frozenset | tuple):
        return sorted(value)
    return str(value) if isinstance(value, config.MemoryBudget | Path) else value


def _say(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if value in (None, ""):
        return "not set"
    return ("off", "on")[value] if isinstance(value, bool) else str(value)
