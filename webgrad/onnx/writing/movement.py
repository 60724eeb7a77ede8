"""Rows of primitives that move elements: shapes, slices, windows, gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence

from ...arrays import np
from .builder import Builder, Value
from .elementwise import larger, smaller
from .sizes import Size, is_fixed
from .table import Shape, Site, primitive

_FAR = (1 << 63) - 1  # as a slice's end: all of them


@primitive("iota")
def iota(site: Site) -> Value:
    (count,) = site.shape
    return site.b.cast(places(site.b, count), site.dtype)


def places(b: Builder, count: int | Size) -> Value:
    """0, 1, … as int64."""
    if isinstance(count, int) and count <= 1024:
        return b.constant(np.arange(count))
    return b.raw("Range", [b.constant(0), b.number(count), b.constant(1)], "int64")


@primitive("reshape")
def reshape(site: Site) -> Value:
    return reshaped(site.b, site.inputs[0], site.shape)


def reshaped(b: Builder, x: Value, shape: Shape) -> Value:
    """A value in another shape; one open size follows from the others."""
    if sum(isinstance(each, Size) for each in shape) == 1 and 0 not in shape:
        shape = tuple(-1 if isinstance(each, Size) else each for each in shape)
    attributes = {} if is_fixed(shape) and 0 not in shape else {"allowzero": 1}
    return b.raw("Reshape", [x, b.shape(shape)], x.dtype, attributes=attributes)


@primitive("permute")
def permute(site: Site) -> Value:
    return transposed(site.b, site.inputs[0], site.attributes[0])


def transposed(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    return b.raw("Transpose", [x], x.dtype, attributes={"perm": [*axes]})


@primitive("expand")
def expand(site: Site) -> Value:
    return site.b.op("Expand", site.inputs[0], site.b.shape(site.shape))


@primitive("pad")
def pad(site: Site) -> Value:
    (widths,) = site.attributes
    x, value = site.inputs
    both = [*(before for before, _ in widths), *(after for _, after in widths)]
    return site.b.op("Pad", x, site.b.shape(both), value)


@primitive("slice")
def slice_(site: Site) -> Value:
    """Of each axis that is cut; a slice to the end says so, whatever the size."""
    b, shape = site.b, site.sources[0].shape
    cuts = [
        (axis, start, _FAR if stop == shape[axis] else stop, step)
        for axis, (start, stop, step) in enumerate(site.attributes[0])
        if (start, stop, step) != (0, shape[axis], 1)
    ]
    if not cuts:
        return site.inputs[0]
    axes, starts, stops, steps = zip(*cuts, strict=True)
    bounds = [b.shape(starts), b.shape(stops), b.constant(axes), b.shape(steps)]
    return b.op("Slice", site.inputs[0], *bounds)


@primitive("flip")
def flip(site: Site) -> Value:
    axes = site.attributes[0]
    axes = [axes] if isinstance(axes, int) else [*axes]
    if not axes:
        return site.inputs[0]
    b, count = site.b, len(axes)
    bounds = [
        b.constant([-1] * count),
        b.constant([-_FAR] * count),
        b.constant(axes),
        b.constant([-1] * count),
    ]
    return b.op("Slice", site.inputs[0], *bounds)


@primitive("window")
def window(site: Site) -> Value:
    """Elements of every window by their places: the axis counts windows, a new last one their elements."""
    b, (axis, size, stride, dilation) = site.b, site.attributes
    count, rank = site.shape[axis], len(site.shape)
    begins = b.op("Mul", reshaped(b, places(b, count), (count, 1)), b.constant(stride))
    index = b.op("Add", begins, b.constant(np.arange(size) * dilation))
    taken = b.raw("Gather", [site.inputs[0], index], site.dtype, attributes={"axis": axis})
    order = [*range(axis + 1), *range(axis + 2, rank), axis + 1]
    return transposed(b, taken, order)


@primitive("concat")
def concat(site: Site) -> Value:
    return site.b.raw("Concat", site.inputs, site.dtype, attributes={"axis": site.attributes[0]})


# Computed indices


def inside(site: Site, place: int, size: int | Size) -> Value:
    """An index as int64, clamped to an axis as webgrad does; one that the file knows is so already."""
    b, source = site.b, site.sources[place]
    index = b.cast(site.inputs[place], "int64")
    if source.op == "number" and isinstance(size, int) and 0 <= source.value < size:
        return index
    last = b.op("Sub", b.number(size), b.constant(1))
    return smaller(b, larger(b, index, b.constant(0)), last)


@primitive("take")
def take(site: Site) -> Value:
    axis = site.attributes[0]
    index = inside(site, 1, site.sources[0].shape[axis])
    return site.b.raw("Gather", [site.inputs[0], index], site.dtype, attributes={"axis": axis})


@primitive("take_along")
def take_along(site: Site) -> Value:
    b, axis, shape = site.b, site.attributes[0], site.shape
    length = site.sources[0].shape[axis]
    whole = (*shape[:axis], length, *shape[axis + 1 :])
    x = site.inputs[0] if site.sources[0].shape == whole else b.op("Expand", site.inputs[0], b.shape(whole))
    index = inside(site, 1, length)
    if site.sources[1].shape != shape:
        index = b.op("Expand", index, b.shape(shape))
    return b.raw("GatherElements", [x, index], site.dtype, attributes={"axis": axis})


@primitive("scatter_add scatter_max")
def scatter(site: Site) -> Value:
    b, how = site.b, site.node.op.partition("_")[2]
    rows, updates = _rows(site), site.inputs[2]
    base, narrow = site.inputs[0], site.dtype
    if narrow not in ("float32", "float64", "int32", "int64"):
        wide = "float32" if "float" in narrow else "int64"
        base, updates = b.cast(base, wide), b.cast(updates, wide)
    found = b.raw("ScatterND", [base, rows, updates], base.dtype, attributes={"reduction": how})
    return b.cast(found, narrow)


@primitive("scatter_set")
def scatter_set(site: Site) -> Value:
    """Of several updates of one row the last stays, which the standard leaves open: it is found first."""
    b, base = site.b, site.sources[0].shape
    count = site.sources[1].shape[0]
    if count == 0:
        return site.inputs[0]
    nobody = b.op("Expand", b.constant(-1), b.shape(base[:1]))
    reduction = {"reduction": "max"}
    last = b.raw("ScatterND", [nobody, _rows(site), places(b, count)], "int64", attributes=reduction)
    last = reshaped(b, last, (base[0], 1))
    first = larger(b, last, b.constant(0))
    rows = reshaped(b, first, (base[0],))
    written = b.raw("Gather", [site.inputs[2], rows], site.dtype, attributes={"axis": 0})
    return b.op("Where", b.op("Less", last, b.constant(0)), site.inputs[0], written)


def _rows(site: Site) -> Value:
    """The index of rows as ScatterND wants it."""
    index = inside(site, 1, site.sources[0].shape[0])
    return reshaped(site.b, index, (site.sources[1].shape[0], 1))


# Order


@primitive("sort_places")
def sort_places(site: Site) -> Value:
    descending, count = site.attributes
    x = sortable(site.b, site.inputs[0])
    wanted = site.b.shape([count])
    found = site.b.op("TopK", x, wanted, wanted=1, axis=-1, largest=int(descending), sorted=1)
    return site.b.cast(found, site.dtype)


def sortable(b: Builder, x: Value) -> Value:
    """What TopK takes; NaN is above all numbers."""
    if "float" not in x.dtype:
        return b.cast(x, "int64") if x.dtype == "uint32" else x
    return x


@primitive("sort_values")
def sort_values(site: Site) -> Value:
    (descending,) = site.attributes
    length = site.b.shape([site.shape[-1]])
    x = sortable(site.b, site.inputs[0])
    return site.b.cast(site.b.op("TopK", x, length, axis=-1, largest=int(descending), sorted=1), site.dtype)


@primitive("search_places")
def search_places(site: Site) -> Value:
    """How many elements of the line are before each one."""
    b, (line, x) = site.b, site.inputs
    apart = reshaped(b, x, (*site.shape, 1))
    is_before = b.op("Less" if site.attributes[0] == "left" else "LessOrEqual", line, apart)
    counts = b.cast(is_before, "int64")
    total = b.op("ReduceSum", counts, b.constant([-1]), keepdims=0)
    return b.cast(total, site.dtype)


@primitive("bin_places counts_between")
def bins(site: Site) -> Value:
    """The last edge that is not above an element; the last bin has its upper edge as well."""
    b, (x, edges) = site.b, site.inputs
    (count,) = site.sources[1].shape
    if not isinstance(count, int):
        site.refuse("the number of bins is open")
    apart = reshaped(b, x, (*site.sources[0].shape, 1))
    passed = b.cast(b.op("GreaterOrEqual", apart, edges), "int64")
    place = b.op("Sub", b.op("ReduceSum", passed, b.constant([-1]), keepdims=0), b.constant(1))
    last = b.raw("Gather", [edges, b.constant(count - 1)], edges.dtype)
    place = b.op("Where", b.op("Equal", x, last), b.constant(count - 2), place)
    is_out = b.op("Or", b.op("Less", place, b.constant(0)), b.op("Greater", x, last))
    place = b.op("Where", is_out, b.constant(count - 1), place)
    if site.node.op == "bin_places":
        return b.cast(place, site.dtype)
    hits = b.op("Equal", reshaped(b, place, (*site.sources[0].shape, 1)), b.constant(np.arange(count - 1)))
    axes = b.constant([*range(len(site.sources[0].shape))])
    return b.cast(b.op("ReduceSum", b.cast(hits, "int64"), axes, keepdims=0), site.dtype)
