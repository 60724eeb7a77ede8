"""Indexing and assignment against NumPy: every kind of key, mixed, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import webgrad as wg
from tests.functions.devices import everywhere, place
from webgrad import dtypes
from webgrad.errors import AxisError, DTypeError, IndexingError, ShapeError
from webgrad.evaluate.evaluate import plans
from webgrad.functions.array import keys, masks
from webgrad.functions.array.creation import arange, asarray, zeros
from webgrad.functions.array.indexing import nonzero, take, take_along_axis
from webgrad.graph.walk import pending
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]
BOX = np.arange(120, dtype=np.float32).reshape(4, 5, 6)

BASIC = [
    0,
    -1,
    (1, 2),
    (1, 2, 3),
    (),
    ...,
    None,
    (..., 0),
    (0, ...),
    (0, ..., 1),
    (None, 1, ..., None),
    slice(None),
    slice(1, 3),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(10, None),
    slice(-100, 100),
    slice(3, 1),
    slice(-2, None, 3),
    (slice(1, None), slice(None, None, 2)),
    (slice(None), 2, slice(None, None, -2)),
    (slice(1, 2), None, slice(4, 1, -1), -3),
    (np.int64(2), np.uint8(1)),
]
ADVANCED = [
    [0, 2],
    [[0, 1], [3, -1]],
    [],
    np.array(2),
    np.array([[-1], [0]], np.int8),
    ([0, 1], [2, 3]),
    ([[0], [1]], [2, 3]),
    ([0, 1], slice(None), [2, 3]),
    (slice(None), [0, 1], [2, 3]),
    (slice(None), [0, 1], 2),
    (0, slice(None), [2, 3]),
    (0, [1, 2], slice(1, 5, 2)),
    (slice(None, None, -1), [4, 0, 0]),
    (..., [1, 1]),
    ([0, 1], ..., [2, 3]),
    ([0, 1], None, [2, 3]),
    (None, [0, 1], [2, 3]),
    ([3, 0], slice(4, None, -2), slice(0, 0)),
    (np.zeros((2, 0), int), [1]),
]
MASKS = [
    np.array([True, False, True, False]),
    BOX > 50,
    BOX < 0,
    BOX[:, :, 0] % 2 == 0,
    (slice(None), np.array([True, False, False, True, True])),
    (np.array([True, False, True, False]), [1, 2]),
    (0, BOX[0] > 10),
    [True, False, True, True],
    True,
    False,
    (True, 1),
    (np.bool_(True), [0, 1]),
]
KEYS = [*BASIC, *ADVANCED, *MASKS]


def cpu(value: Any, dtype: Any = None) -> Tensor:
    return asarray(value, dtype, device="cpu")


def in_tensors(key: Any) -> Any:
    """The key with its arrays as tensors."""
    if isinstance(key, tuple):
        return tuple(map(in_tensors, key))
    if isinstance(key, list) and key:
        return cpu(key)
    return cpu(key) if isinstance(key, np.ndarray) else key


def check_read(array: Array, key: Any) -> None:
    expected = array[key]
    for each in (key, in_tensors(key)):
        x = cpu(array)[each]
        result = x.numpy()
        assert x.shape == result.shape == expected.shape
        np.testing.assert_array_equal(result, expected)


def check_write(array: Array, key: Any, value: Any) -> None:
    expected = array.copy()
    expected[key] = value
    for each in (key, in_tensors(key)):
        for new in (value, cpu(value) if isinstance(value, np.ndarray) else value):
            x = cpu(array)
            view, copied = x[...], x.clone()
            x[each] = new
            assert x.dtype.numpy == array.dtype
            np.testing.assert_array_equal(x.numpy(), expected)
            np.testing.assert_array_equal(view.numpy(), expected)
            np.testing.assert_array_equal(copied.numpy(), array)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key)[:40])
def test_read(key: Any) -> None:
    check_read(BOX, key)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: repr(key)[:40])
def test_write(key: Any) -> None:
    selected = BOX[key]
    check_write(BOX, key, 7.5)
    check_write(BOX, key, -1 - np.arange(selected.size, dtype=np.float32).reshape(selected.shape))
    if selected.ndim:
        check_write(BOX, key, -1 - np.arange(selected.shape[-1], dtype=np.float32))
    if selected.ndim > 1:
        check_write(
            BOX, key, -1 - np.arange(len(selected), dtype=np.float32).reshape(-1, *[1] * (selected.ndim - 1))
        )


# Keys that Hypothesis makes: NumPy is asked first whether they are any


@st.composite
def cases(draw: st.DrawFn) -> tuple[Array, Any]:
    shape = draw(arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    common = draw(st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)]))

    def entry(size: int) -> Any:
        whole = st.integers(-size, size - 1) if size else st.nothing()
        kinds: list[st.SearchStrategy[Any]] = [
            st.slices(size),
            st.just(slice(None)),
            arrays.arrays(bool, (size,)),
        ]
        if size:
            kinds += [whole, arrays.arrays(np.int64, common, elements=whole)]
        return draw(st.one_of(kinds))

    key: list[Any] = [entry(size) for size in shape[: draw(st.integers(0, len(shape)))]]
    for extra in draw(st.lists(st.sampled_from([None, None, True, ...]), max_size=2)):
        if extra is not ... or not any(each is ... for each in key):
            key.insert(draw(st.integers(0, len(key))), extra)
    return array, tuple(key)


@pytest.mark.property
@settings(max_examples=200)
@given(cases(), st.booleans())
def test_any_key(case: tuple[Array, Any], whole: bool) -> None:
    array, key = case
    try:
        expected = array[key]
    except IndexError:
        with pytest.raises(IndexingError):
            cpu(array)[key]
        return
    check_read(array, key)
    check_write(
        array, key, -1 - np.arange(expected.size, dtype=np.int32).reshape(expected.shape) if whole else -9
    )


@pytest.mark.parametrize("shape", [(0,), (0, 0), (0, 5), (2, 0)])
def test_a_mask_without_elements_selects_nothing(shape: tuple[int, ...]) -> None:
    array, mask = np.arange(10, dtype=np.int32).reshape(2, 5), np.zeros(shape, bool)
    check_read(array, mask)
    if len(shape) == 1:
        check_read(array, (slice(None), mask))
    with pytest.raises(IndexingError, match="the mask's shape"):
        cpu(array)[np.zeros((0, 3), bool)]


# Dtypes, devices, meaning


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda dtype: dtype.name)
def test_every_dtype(dtype: dtypes.DType) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype.numpy)
    check_read(array, (slice(None), [2, 0]))
    check_write(array, (slice(None), [2, 0]), array[:, :2].copy())
    check_write(array, (0, slice(None, None, 2)), array[1, 1:].copy())


def test_values_are_converted() -> None:
    x = cpu([1, 2, 3])
    x[0] = 2.9
    x[1:] = np.array([1.5, np.nan])
    assert x.tolist() == [2, 1, 0]
    x[:] = cpu([7.0, 8.0, 9.0])
    assert x.tolist() == [7, 8, 9]
    x[[0, 2]] = [-1, -2]
    assert x.tolist() == [-1, 8, -2]
    x[x < 0] = 0
    assert x.tolist() == [0, 8, 0]
    x[1] += 1
    assert x.tolist() == [0, 9, 0]


def test_the_last_of_several_values_stays() -> None:
    x = cpu([0, 0, 0])
    x[[1, 1, 1]] = [5, 6, 7]
    assert x.tolist() == [0, 7, 0]


def test_a_value_may_be_the_tensor_itself() -> None:
    x = arange(5, device="cpu")
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]
    x[::-1] = x
    assert x.tolist() == [3, 2, 1, 0, 0]


def test_indices_in_tensors_wrap_and_are_clamped() -> None:
    x = cpu([[0, 1, 2], [3, 4, 5]])
    assert x[cpu([-1, -2, 5, -9])].tolist() == [[3, 4, 5], [0, 1, 2], [3, 4, 5], [0, 1, 2]]
    assert x[cpu([0, 9]), cpu([9, -9])].tolist() == [2, 3]
    assert take(x, cpu([7, -7]), axis=1).tolist() == [[2, 0], [5, 3]]
    assert x[cpu([200], dtypes.uint8)].tolist() == [[3, 4, 5]]
    x[cpu([9])] = 0
    assert x.tolist() == [[0, 1, 2], [0, 0, 0]]
    with pytest.raises(IndexingError, match=r"axis 0 of shape \(0, 2\), which is empty"):
        zeros((0, 2), device="cpu")[cpu([0])]


def test_a_mask_is_not_read_where_a_choice_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(node: Any) -> Any:
        raise AssertionError("the mask was read")

    monkeypatch.setattr(keys, "read", refuse)
    x = cpu(BOX)
    x[x > 50] = 0
    x[cpu([True, False, True, False])] = cpu(np.ones((5, 6), np.float32))
    expected = np.where(BOX > 50, 0, BOX)
    expected[[0, 2]] = 1
    np.testing.assert_array_equal(x.numpy(), expected)


def test_slices_are_movement_only() -> None:
    x = cpu(BOX) + 0
    kinds = {node.sig.kind for node in pending([x[1:, None, ::-2, 3].node])}
    assert kinds == {"leaf", "scalar", "map", "move"}
    x[1:, ::2] = 3.0
    assert {node.sig.kind for node in pending([x.node])} <= {"leaf", "scalar", "move", "map"}


def test_a_whole_replacement_forgets_the_old_values() -> None:
    x = cpu(BOX)
    old = x.node
    x[...] = 1.0
    assert old not in pending([x.node])


# Refusals


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (4, r"index 4 is out of range for axis 0 with size 4 \(shape \(4, 5, 6\)\)"),
        (-5, "index -5 is out of range for axis 0"),
        ((0, 5), "index 5 is out of range for axis 1 with size 5"),
        ([0, 7], "index 7 is out of range for axis 0"),
        ((slice(None), [0, -6]), "index -6 is out of range for axis 1"),
        ((0, 0, 0, 0), r"4 indices for a tensor of 3 dimensions \(shape \(4, 5, 6\)\)"),
        ((..., ...), "only one ellipsis"),
        (1.5, "1.5 is not an index"),
        ("a", "'a' is not an index"),
        ([0.5], "float64 values are not indices"),
        (np.array([1.0]), "float64 values are not indices"),
        ([[1], [1, 2]], "not an array of indices"),
        (slice(0, 2, 0), "is not a slice.*zero"),
        (slice(0.5, 2), "is not a slice"),
        (([0, 1], [0, 1, 2]), r"shapes \(2,\) and \(3,\), which do not broadcast"),
        (np.array([True, False]), r"the mask's shape \(2,\) is not that of the axes it selects from, \(4,\)"),
        (np.zeros((4, 4), bool), r"the mask's shape \(4, 4\) is not .*\(4, 5\)"),
        (np.zeros((4, 5, 6, 1), bool), "4 indices for a tensor of 3"),
    ],
    ids=repr,
)
def test_keys_that_are_none(key: Any, message: str) -> None:
    with pytest.raises(IndexingError, match=message):
        cpu(BOX)[key]
    with pytest.raises(IndexingError, match=message):
        cpu(BOX)[key] = 1.0


def test_tensors_that_are_no_index() -> None:
    with pytest.raises(IndexingError, match=r"a float32 tensor cannot index.*astype"):
        cpu(BOX)[cpu([0.0])]
    with pytest.raises(IndexingError, match="out of range for axis 0"):
        cpu(1.0)[None][3]
    with pytest.raises(IndexingError, match="1 indices for a tensor of 0"):
        cpu(1.0)[0]


def test_values_that_do_not_fit() -> None:
    x = cpu(BOX)
    with pytest.raises(
        ShapeError, match=r"a value of shape \(7,\) does not broadcast to the selection's shape \(5, 6\)"
    ):
        x[0] = np.zeros(7, np.float32)
    with pytest.raises(ShapeError, match=r"a value of shape \(3, 1, 1\) does not broadcast.*\(2, 5, 6\)"):
        x[[0, 1]] = np.zeros((3, 1, 1), np.float32)
    with pytest.raises(ShapeError, match="does not broadcast"):
        x[x > 100] = np.zeros(3, np.float32)
    with pytest.raises(DTypeError, match="300 does not fit uint8"):
        zeros(3, dtypes.uint8, device="cpu")[0] = 300
    with pytest.raises(DTypeError, match=r"x.* = value: a str of <U1 values"):
        x[0] = "a"
    np.testing.assert_array_equal(x.numpy(), BOX)


# Functions


def test_take() -> None:
    for axis in (0, 1, -1, None):
        for index in ([1, 0, 1], [[0, -1]], 2, [], np.array([3], np.uint8)):
            expected = np.take(BOX, np.asarray(index, int), axis)
            for each in (index, cpu(index, dtypes.int32)):
                x = take(cpu(BOX), each, axis=axis)
                assert x.shape == expected.shape
                np.testing.assert_array_equal(x.numpy(), expected)
    with pytest.raises(AxisError, match="take: there is no axis 3"):
        take(cpu(BOX), [0], axis=3)
    with pytest.raises(IndexingError, match="take: index 4 is out of range for axis 0"):
        take(cpu(BOX), [4], axis=0)
    with pytest.raises(IndexingError, match="take: float32 values are not indices"):
        take(cpu(BOX), [0.5], axis=0)
    with pytest.raises(IndexingError, match="take: 'a' holds no indices"):
        take(cpu(BOX), "a", axis=0)


def test_take_along_axis() -> None:
    for axis in (0, 1, 2, -1):
        order = np.argsort(-BOX, axis=axis)
        expected = np.take_along_axis(BOX, order, axis)
        np.testing.assert_array_equal(take_along_axis(cpu(BOX), order, axis).numpy(), expected)
        np.testing.assert_array_equal(take_along_axis(cpu(BOX), cpu(order), axis).numpy(), expected)
    best = np.argmax(BOX, axis=1, keepdims=True)
    np.testing.assert_array_equal(take_along_axis(cpu(BOX), best, 1).numpy(), BOX.max(1, keepdims=True))
    with pytest.raises(ShapeError, match="must have the same number of dimensions"):
        take_along_axis(cpu(BOX), [0], axis=1)


def test_nonzero() -> None:
    array = np.array([[0, 2, 0], [3, 0, np.nan]], np.float32)
    found = nonzero(cpu(array))
    assert all(each.dtype is dtypes.int32 for each in found)
    assert [each.tolist() for each in found] == [each.tolist() for each in np.nonzero(array)]
    assert [each.shape for each in nonzero(zeros((2, 0), device="cpu"))] == [(0,), (0,)]
    np.testing.assert_array_equal(cpu(array)[found].numpy(), array[np.nonzero(array)])
    with pytest.raises(ShapeError, match="nonzero of a 0-d tensor"):
        nonzero(cpu(1.0))


@everywhere
@pytest.mark.parametrize("few", [0, masks.MAX_READ_FLAGS])
@pytest.mark.parametrize("shape", [(0,), (1,), (700,), (3, 0, 2), (4, 5, 6)])
def test_nonzero_everywhere(
    kind: str, few: int, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masks, "MAX_READ_FLAGS", few)
    array = np.random.default_rng(3).integers(0, 3, shape).astype(np.int16)
    for dtype in (np.int16, np.bool_, np.complex64):
        found = nonzero(place(kind, array.astype(dtype)))
        assert [each.tolist() for each in found] == [each.tolist() for each in np.nonzero(array)]


@everywhere
@pytest.mark.parametrize("wanted", [0.0, 0.4, 1.0])
def test_masks_that_stay_on_the_device(kind: str, wanted: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "MAX_READ_FLAGS", 0)
    generator = np.random.default_rng(5)
    keys: tuple[tuple[tuple[int, ...], Any], ...] = (
        ((4, 5, 6), lambda mask: mask),
        ((4,), lambda mask: (mask, slice(1, 3))),
        ((5, 6), lambda mask: (slice(None), mask)),
        ((5,), lambda mask: (..., mask, 2)),
    )
    for shape, key in keys:
        array = generator.standard_normal((4, 5, 6)).astype(np.float32)
        mask = generator.random(shape) < wanted
        x, there = place(kind, array), place(kind, mask)
        np.testing.assert_array_equal(x[key(there)].numpy(), array[key(mask)])
        x[key(there)] = x[key(there)] + 1
        array[key(mask)] += 1
        np.testing.assert_array_equal(x.numpy(), array)


# Few elements on the cpu that are known: moved at once


def test_what_is_known_is_moved_at_once() -> None:
    x = cpu(BOX)
    part = x[1, ::-1]
    assert part.node.sig.kind == "leaf"
    np.testing.assert_array_equal(part.numpy(), BOX[1, ::-1])
    x[1, 0] = 5  # a view, whose base is written to
    changed = BOX.copy()
    changed[1, 0] = 5
    np.testing.assert_array_equal(part.numpy(), changed[1, ::-1])
    part[0, 0] = 7
    changed[1, -1, 0] = 7
    np.testing.assert_array_equal(x.numpy(), changed)


def test_items_that_are_put_together_are_no_graphs() -> None:
    made = plans()
    for length in range(1, 9):
        word = wg.asarray(list(range(1, length + 1)), device="cpu")
        item = wg.zeros(10, dtype=word.dtype, device="cpu")
        item[1 : 1 + length] = word
        item[length + 1 :] = -1
        wanted = [0, *range(1, length + 1), *[-1] * (9 - length)]
        assert item.tolist() == wanted
        with pytest.raises(ShapeError, match="does not broadcast"):
            item[:2] = wg.asarray([1, 2, 3], dtype=word.dtype, device="cpu")
        with pytest.raises(IndexingError, match="out of range"):
            item[10] = 1
        assert item.tolist() == wanted
    assert plans() == made


def test_gradients_go_through_what_is_known() -> None:
    w = cpu(BOX).requires_grad_()
    part = w[1] * 2
    part.sum().backward()
    grad: Any = w.grad
    assert grad.numpy()[1].min() == 2 == grad.numpy().max()
    with wg.no_grad():
        assert not w[1].requires_grad
    x = wg.zeros(3, device="cpu")
    x[1] = w[0, 0, 0]
    assert x.requires_grad


def test_what_a_captured_function_moves_is_no_constant() -> None:
    @wg.jit
    def second(x: wg.Tensor) -> wg.Tensor:
        y = wg.zeros(3, device="cpu")
        y[1:] = x[:2]
        return y

    for at in range(3):
        assert second(cpu(np.full(4, at, np.float32))).tolist() == [0, at, at]


ONE_OF_AN_AXIS: list[Any] = [
    [1],
    (slice(None), [-1]),
    (..., [2]),
    (None, [1]),
    (slice(None), None, [1]),
    ([1], None),
    (slice(None, None, -1), [2]),
    (slice(1, 3), [0], ...),
    (0, [1]),
    ([1], slice(None), [2]),
    ([True, False, True, True],),
]


@everywhere
@pytest.mark.parametrize("key", ONE_OF_AN_AXIS, ids=str)
def test_a_list_of_one_index_copies(kind: str, key: Any) -> None:
    x = place(kind, BOX)
    found = x[key]
    np.testing.assert_array_equal(found.numpy(), BOX[key])
    found += 1
    np.testing.assert_array_equal(x.numpy(), BOX)


def test_a_list_of_one_index_is_movement() -> None:
    x = asarray(BOX, device="cpu")
    assert {each.sig.kind for each in pending([x[:, [-1]].node])} == {"leaf", "move"}
    whole = x[:, :1]
    found = whole[:, [0]]
    found += 1
    np.testing.assert_array_equal(whole.numpy(), BOX[:, :1])
    with pytest.raises(IndexingError, match="index 5 is out of range for axis 1"):
        x[:, [5]]
