"""jit: what cannot be captured is refused, and changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.jit.helpers import DEVICES, tensor

pytestmark = pytest.mark.parametrize("device", DEVICES)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: float(x.sum()),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: print(x),
        lambda x: wg.eval(x * 2),
    ],
)
def test_a_value_inside_is_an_error(device: str, read: Any) -> None:
    function = wg.jit(read)
    x = tensor([1.0], device)
    with pytest.raises(wg.CaptureError, match=r"inside a function that webgrad\.jit captures.*static="):
        function(x)
    assert (x * 2).item() == 2  # nothing is left of it


class Holder:
    """An object of a user's."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        self.other: Any = None


def assigned(holder: Holder, x: wg.Tensor) -> None:
    holder.value = holder.value + x


def appended(holder: Holder, x: wg.Tensor) -> wg.Tensor:
    holder.other = [x * 2]
    return x + 1


def kept_and_returned(holder: Holder, x: wg.Tensor) -> dict[str, wg.Tensor]:
    holder.other = (x * x).sum()
    return {"loss": holder.other}


def drawn(holder: Holder, x: wg.Tensor) -> wg.Tensor:
    holder.other = wg.random.uniform((3,), device=x.device)
    return x


def kept_and_changed(holder: Holder, x: wg.Tensor) -> wg.Tensor:
    holder.other = x * 2
    holder.other += 1
    return x


@pytest.mark.parametrize("keep", [assigned, appended, kept_and_returned, drawn, kept_and_changed])
def test_a_tensor_that_is_kept_is_an_error(device: str, keep: Any) -> None:
    holder = Holder(tensor([0.0], device))
    with pytest.raises(
        wg.CaptureError, match=r"test_capture_mistakes\.py:\d+, is kept outside.*state\[\.\.\.\] = new"
    ):
        wg.jit(keep)(holder, tensor([1.0], device))


def test_what_is_not_kept_is_no_error(device: str) -> None:
    holder = Holder(tensor([0.0], device))

    def step(x: wg.Tensor, count: int) -> Any:
        if holder.other is None:
            holder.other = wg.arange(2.0, device=device) + 1  # made once, of no argument
        y = x * 2
        y += 1
        z = y
        y[0] = count
        holder.value += x

        def again(times: int) -> wg.Tensor:  # a ring of objects that holds a tensor
            return z if times == 0 else again(times - 1)

        pair = again(2) * holder.other
        return [pair, {"same": pair}], holder.value

    function = wg.jit(step)
    for count in range(1, 4):
        (pair, same), value = function(tensor([3.0], device), count)
        assert pair.tolist() == same["same"].tolist() == [count, 2 * count]
        assert value.tolist() == holder.value.tolist() == [3 * count]


@pytest.mark.parametrize(
    "use", [lambda x, n: x[n : n + 1], lambda x, n: range(n), lambda x, n: wg.ones((n,))]
)
def test_a_whole_number_inside_is_an_error(device: str, use: Any) -> None:
    with pytest.raises(wg.CaptureError, match=r"bound of a slice.*x\[i\] = y take a tensor as i.*static="):
        wg.jit(use)(tensor([1.0, 2.0], device), 1)


def test_an_error_inside_changes_nothing(device: str) -> None:
    weight = tensor([1.0], device)

    @wg.jit
    def fails(x: wg.Tensor) -> None:
        nonlocal weight
        weight += 5
        weight @ x.reshape(7)

    with pytest.raises(wg.ShapeError):
        fails(tensor([1, 2], device))
    assert weight.item() == 1


def test_arguments_that_cannot_be(device: str) -> None:
    with pytest.raises(wg.ArgumentError, match="'depth' is no argument of the function; it has x, n"):
        wg.jit(lambda x, n: x, static=("depth",))
    with pytest.raises(wg.ArgumentError, match="takes a function, not a int"):
        wg.jit(3)  # type: ignore[call-overload]
    with pytest.raises(wg.ArgumentError, match=r"static argument .* hashable"):
        wg.jit(lambda x, n: x, static=1)(tensor([1], device), [1, 2])  # type: ignore[call-overload]
    with pytest.raises(wg.DTypeError, match=r"arange takes a real number here.*static="):
        wg.jit(lambda n: wg.arange(n))(5)
    filled = wg.jit(lambda n: wg.full((2,), n))
    assert [filled(each).tolist() for each in (0.5, 1.5)] == [[0.5, 0.5], [1.5, 1.5]]
    scaled = wg.jit(lambda x, n: x * n)
    for _ in range(2):  # when it is captured, and when it is replayed
        with pytest.raises(wg.ArgumentError, match="does not fit int32"):
            scaled(tensor([1], device), 1 << 40)
        assert scaled(tensor([1], device), 3).item() == 3


def test_functions_that_run_bit_by_bit(device: str) -> None:
    async def later(x: wg.Tensor) -> wg.Tensor:
        return x

    def several(x: wg.Tensor) -> Any:
        yield x

    for each in (later, several):
        with pytest.raises(wg.ArgumentError, match=f"jit: {each.__name__} is a coroutine or a generator"):
            wg.jit(each)


@pytest.mark.filterwarnings("error")
def test_floats_beyond_float32_are_infinite(device: str) -> None:
    scaled = wg.jit(lambda x, n: x * n)
    largest = float(np.finfo(np.float32).max)
    for number, expected in ((1e300, np.inf), (-1e300, -np.inf), (largest * (1 + 1e-9), largest), (2.5, 2.5)):
        assert scaled(tensor([1], device), number).item() == expected
    assert np.isnan(scaled(tensor([1], device), float("nan")).item())
