"""Methods of tensors by PyTorch's names that are not functions: other dtypes, sizes, and changes in place.

In: a tensor. Out: another one, a number, or itself with another value. They are a class of their own,
since `float`, `int` and `bool` are types everywhere else in Tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import dtypes
from ..dtypes import DType
from ..errors import ShapeError
from ..gradients.requires_grad import set_data
from .array import creation, scatters
from .random import Generator, default_generator
from .spellings import spelled

if TYPE_CHECKING:
    from ..tensor import Tensor


def _converted(dtype: DType) -> Callable[[Any], Tensor]:
    def method(self: Any) -> Tensor:
        converted: Tensor = self.to(dtype)
        return converted

    method.__doc__ = f"As {dtype.name}."
    return method


def _like(x: Any, dtype: Any = None, device: Any = None) -> dict[str, Any]:
    """The dtype and the device of a tensor, where no others are given."""
    return {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}


class PytorchMethods:
    """Methods of Tensor by PyTorch's names."""

    __slots__ = ()

    # The values alone

    @property
    def data(self: Any) -> Any:
        """A view of the values that no gradient goes through; set it to have the values of another tensor.

        >>> w = wg.ones(2).requires_grad_()
        >>> w.data.mul_(3.0).tolist(), w.tolist(), w.requires_grad
        ([3.0, 3.0], [3.0, 3.0], True)
        """
        return self.detach()

    @data.setter
    def data(self: Any, value: Any) -> None:
        set_data(self, value)

    # Sizes

    def dim(self: Any) -> Any:
        """How many axes it has."""
        return self.ndim

    def numel(self: Any) -> Any:
        """How many elements it has."""
        return self.size

    # Shapes

    def t(self: Any) -> Any:
        """A matrix with its two axes exchanged; what has fewer is itself.

        >>> wg.ones((2, 3)).t().shape
        (3, 2)
        """
        if self.ndim > 2:
            raise ShapeError(
                f"t() of a tensor of shape {self.shape}: it exchanges the axes of matrices; use x.mT or "
                "x.transpose(first, second)"
            )
        return self.T

    @property
    def mH(self: Any) -> Any:
        """The last two axes exchanged, and complex numbers conjugated: the adjoint of matrices.

        >>> wg.asarray([[1 + 1j, 2 - 3j]]).mH.tolist()
        [[(1-1j)], [(2+3j)]]
        """
        return (self.conj() if self.dtype.kind == "c" else self).mT

    def adjoint(self: Any) -> Any:
        """The same as `mH`."""
        return self.mH

    @property
    def H(self: Any) -> Any:
        """The adjoint of a matrix; `mH` takes stacks of them too."""
        if self.ndim != 2:
            raise ShapeError(f"H of a tensor of shape {self.shape}: it is for matrices; use x.mH for stacks")
        return self.mH

    def view_as(self: Any, other: Tensor) -> Any:
        """In the shape of another tensor."""
        return self.reshape(other.shape)

    reshape_as = view_as

    def expand_as(self: Any, other: Tensor) -> Any:
        """Repeated to the shape of another tensor."""
        return self.expand(other.shape)

    # In place: the tensor gets another value; under no_grad() only where it requires a gradient itself

    def add_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        """x += alpha * other.

        >>> wg.asarray([1.0, 2.0]).add_(wg.ones(2), alpha=0.5).tolist()
        [1.5, 2.5]
        """
        self += other if alpha == 1 else other * alpha
        return self

    def sub_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        """x -= alpha * other."""
        self -= other if alpha == 1 else other * alpha
        return self

    def mul_(self: Any, other: Any) -> Any:
        """x *= other."""
        self *= other
        return self

    def div_(self: Any, other: Any) -> Any:
        """x /= other."""
        self /= other
        return self

    def clamp_(self: Any, min: Any = None, max: Any = None) -> Any:
        """Clamp every element to two bounds.

        >>> wg.asarray([-2.0, 0.5, 2.0]).clamp_(-1, 1).tolist()
        [-1.0, 0.5, 1.0]
        """
        self[...] = self.clip(min, max)
        return self

    def copy_(self: Any, source: Any) -> Any:
        """Take another tensor's values, broadcast, and converted to this one's dtype and device.

        >>> wg.zeros(3).copy_(wg.asarray([1.0, 2.0, 3.0])).tolist()
        [1.0, 2.0, 3.0]
        """
        self[...] = source.to(self.device, self.dtype) if hasattr(source, "to") else source
        return self

    def fill_(self: Any, value: Any) -> Any:
        """Make every element one number.

        >>> wg.zeros(2).fill_(3.0).tolist()
        [3.0, 3.0]
        """
        self[...] = value
        return self

    def zero_(self: Any) -> Any:
        """Make every element zero."""
        return self.fill_(0)

    def masked_fill_(self: Any, mask: Any, value: Any) -> Any:
        """Make every element one number where the mask is true."""
        self[...] = self.masked_fill(mask, value)
        return self

    def normal_(self: Any, mean: Any = 0.0, std: Any = 1.0, *, generator: Generator | None = None) -> Any:
        """Make the elements normally distributed random numbers.

        >>> wg.zeros((2, 3)).normal_(std=0.02).shape
        (2, 3)
        """
        drawn = (generator or default_generator).normal(self.shape, **_like(self), mean=mean, std=std)
        return self.copy_(drawn)

    def uniform_(self: Any, low: Any = 0.0, high: Any = 1.0, *, generator: Generator | None = None) -> Any:
        """Make the elements random numbers from `low` to `high`.

        >>> wg.zeros((2, 3)).uniform_(-1, 1).shape
        (2, 3)
        """
        drawn = (generator or default_generator).uniform(self.shape, **_like(self), low=low, high=high)
        return self.copy_(drawn)

    @spelled
    def index_add_(self: Any, axis: Any, index: Any, source: Any, *, alpha: Any = 1) -> Any:
        """Add slices to those of an axis, in PyTorch's order of arguments; repeated ones add up.

        >>> wg.zeros(3).index_add_(0, wg.asarray([0, 0, 2]), wg.ones(3)).tolist()
        [2.0, 0.0, 1.0]
        """
        self[...] = scatters.index_add(self, index, source if alpha == 1 else source * alpha, axis)
        return self

    @spelled
    def scatter_(self: Any, axis: Any, index: Any, source: Any) -> Any:
        """Write elements, or one number, at an index for each along an axis, in PyTorch's order of arguments.

        >>> wg.zeros((2, 2)).scatter_(1, wg.asarray([[1], [0]]), 5.0).tolist()
        [[0.0, 5.0], [5.0, 0.0]]
        """
        self[...] = scatters.scatter_set(self, index, source, axis)
        return self

    @spelled
    def scatter_add_(self: Any, axis: Any, index: Any, source: Any) -> Any:
        """Add elements at an index for each along an axis, in PyTorch's order of arguments.

        >>> wg.zeros((1, 2)).scatter_add_(1, wg.asarray([[1, 1]]), wg.ones((1, 2))).tolist()
        [[0.0, 2.0]]
        """
        self[...] = scatters.scatter_add(self, index, source, axis)
        return self

    # New ones of its dtype on its device

    def new_zeros(self: Any, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
        """Zeros of its dtype, on its device, if no others are given.

        >>> wg.ones(1).new_zeros(2, 3).shape
        (2, 3)
        """
        return creation.zeros(*shape, **_like(self, dtype, device))

    def new_ones(self: Any, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
        """Ones of its dtype, on its device, if no others are given."""
        return creation.ones(*shape, **_like(self, dtype, device))

    def new_empty(self: Any, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
        """A tensor to be filled later, of its dtype, on its device, if no others are given."""
        return creation.empty(*shape, **_like(self, dtype, device))

    def new_full(self: Any, shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
        """One number in its dtype, on its device, if no others are given.

        >>> wg.ones(1).new_full((2,), 7).tolist()
        [7.0, 7.0]
        """
        return creation.full(shape, fill_value, **_like(self, dtype, device))

    def new_tensor(self: Any, values: Any, *, dtype: Any = None, device: Any = None) -> Any:
        """Values in its dtype, on its device, if no others are given.

        >>> wg.ones(1).new_tensor([1, 2]).tolist()
        [1.0, 2.0]
        """
        return creation.tensor(values, **_like(self, dtype, device))

    def cpu(self: Any) -> Any:
        """The same on the cpu."""
        return self.to_device("cpu")

    # Other dtypes: itself where it has that already; those of 64 bits are not on all GPUs

    half = _converted(dtypes.float16)
    bfloat16 = _converted(dtypes.bfloat16)
    double = _converted(dtypes.float64)
    float = _converted(dtypes.float32)
    int = _converted(dtypes.int32)
    cfloat = _converted(dtypes.complex64)
    cdouble = _converted(dtypes.complex128)
    long = _converted(dtypes.int64)
    bool = _converted(dtypes.bool)
