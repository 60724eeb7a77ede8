"""Products against NumPy: matmul's shapes, tensordot, every form of einsum, linear, dtypes, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graph.helpers import nodes_under
from webgrad import dtypes
from webgrad.errors import AxisError, DTypeError, ShapeError
from webgrad.functions.array import products
from webgrad.functions.array.creation import asarray
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + len(shape)).integers(-4, 5, size=shape).astype(np.float32)


def check(result: Tensor, expected: Any) -> None:
    found = result.numpy()
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)


def kinds_in(x: Tensor) -> list[str]:
    return [node.sig.kind for node in nodes_under([x.node])]


SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((0,), (0,)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = numbers(*a), numbers(*b, seed=1)
    check(products.matmul(on_cpu(x), on_cpu(y)), x @ y)
    check(on_cpu(x) @ on_cpu(y), x @ y)


@pytest.mark.parametrize(
    ("a", "b"),
    [((3,), (4,)), ((2, 3), (2, 3)), ((2, 3), (4,)), ((3,), (4, 3)), ((2, 2, 3), (3, 3, 4)), ((), (3,))],
)
def test_shapes_that_have_no_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="matmul"):
        products.matmul(on_cpu(np.ones(a)), on_cpu(np.ones(b)))


def test_the_error_of_matmul_shows_both_shapes() -> None:
    with pytest.raises(ShapeError, match=r"matmul of \(3,\) and \(4, 3\).*\.mT"):
        products.matmul(on_cpu(np.ones(3)), on_cpu(np.ones((4, 3))))


def test_dtypes_of_products() -> None:
    ints = on_cpu([[100, 100]], dtypes.int8)
    assert products.matmul(ints, on_cpu([1, 1], dtypes.int8)).dtype is dtypes.int8
    assert products.matmul(on_cpu([100, 100], dtypes.int8), on_cpu([1, 1], dtypes.int8)).item() == 200 - 256
    assert products.matmul(ints, on_cpu([1.0, 1.0])).dtype is dtypes.float32
    for op in (products.matmul, products.dot, products.vecdot, products.outer):
        with pytest.raises(DTypeError, match="is not offered for bool"):
            op(on_cpu([True]), on_cpu([True]))
    with pytest.raises(DTypeError, match="einsum is not offered for bool"):
        products.einsum("i,i", on_cpu([True]), on_cpu([True]))


@pytest.mark.parametrize("op", [products.matmul, products.vecdot, products.dot])
def test_small_floats_are_summed_wide(op: Any) -> None:
    x = on_cpu(np.full(4097, 1.0), dtypes.float16)
    result = op(x, x)
    assert result.dtype is dtypes.float16
    assert result.item() == np.float16(4097)  # a running sum in float16 stops at 2048


def test_vectors_need_no_matrix_product() -> None:
    x = on_cpu(np.ones(5, np.float32))
    for result in (products.matmul(x, x), products.vecdot(x, x), products.einsum("i,i", x, x)):
        assert kinds_in(result) == ["leaf", "map", "reduce"]


@pytest.mark.parametrize("axis", [-1, 0, -2])
def test_vecdot(axis: int) -> None:
    x, y = numbers(3, 3), numbers(3, 3, seed=1)
    check(products.vecdot(on_cpu(x), on_cpu(y), axis), np.sum(x * y, axis))


def test_vecdot_broadcasts() -> None:
    x, y = numbers(2, 1, 3), numbers(4, 3)
    check(products.vecdot(on_cpu(x), on_cpu(y)), np.sum(x * y, -1))
    with pytest.raises(ShapeError, match="vectors of 3 and 1 elements have no inner product"):
        products.vecdot(on_cpu(x), on_cpu(np.ones((4, 1))))
    with pytest.raises(AxisError, match="vecdot: there is no axis 2"):
        products.vecdot(on_cpu(y), on_cpu(y), 2)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((), (2, 3)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3,)),
        ((2, 3), (5, 3, 4)),
        ((2, 5, 3), (2, 3, 4)),
    ],
)
def test_dot(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = numbers(*a), numbers(*b, seed=1)
    check(products.dot(on_cpu(x), on_cpu(y)), np.dot(x, y))


def test_outer() -> None:
    x, y = numbers(2, 3), numbers(4)
    check(products.outer(on_cpu(x), on_cpu(y)), np.outer(x, y))


@pytest.mark.parametrize("axes", [0, 1, 2, ((1, 0), (0, 1)), (2, 2), ([0, -1], [-1, 0]), ((), ())])
def test_tensordot(axes: Any) -> None:
    x, y = numbers(3, 3, 3), numbers(3, 3, 3, seed=1)
    check(products.tensordot(on_cpu(x), on_cpu(y), axes), np.tensordot(x, y, axes))


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (3, "they do not both have 3 axes"),
        (-1, "they do not both have -1 axes"),
        ((0, 1, 2), "a pair"),
        (((0, 1), (0,)), "as many axes of one as of the other"),
        (((0, 0), (0, 1)), "each once"),
        ((0, 0), "their sizes must be equal"),
    ],
)
def test_mistakes_in_tensordot(axes: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        products.tensordot(on_cpu(np.ones((2, 3))), on_cpu(np.ones((3, 4))), axes)


EINSUMS = [
    ("ij->ji", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ba", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->i", [(2, 3)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iij->ji", [(3, 3, 2)]),
    ("iii->i", [(3, 3, 3)]),
    ("ijij->ij", [(2, 3, 2, 3)]),
    ("...ii->...i", [(2, 4, 3, 3)]),
    ("...ij->...ji", [(2, 4, 3)]),
    ("...", [(2, 3)]),
    ("->", [()]),
    ("i->i", [(0,)]),
    ("i->", [(0,)]),
    ("i,i", [(3,), (3,)]),
    ("i,j", [(3,), (2,)]),
    ("i,j->ji", [(3,), (2,)]),
    ("ij,j->i", [(2, 3), (3,)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("ij,kj->ik", [(2, 3), (4, 3)]),
    ("ji,jk->ik", [(3, 2), (3, 4)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,ij->j", [(1, 3), (2, 3)]),
    ("ij,kj->ik", [(2, 1), (4, 3)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ij,ij->j", [(2, 3), (2, 3)]),
    ("ij,ji->", [(2, 3), (3, 2)]),
    ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("bqhd,bkhd->bhqk", [(2, 4, 3, 5), (2, 6, 3, 5)]),
    ("bhqk,bkhd->bqhd", [(2, 3, 4, 6), (2, 6, 3, 5)]),
    ("bij,kj->bik", [(5, 2, 3), (4, 3)]),
    ("ijk,jkl->il", [(2, 3, 4), (3, 4, 5)]),
    ("ijk,kjl->li", [(2, 3, 4), (4, 3, 5)]),
    ("ij,kl->ijkl", [(2, 3), (4, 5)]),
    ("ij,kl->", [(2, 3), (4, 5)]),
    ("ij,k->ik", [(2, 3), (4,)]),
    ("ii,ij->j", [(3, 3), (3, 4)]),
    ("i...,i...->...", [(3, 2), (3, 2)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
    ("...ij,...jk->...ik", [(5, 1, 2, 3), (6, 3, 4)]),
    ("...ij,...jk", [(5, 2, 3), (5, 3, 4)]),
    ("i...j,j->i...", [(2, 5, 4, 3), (3,)]),
    ("...,...", [(2, 3), (3,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,jk,kl", [(2, 3), (3, 4), (4, 5)]),
    ("a,b,c->cba", [(2,), (3,), (4,)]),
    ("ab,bc,cd,da->", [(2, 3), (3, 4), (4, 5), (5, 2)]),
    ("bi,ij,bj->b", [(5, 2), (2, 3), (5, 3)]),
    ("bn,anm,bm->ba", [(5, 2), (4, 2, 3), (5, 3)]),
    ("ij,ij,ij->ij", [(2, 3), (2, 3), (2, 3)]),
    ("i,i,i", [(3,), (3,), (3,)]),
    (" i j , j k -> i k ", [(2, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]),
    ("ij,jk->ijk", [(2, 3), (1, 4)]),
    ("ij,ij->ij", [(1, 3), (2, 1)]),
    ("ij,jk->ik", [(1, 1), (1, 1)]),
    ("ij,jk->ik", [(2, 0), (0, 3)]),
    ("aB,Bc->ac", [(2, 3), (3, 4)]),
    ("bA", [(2, 3)]),
]


@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS)
def test_einsum(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [numbers(*shape, seed=at) for at, shape in enumerate(shapes)]
    expected = np.einsum(subscripts, *[each.astype(np.float64) for each in arrays])
    check(products.einsum(subscripts, *map(on_cpu, arrays)), expected)


def test_einsum_with_lists_of_labels() -> None:
    x, y = numbers(2, 3), numbers(3, 4)
    check(
        products.einsum(on_cpu(x), [0, 1], on_cpu(y), [1, 2], [2, 0]), np.einsum(x, [0, 1], y, [1, 2], [2, 0])
    )
    check(products.einsum(on_cpu(x), [0, 1], on_cpu(y), [1, 2]), np.einsum(x, [0, 1], y, [1, 2]))
    check(products.einsum(on_cpu(x), [..., 0], [..., 0]), x)
    check(products.einsum(on_cpu(x), [30, 2]), np.einsum(x, [30, 2]))


def test_what_einsum_makes() -> None:
    a, b = on_cpu(numbers(2, 3)), on_cpu(numbers(4, 3))
    swapped = products.einsum("ij,kj->ki", a, b)
    assert kinds_in(swapped) == ["leaf", "leaf", "move", "contract"], "b @ a.T needs no permutation after it"
    plain = products.einsum("ij,jk->ik", a, on_cpu(numbers(3, 4)))
    assert kinds_in(plain) == ["leaf", "leaf", "contract"]
    map_only = products.einsum("ij,ij->ij", a, a)
    assert kinds_in(map_only) == ["leaf", "map"]


def test_einsum_joins_the_cheap_pair_first() -> None:
    big, vector = on_cpu(numbers(30, 30)), on_cpu(numbers(30))
    result = products.einsum("ij,jk,k->i", big, big, vector)
    assert max(node.sig.size for node in nodes_under([result.node]) if node.sig.kind == "contract") == 30


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3)], "names 2 operands, and 1 were given"),
        ("ij->i", [(2, 3, 4)], "does not name the 3 axes"),
        ("...ijk", [(2, 3)], "does not name the 2 axes"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "the axis 'j' has size 3 in one place and 4 in another"),
        ("i,i,i->i", [(1,), (2,), (3,)], "the axis 'i' has size 2 in one place and 3 in another"),
        ("ij->ik", [(2, 3)], "names axes of the operands, each once"),
        ("ij->ii", [(2, 3)], "names axes of the operands, each once"),
        ("i.j->ij", [(2, 3)], "must be letters"),
        ("i1->i", [(2, 3)], "must be letters"),
        ("...i->i", [(2, 3)], "the result must name them"),
        ("ii->i", [(1, 3)], "equal sizes"),
        ("...i...->i", [(2, 3)], "at most once"),
    ],
)
def test_mistakes_in_einsum(subscripts: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        products.einsum(subscripts, *[on_cpu(np.ones(shape)) for shape in shapes])


def test_mistaken_operands_of_einsum() -> None:
    with pytest.raises(DTypeError, match="einsum takes a webgrad tensor, not a list"):
        products.einsum("i", [1, 2])
    with pytest.raises(DTypeError, match="a list of numbers"):
        products.einsum(on_cpu([1.0]), "i")
    with pytest.raises(ShapeError, match="99 is not a label"):
        products.einsum(on_cpu([1.0]), [99])
    with pytest.raises(DTypeError, match="einsum takes subscripts"):
        products.einsum(on_cpu([1.0]))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3), (0, 3)])
def test_linear(shape: tuple[int, ...]) -> None:
    x, weight, bias = numbers(*shape), numbers(5, 3), numbers(5)
    check(products.linear(on_cpu(x), on_cpu(weight)), x @ weight.T)
    check(products.linear(on_cpu(x), on_cpu(weight), on_cpu(bias)), x @ weight.T + bias)


def test_mistakes_in_linear() -> None:
    x, weight = on_cpu(np.ones((2, 3))), on_cpu(np.ones((5, 3)))
    with pytest.raises(ShapeError, match=r"linear of x \(2, 3\) with weight \(3, 5\).*\(outputs, inputs\)"):
        products.linear(x, on_cpu(np.ones((3, 5))))
    with pytest.raises(ShapeError, match=r"the bias \(2, 5\)"):
        products.linear(x, weight, on_cpu(np.ones((2, 5))))
    with pytest.raises(ShapeError, match=r"linear: the bias \(4,\) must be one number .* 5 outputs"):
        products.linear(x, weight, on_cpu(np.ones(4)))
    with pytest.raises(ShapeError, match=r"the bias \(5, 1\)"):  # would be added along the wrong axis
        products.linear(on_cpu(np.ones((5, 3))), weight, on_cpu(np.ones((5, 1))))
    with pytest.raises(DTypeError, match="linear takes a webgrad tensor, not a float"):
        products.linear(x, weight, 1.0)  # type: ignore[arg-type]


@pytest.mark.property
@given(st.data())
def test_random_einsums_as_numpy(data: st.DataObject) -> None:
    sizes = dict(zip("abcde", data.draw(st.lists(st.integers(1, 3), min_size=5, max_size=5)), strict=True))
    terms = data.draw(st.lists(st.text("abcde", max_size=3), min_size=1, max_size=4))
    used = sorted(set("".join(terms)))
    output = "".join(data.draw(st.permutations(used)))[: data.draw(st.integers(0, len(used)))]
    subscripts = f"{','.join(terms)}->{output}"
    arrays = [numbers(*[sizes[letter] for letter in term], seed=at) for at, term in enumerate(terms)]
    expected = np.einsum(subscripts, *[each.astype(np.float64) for each in arrays])
    check(products.einsum(subscripts, *map(on_cpu, arrays)), expected)
