"""torch.backends: switches that programs set, and questions that they ask. What they set has no effect."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def _no() -> bool:
    return False


def _flags(**options: Any) -> Any:
    return nullcontext()


cudnn = SimpleNamespace(
    enabled=True,
    benchmark=False,
    deterministic=False,
    allow_tf32=True,
    is_available=_no,
    version=lambda: None,
    flags=_flags,
)
cuda = SimpleNamespace(
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
mps = SimpleNamespace(is_available=_no, is_built=_no)
mkl = mkldnn = openmp = SimpleNamespace(is_available=_no, enabled=False)
opt_einsum = SimpleNamespace(is_available=_no, enabled=False, strategy=None)
cpu = SimpleNamespace(get_cpu_capability=lambda: "DEFAULT")
