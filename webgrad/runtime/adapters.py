"""Which devices there are, and which of them is used: the adapters of this machine, ranked, and the choice.

In: wgpu's adapters (asked for once a process) and the settings. Out: `AdapterInfo` records, a `Choice` with
its reason, and the raw adapter behind a record. webgpu:0 is the best adapter, and switching a device off
does not renumber the others (a backend switched off is not even asked).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from ..arrays import has_numpy, missing
from ..config import Settings
from ..config import settings as current_settings
from ..device_profile import PORTABLE
from ..errors import DeviceError, ForkError, NoAdapterError
from .declarations import hasten
from .host import install_advice, memory_bytes, processor_cores, processor_name, this_host
from .shield import shield

AdapterKind = Literal["discrete", "integrated", "other", "software", "cpu"]

# webgrad's name of a feature → wgpu-py's
FEATURE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "f16": "shader-f16",
        "f64": "shader-f64",
        "int64": "shader-int64",
        "subgroups": "subgroup",  # "subgroups" is accepted by wgpu-py and gives a device without them
        "timestamps": "timestamp-query",
        "immediates": "immediates",
        "f32-atomics": "shader-float32-atomic",
    }
)
# what WebGPU's specification has every adapter offer
PROMISED: Mapping[str, int] = MappingProxyType(
    {
        "max-storage-buffers-per-shader-stage": PORTABLE.max_storage_buffers,
        "max-storage-buffer-binding-size": PORTABLE.max_binding_bytes,
        "max-buffer-size": 256 << 20,
        "max-compute-workgroup-storage-size": PORTABLE.max_workgroup_storage,
        "max-compute-invocations-per-workgroup": PORTABLE.max_invocations,
        "max-compute-workgroups-per-dimension": PORTABLE.max_workgroups,
        "min-storage-buffer-offset-alignment": 256,
    }
)
_KINDS: Mapping[str, AdapterKind] = {
    "DiscreteGPU": "discrete",
    "IntegratedGPU": "integrated",
    "CPU": "software",
}
_KIND_RANK: tuple[AdapterKind, ...] = ("discrete", "integrated", "other", "software", "cpu")
_BACKEND_RANK = ("vulkan", "metal", "dx12", "opengl")
_BACKENDS = {"D3D12": "dx12", "OpenGLES": "opengl"}
_INSTANCE_BACKENDS = {"vulkan": "Vulkan", "metal": "Metal", "dx12": "DX12", "opengl": "GL"}
_SOFTWARE_NAMES = ("llvmpipe", "lavapipe", "softpipe", "swiftshader", "basic render driver")
_VIRTUAL_NAMES = ("venus", "virgl", "virtio")  # wgpu-native reports virtual GPUs as CPUs


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """One device: a GPU adapter, or the cpu. `features` are webgrad's names, less those switched off."""

    name: str
    backend: str  # vulkan metal dx12 opengl, browser, numpy for the cpu
    type: AdapterKind
    features: frozenset[str]
    limits: Mapping[str, int] = field(hash=False)
    device: str = ""  # "webgpu:0", "cpu"; none where it is not numbered yet
    index: int = -1  # the N of webgpu:N; -1 for the cpu
    vendor: str = ""
    driver: str = ""
    raw_features: frozenset[str] = frozenset()
    subgroup_sizes: tuple[int, int] = (0, 0)
    vendor_id: int = 0

    @property
    def software(self) -> bool:
        """Whether it is a program that plays a GPU, such as lavapipe."""
        return self.type == "software"

    @property
    def missing(self) -> tuple[str, ...]:
        """The features webgrad can use that this device lacks."""
        return tuple(name for name in FEATURE_NAMES if name not in self.features)


@dataclass(frozen=True, slots=True)
class Choice:
    """The device that is used, and why."""

    adapter: AdapterInfo
    reason: str

    @property
    def device(self) -> str:
        """Its device string."""
        return self.adapter.device


