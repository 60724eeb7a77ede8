"""The weights of a file under the names that Hugging Face publishes them by, as the modules want them.

In: `wg.io.Weights` of safetensors or GGUF. Out: tensors on a device: matrices, several of them joined row by
row, and vectors in float32. Quantised rows stay packed; rows that GGUF stores in another order are put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import webgrad as wg

from ..arrays import Array, np
from .names import names_of_gguf, names_of_safetensors
from .reader import shown
from .settings import Settings

__all__ = ["Matrix", "Published"]

Matrix: TypeAlias = wg.Tensor | wg.QuantisedTensor
# Beginnings of names in GGUF files: pictures, and heads that sort texts, of which nothing is computed.
_IDLE = ("v.", "mm.", "cls.", "pooler.")


class Published:
    """Weights by their published names, for one device."""

    def __init__(self, weights: wg.io.Weights, settings: Settings, device: Any = None) -> None:
        self._weights = weights
        self._settings = settings
        self.device = device
        self.is_gguf = weights.kind == "gguf"
        named = names_of_gguf if self.is_gguf else names_of_safetensors
        self._names = named(settings.architecture, weights)
        self._taken: set[str] = set()  # the file's own names of what was asked for

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def host(self, name: str, shape: Sequence[int] | None = None) -> Any:
        """A weight as it is in the file, an array or blocks; its shape is checked where one is given."""
        own = self._names.get(name)
        if own is None:
            raise wg.ModelFileError(
                f"{self._weights.path}: there is no {name}; is this all of the model, and of the "
                f"architecture {self._settings.architecture}?"
            )
        self._taken.add(own)
        turned = self._is_turned(name)
        if shape is not None and self._weights.shape(own) != tuple(shape)[:: -1 if turned else 1]:
            raise wg.ModelFileError(
                f"{self._weights.path}: {own} has the shape {self._weights.shape(own)}, and the settings "
                f"make it {tuple(shape)[:: -1 if turned else 1]}"
            )
        value = _of_floats(self._weights.host(own), f"{self._weights.path}: {own}")
        return np.ascontiguousarray(np.asarray(value).T) if turned else self._in_order(name, value)

    def vector(self, name: str, size: int) -> wg.Tensor:
        """A norm's weights or a bias, in float32."""
        return wg.asarray(_plain(self.host(name, (size,))), device=self.device)

    def matrix(self, names: Sequence[str], shapes: Sequence[tuple[int, int]]) -> list[Matrix]:
        """Matrices of the same number of columns: as one, row below row, where all are stored alike."""
        parts = [self.host(name, shape) for name, shape in zip(names, shapes, strict=True)]
        if (
            all(isinstance(each, wg.io.Blocks) for each in parts)
            and len({each.format for each in parts}) == 1
        ):
            return [wg.io.Blocks.concat(parts).tensor(self.device)]
        if all(isinstance(each, np.ndarray) for each in parts) and len({each.dtype for each in parts}) == 1:
            parts = [np.concatenate(parts) if len(parts) > 1 else parts[0]]
        return [self._placed(each) for each in parts]

    def factors(self) -> Array | None:
        """The table that divides rotary frequencies, where a GGUF file has one."""
        if not self.is_gguf or "rope_freqs.weight" not in self._weights:
            return None
        self._taken.add("rope_freqs.weight")
        return _plain(_of_floats(self._weights.host("rope_freqs.weight"), "rope_freqs.weight"))

    def check_all_taken(self) -> None:
        """Raise where a GGUF file has a tensor that nothing was made of: its model computes something else.

        Folders may have more than their model: transformers, which says what they mean, passes it over.
        """
        if not self.is_gguf:
            return
        left = [each for each in self._weights if each not in self._taken and not each.startswith(_IDLE)]
        if left:
            more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
            raise wg.ModelFileError(
                f"{self._weights.path}: {shown(left[0])}{more} is none of the tensors that webgrad computes "
                f"the architecture {self._settings.architecture} with: this model has parts that are not "
                "offered"
            )

    def _placed(self, value: Any) -> Matrix:
        if isinstance(value, wg.io.Blocks):
            return value.tensor(self.device)
        return wg.asarray(value, device=self.device)

    def _is_turned(self, name: str) -> bool:
        """Hugging Face's GPT-2 has its matrices as (inputs, outputs)."""
        parts = name.split(".")
        return (
            not self.is_gguf
            and self._settings.architecture == "gpt2"
            and parts[-1] == "weight"
            and parts[-2].startswith("c_")
        )

    def _in_order(self, name: str, value: Any) -> Any:
        """GGUF's llama has the two halves of a head's queries and keys interleaved."""
        owner = name.rpartition(".")[0]
        if (
            not self.is_gguf
            or self._settings.architecture != "llama"
            or not owner.endswith(("q_proj", "k_proj"))
        ):
            return value
        rows = np.arange(value.shape[0]).reshape(-1, self._settings.head_width // 2, 2)
        order = rows.swapaxes(1, 2).reshape(-1)
        return value.take(order) if isinstance(value, wg.io.Blocks) else value[order]


def _of_floats(value: Any, name: str) -> Any:
    """Blocks, and floats that every device computes with."""
    if isinstance(value, wg.io.Blocks) or value.dtype.name in ("float32", "float16", "bfloat16"):
        return value
    if value.dtype.name != "float64":
        raise wg.ModelFileError(f"{name} is of {value.dtype.name}, and weights are floats or GGUF's blocks")
    return value.astype(np.float32)


def _plain(value: Any) -> Array:
    """Numbers in float32."""
    if isinstance(value, wg.io.Blocks):
        return value.tensor("cpu").dequantise().numpy()
    return np.asarray(value, np.float32)
