"""torch.backends: switches that programs set, and questions that they ask. What they set has no effect."""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def _no() -> bool:
    return False


def _flags(**options: Any) -> Any:
    return nullcontext()


def _switches(name: str, **values: Any) -> ModuleType:
    """A module, as programs import it, whose switches can be read and set."""
    module = ModuleType(f"{__name__}.{name}", f"torch.backends.{name}: taken, and without effect.")
    vars(module).update(values)
    return module


cudnn = _switches(
    "cudnn",
    enabled=True,
    benchmark=False,
    deterministic=False,
    allow_tf32=True,
    is_available=_no,
    version=lambda: None,
    flags=_flags,
)
cuda = _switches(
    "cuda",
    matmul=SimpleNamespace(
        allow_tf32=False,
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
    ),
    is_built=_no,
    enable_flash_sdp=lambda enabled: None,
    enable_mem_efficient_sdp=lambda enabled: None,
    enable_math_sdp=lambda enabled: None,
    sdp_kernel=_flags,
    flash_sdp_enabled=lambda: True,
)
mps = _switches("mps", is_available=_no, is_built=_no)
mkl, mkldnn, openmp = (
    _switches(each, is_available=_no, enabled=False) for each in ("mkl", "mkldnn", "openmp")
)
opt_einsum = _switches("opt_einsum", is_available=_no, enabled=False, strategy=None)
cpu = _switches("cpu", get_cpu_capability=lambda: "DEFAULT")