class _AdapterCache:
    """The adapters of this process, enumerated at the first `get`, with the raw object of each."""

    def __init__(self) -> None:
        # Not a plain one: where a browser is asked, other tasks of the same thread may come here meanwhile.
        self._lock = threading.RLock()
        self._process = 0
        self._entries: tuple[tuple[AdapterInfo, Any], ...] | None = None
        self.problem = ""

    def get(self) -> tuple[tuple[AdapterInfo, Any], ...]:
        # Looked at before the lock: another thread of the parent may have held it at the fork.
        if self._process not in (0, os.getpid()):
            raise ForkError(
                f"the GPU was first used in process {self._process}, and this is its forked child "
                f"{os.getpid()}, where GPU drivers hang. Start workers by the 'spawn' method "
                "(multiprocessing.get_context('spawn')), or use the cpu device in them."
            )
        with self._lock:
            if self._entries is None:
                self._process = os.getpid()
                with shield:  # the driver calls back, and a handler's OSError is none of wgpu's
                    described, self.problem = _found(current_settings().disable_backends)
                    self._entries = _numbered(described)
            return self._entries

    def replace(self, info: AdapterInfo) -> None:
        """Know more of an adapter than it told."""
        with self._lock:
            entries = self._entries or ()
            self._entries = tuple((info if info.index == old.index else old, raw) for old, raw in entries)

    def clear(self) -> None:
        self._entries = None


_cache = _AdapterCache()


def list_adapters(settings: Settings | None = None) -> tuple[AdapterInfo, ...]:
    """The GPU adapters that are not switched off, best first; software adapters included."""
    settings = settings or current_settings()
    return tuple(_restricted(info, settings) for info, _ in _cache.get() if not _switched_off(info, settings))


def devices() -> tuple[AdapterInfo, ...]:
    """Every device a program may name: the adapters, then the cpu.

    >>> wg.devices()[-1].device
    'cpu'
    """
    return (*list_adapters(), cpu_device())


def raw_adapter(index: int) -> Any:
    """The wgpu-py adapter behind webgpu:`index`."""
    for info, raw in _cache.get():
        if info.index == index:
            return raw
    raise NoAdapterError(_no_adapter(f"webgpu:{index} was asked for", list_adapters(), current_settings()))


def enumeration_problem() -> str:
    """Why wgpu could not even be asked for adapters, or "" where it could."""
    _cache.get()
    return _cache.problem


def clear_adapters() -> None:
    """Forget the adapters; the next question asks wgpu again."""
    _cache.clear()


def note_subgroups(info: AdapterInfo) -> None:
    """Have adapters listed with the size of subgroups that a trial has found."""
    there = next((each for each, _ in _cache.get() if each.index == info.index), None)
    if there is not None:
        _cache.replace(replace(there, subgroup_sizes=info.subgroup_sizes))


def cpu_device() -> AdapterInfo:
    """The cpu, which is always there."""
    return AdapterInfo(
        device="cpu",
        name=processor_name(),
        backend="numpy",
        type="cpu",
        features=frozenset({"f16", "f64", "int64"}),
        limits=MappingProxyType({"cores": processor_cores(), "memory": memory_bytes()}),
    )


def choose(spec: str | None, adapters: Sequence[AdapterInfo], settings: Settings) -> Choice:
    """The device for `spec`: cpu, webgpu, webgpu:N, a part of an adapter's name, or None for the default."""
    origin = ""
    if spec is None and settings.device is not None:
        spec, origin = settings.device, f" by {settings.source('device')}"
    if spec is None:
        return _default(adapters)
    if not isinstance(spec, str):
        raise DeviceError(
            f"a device is asked for by its name, such as 'webgpu', not by a {type(spec).__name__}."
        )
    asked = f"{spec} was asked for{origin}"
    spec = spec.strip().lower()
    if spec == "cpu":
        return Choice(cpu_device(), asked)
    if not spec:
        raise DeviceError("a device must have a name: cpu, webgpu, webgpu:N, or a part of an adapter's name.")
    if spec == "webgpu":
        matches = list(adapters)
    elif spec.startswith("webgpu:"):
        matches = [info for info in adapters if info.device == spec]
    else:
        matches = [info for info in adapters if spec in info.name.lower()]
    if not matches:
        raise NoAdapterError(_no_adapter(asked, adapters, settings))
    best = "" if len(matches) == 1 else f", and this is the best of {len(matches)} that fit"
    return Choice(matches[0], asked + best)


