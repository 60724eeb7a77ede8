"""The row of users' kernels: a node is one result of one launch of a program that a user wrote.

In: what the call fixed (`KernelCall`) and the number of the result, as the node's attributes. A node's inputs
are the tensors that are read, the values that results begin with, and then the parameters as scalars, field
by field. The invariant: results of one launch have equal calls and inputs, so the scheduler launches it once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..arrays import Array, np
from ..errors import DeviceError, LaunchError
from ..graph.node import Signature
from ..graph.op import Op


@dataclass(frozen=True, slots=True, repr=False)
class KernelCall:
    """What a call of a user's kernel fixed, other than its inputs."""

    program: Any  # a `wgsl.Program` whose bindings that are read come first
    grid: tuple[int, int, int]
    results: tuple[tuple[tuple[int, ...], Any], ...]  # the shape and dtype of each
    reads: int  # how many of the inputs are read
    given: tuple[int, ...]  # the results that start from an input, in the order of these inputs
    arguments: tuple[int, ...]  # the call's own order of the tensors among the inputs; -1: None
    types: tuple[Any, ...]  # the dtypes of the inputs that are tensors
    reference: Callable[..., Any] | None = None
    native: Callable[[KernelCall, tuple[Array, ...]], list[Array]] | None = None  # without a reference

    def __repr__(self) -> str:
        return f"{self.program.label}, grid {self.grid}"

    def computed(self, inputs: tuple[Array, ...]) -> list[Array]:
        """All results by the reference, which may change the arrays of results and nothing else; without one
        by native code.
        """
        label = self.program.label
        if self.reference is None and self.native is not None:
            return self.native(self, inputs)
        if self.reference is None:
            raise DeviceError(
                f"{label} is a kernel in WGSL, which the cpu runs with llvmlite: install it, or give "
                "webgrad.kernel a reference=, a function of NumPy arrays"
            )
        count = self.reads + len(self.given)
        arrays = [each.view() for each in inputs[: self.reads]]
        for each in arrays:
            each.flags.writeable = False
        arrays += [each.copy() for each in inputs[self.reads : count]]
        found = self.reference(
            *[arrays[at] if at >= 0 else None for at in self.arguments], **self.params(inputs)
        )
        made = found if isinstance(found, tuple | list) else (found,)
        shapes = tuple(np.shape(each) for each in made)
        if shapes != tuple(shape for shape, _ in self.results):
            wanted = tuple(shape for shape, _ in self.results)
            raise LaunchError(f"{label}: the reference gave results of shapes {shapes}, not {wanted}")
        return [np.array(each) for each in made]

    def params(self, inputs: tuple[Array, ...]) -> dict[str, Any]:
        """The parameters by name, of the inputs that are scalars."""
        numbers = iter([each.item() for each in inputs[self.reads + len(self.given) :]])
        return {field.name: _field(field.type, numbers) for field in self.program.params}


def _field(type_name: str, numbers: Any) -> Any:
    return tuple([next(numbers) for _ in range(int(type_name[3]))]) if "<" in type_name else next(numbers)


def _reference(sig: Signature, *inputs: Array) -> Array:
    call, place = sig.attributes
    return call.computed(inputs)[place]  # type: ignore[no-any-return]


def _result(sigs: tuple[Signature, ...], attributes: tuple[Any, ...]) -> Any:
    call, place = attributes
    return call.results[place]


KERNEL = Op("kernel", "kernel", -1, _reference, infer=_result, doc="One result of a user's kernel.")
