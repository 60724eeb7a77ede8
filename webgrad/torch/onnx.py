"""torch.onnx: models are not written as ONNX."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["export"]


def export(*args: Any, **options: Any) -> NoReturn:
    """Refused: save the weights and load them in torch, or export the model to browsers (docs/browser.md)."""
    raise RuntimeError(
        "webgrad.torch writes no ONNX files: torch.save(model.state_dict(), path) gives a file that torch "
        "loads and can export, and webgrad.web exports a model to browsers (docs/browser.md)"
    )


def is_in_onnx_export() -> bool:
    """Whether a model is being written: never."""
    return False