def _default(adapters: Sequence[AdapterInfo]) -> Choice:
    real = [info for info in adapters if not info.software]
    if real:
        best = real[0]
        # One GPU may be there through several backends: count names, not adapters.
        peers = len({info.name for info in real if info.type == best.type and info.backend == best.backend})
        kind = "GPU of unknown kind" if best.type == "other" else f"{best.type} GPU"
        return Choice(best, f"the only {kind}" if peers == 1 else f"the first of {peers} {kind}s")
    if not has_numpy():
        return _without_numpy(adapters)
    if adapters:
        reason = f"no GPU; {adapters[0].device} is a software adapter, and those are used only when asked for"
        return Choice(cpu_device(), reason)
    return Choice(cpu_device(), "no GPU adapter was found")


def _without_numpy(adapters: Sequence[AdapterInfo]) -> Choice:
    """Never the cpu, which computes with NumPy."""
    if adapters:
        return Choice(adapters[0], "no GPU, and no NumPy for the cpu to compute with")
    problem = f" ({_cache.problem.rstrip('.')})" if _cache.problem else ""
    raise missing(
        f"no GPU adapter was found{problem}, and the cpu, which would be used then,",
        "tensors need a GPU, or a browser with WebGPU",
    )


def _no_adapter(asked: str, adapters: Sequence[AdapterInfo], settings: Settings) -> str:
    lines = [f"{asked}, and there is no such GPU adapter."]
    if adapters:
        there = "; ".join(f"{info.device} = {info.name}" for info in adapters)
        lines.append(f"There are: {there}; and cpu.")
    for option in ("disable_backends", "disable_devices"):
        if getattr(settings, option):
            off = ", ".join(sorted(getattr(settings, option)))
            lines.append(f"Switched off by {settings.source(option)}: {off}.")
    if _cache.problem:
        lines.append(_cache.problem)
    if not adapters:
        lines += [f"To get one: {sentence}." for sentence in install_advice(this_host())]
        lines.append("Or use the device cpu.")
    return "\n".join(lines)


def _found(disabled_backends: frozenset[str]) -> tuple[list[tuple[AdapterInfo, Any]], str]:
    """The adapters with their raw objects, not yet numbered, and the problem where none can be asked for."""
    if sys.platform == "emscripten":
        adapter, problem = browser().find_adapter()
        return [] if adapter is None else [(adapter, None)], problem
    raw, problem = _enumerate(disabled_backends)
    return [(describe(each.info, each.features, each.limits), each) for each in raw], problem


def browser() -> Any:
    """The module for Python in a browser."""
    from . import browser  # here: it needs Pyodide

    return browser


def _enumerate(disabled_backends: frozenset[str]) -> tuple[list[Any], str]:
    """wgpu's adapters, and the problem where wgpu cannot be used at all."""
    try:
        import wgpu
        from wgpu.backends.wgpu_native import ffi
        from wgpu.backends.wgpu_native.extras import set_instance_extras
    except (ImportError, OSError, RuntimeError) as error:
        return [], f"wgpu cannot be loaded ({error}); pip install 'wgpu==0.32.*' brings it."
    hasten(ffi)
    if disabled_backends:
        enabled = [name for key, name in _INSTANCE_BACKENDS.items() if key not in disabled_backends]
        if not enabled:
            return [], ""
        # So that a disabled driver is not even loaded. Where wgpu has its instance already this is too late,
        # and the adapters are only left out of the list.
        with contextlib.suppress(RuntimeError):
            set_instance_extras(backends=enabled)
    try:
        return list(wgpu.gpu.enumerate_adapters_sync()), ""
    except RuntimeError as error:
        return [], f"wgpu could not list the adapters: {error}"


def describe(
    info: Mapping[str, Any], features: Sequence[str] | set[str], limits: Mapping[str, int]
) -> AdapterInfo:
    """The record of one wgpu adapter, not yet numbered."""
    name = str(info["device"]).strip() or "unnamed adapter"
    backend = str(info["backend_type"])
    raw_features = frozenset(features)
    return AdapterInfo(
        name=name,
        vendor=str(info["vendor"]),
        backend=_BACKENDS.get(backend, backend.lower()),
        type=_kind(name, str(info["adapter_type"])),
        driver=str(info["description"]).strip(),
        features=_features(raw_features),
        raw_features=raw_features,
        limits=MappingProxyType(dict(limits)),
        subgroup_sizes=(info.get("stackgroup_min_size", 0), info.get("stackgroup_max_size", 0)),
        vendor_id=info.get("vendor_id", 0),
    )


def _features(raw: frozenset[str]) -> frozenset[str]:
    """The features that kernels may use; they take float64 apart as integers of 64 bits, so it needs both."""
    found = frozenset(ours for ours, theirs in FEATURE_NAMES.items() if theirs in raw)
    return found if "int64" in found else found - {"f64"}


def _kind(name: str, adapter_type: str) -> AdapterKind:
    lower = name.lower()
    if any(word in lower for word in _SOFTWARE_NAMES):
        return "software"
    kind = _KINDS.get(adapter_type, "other")
    return "other" if kind == "software" and any(word in lower for word in _VIRTUAL_NAMES) else kind


def _numbered(described: Sequence[tuple[AdapterInfo, Any]]) -> tuple[tuple[AdapterInfo, Any], ...]:
    every = [info for info, _ in described]
    order = sorted(described, key=lambda entry: rank(entry[0], every))  # stable: equals keep wgpu's order
    return tuple((replace(info, index=i, device=f"webgpu:{i}"), raw) for i, (info, raw) in enumerate(order))


def rank(info: AdapterInfo, every: Sequence[AdapterInfo]) -> tuple[bool, int, int]:
    """The place of an adapter among all, least is best; a second, OpenGL view of a GPU goes last."""
    backend = _BACKEND_RANK.index(info.backend) if info.backend in _BACKEND_RANK else len(_BACKEND_RANK)
    again = any(_is_view(info, other) for other in every)
    return (again, _KIND_RANK.index(info.type), backend)


def _same_gpu(view: AdapterInfo, other: AdapterInfo) -> bool:
    # wgpu reports device id 0 for OpenGL adapters, so the vendor decides.
    if other.backend == "opengl":
        return False
    return other.name == view.name or (view.vendor_id != 0 and view.vendor_id == other.vendor_id)


def views_of(info: AdapterInfo) -> set[str]:
    """The names of an adapter, and of the OpenGL views of its GPU."""
    return {info.device, *(each.device for each, _ in _cache.get() if _is_view(each, info))}


def _is_view(view: AdapterInfo, info: AdapterInfo) -> bool:
    return view.backend == "opengl" and _same_gpu(view, info)


def _switched_off(info: AdapterInfo, settings: Settings) -> bool:
    return info.backend in settings.disable_backends or any(
        int(word) == info.index
        if word.isdecimal()
        else word == info.device or word.lower() in info.name.lower()
        for word in settings.disable_devices
    )


def _restricted(info: AdapterInfo, settings: Settings) -> AdapterInfo:
    off = settings.disable_features | (frozenset() if settings.immediates else {"immediates"})
    return replace(info, features=info.features - off) if off & info.features else info
