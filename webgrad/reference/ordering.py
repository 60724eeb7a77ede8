"""Order by NumPy: sorted values, the places that sort, the first few of them, and counts between edges.

In: arrays. Out: new arrays. Equal elements stay in their order, -0 and +0 are equal, and NaN is larger than
every number. A 32-bit key and its place make one 64-bit number, and no two of those are equal: so they can be
sorted by NumPy's quickest way, which is not stable.
"""

from __future__ import annotations

from typing import Any, Literal

from ..arrays import Array, np
from ..runtime.host_buffers import empty
from ..runtime.threads import cores, each_of

__all__ = ["binned_places", "counts_between", "searched_places", "sorted_places", "sorted_values"]

BLOCK = 1 << 16  # elements: as many rows as have about so many are one task
LONG = 1 << 18  # elements of a row that several threads sort
LEAST = 64  # elements of a row from which making pairs is worth it
RARE = 128  # where at most one of so many is wanted, the others are passed over unsorted,
STRETCH = 1024  # in stretches of so many elements,
SEARCHED = 1 << 13  # if there are so many; a search in a sorted row of these is quicker than looking at all
BYTES = 256  # what a byte may be


def _parts(length: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _rows(x: Array) -> Array:
    """(rows, elements), one after another in memory; bools as bytes."""
    plain = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
    return plain.view(np.uint8) if plain.dtype == np.bool_ else plain


def _sort_long(line: Array) -> None:
    """Sort one dimension in place. Cut at its median, and those parts again, it is sorted in parts."""
    parts = [line]
    while len(parts) < min(cores(), 16) and len(parts[0]) > LONG // 2:
        each_of(lambda part: part.partition(len(part) // 2), parts)
        parts = [half for part in parts for half in (part[: len(part) // 2], part[len(part) // 2 :])]
    each_of(lambda part: part.sort(), parts)


# Values


def sorted_values(x: Array, descending: bool = False) -> Array:
    """The elements in order along the last axis."""
    result = empty(x.shape, x.dtype)
    if not x.size or x.ndim == 0:
        result[...] = x
        return result
    rows = _rows(x)
    target = result.view(rows.dtype).reshape(rows.shape)
    length = rows.shape[1]
    if length < LONG:
        parts = _parts(len(rows), max(1, BLOCK // length))
        each_of(lambda part: _sort_rows(rows[part], target[part], descending), parts)
    else:
        for source, line in zip(rows, target, strict=True):
            _sort_rows(source[None], line[None], descending)
    return result


def _sort_rows(rows: Array, target: Array, descending: bool) -> None:
    length = rows.shape[1]
    if rows.dtype.itemsize == 1 and length > BYTES:
        for source, line in zip(rows, target, strict=True):
            line[:] = _sorted_bytes(source)
    else:
        np.copyto(target, rows)
        if length >= LONG:
            _sort_long(target[0])
        else:
            target.sort(axis=1)
    if descending:
        target[...] = target[:, ::-1].copy()
    if rows.dtype.kind == "f":
        _restore_equals(rows, target, descending)


def _sorted_bytes(line: Array) -> Array:
    """By counting: there are few different bytes."""
    flip = np.uint8(128 if line.dtype.kind == "i" else 0)
    counts = np.bincount(line.view(np.uint8) ^ flip, minlength=BYTES)
    ordered: Array = np.repeat(np.arange(BYTES, dtype=np.uint8) ^ flip, counts).view(line.dtype)
    return ordered


def _restore_equals(rows: Array, target: Array, descending: bool) -> None:
    """Zeros of either sign, and NaNs of any bits, in the order they came in."""
    if _has_negative_zeros(target, descending):
        for source, line in zip(rows, target, strict=True):
            zeros = _zeros(line, descending)
            if zeros.stop > zeros.start:
                line[zeros] = source[source == 0]
    length = rows.shape[1]
    for row in np.flatnonzero(np.isnan(target[:, 0 if descending else -1])):
        unknown = rows[row][np.isnan(rows[row])]
        start = 0 if descending else length - len(unknown)
        target[row, start : start + len(unknown)] = unknown


def _has_negative_zeros(target: Array, descending: bool) -> bool:
    if target.shape[1] >= SEARCHED:
        return any(np.signbit(line[_zeros(line, descending)]).any() for line in target)
    unsigned = np.dtype(f"u{target.dtype.itemsize}")
    top = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    return bool((target.view(unsigned) == top).any())


def _zeros(line: Array, descending: bool) -> slice:
    """Where the zeros of a sorted line are."""
    rising = line[::-1] if descending else line
    first, last = (int(np.searchsorted(rising, line.dtype.type(0), side)) for side in ("left", "right"))
    return slice(len(line) - last, len(line) - first) if descending else slice(first, last)


# Places


def sorted_places(x: Array, descending: bool = False, count: int | None = None) -> Array:
    """The places, int32, of the first elements in order along the last axis; without `count` of all."""
    length = x.shape[-1] if x.ndim else 1
    count = length if count is None else count
    shape = (*x.shape[:-1], count) if x.ndim else ()
    if not x.size or length == 1 or not count:
        return np.zeros(shape, np.int32)
    rows = _rows(x)
    if length < LEAST and rows.size <= BLOCK:
        few: Array = _order(rows, descending, count).astype(np.int32).reshape(shape)
        return few
    result = np.empty(shape, np.int32)
    target = result.reshape(len(rows), count)
    if length >= LONG:
        for source, line in zip(rows, target, strict=True):
            line[:] = _long_order(source, descending, count)
    else:

        def place(part: slice) -> None:
            target[part] = _order(rows[part], descending, count)

        each_of(place, _parts(len(rows), max(1, BLOCK // length)))
    return result


def _long_order(line: Array, descending: bool, count: int) -> Array:
    parts = _parts(len(line), BLOCK)
    if count * RARE <= len(line):
        return _first_places(line, descending, count, parts)
    if line.dtype.itemsize != 4:
        return _order(line[None], descending, count).reshape(count)
    pairs = empty(line.shape, np.dtype(np.uint64))
    each_of(lambda part: _fill_pairs(pairs[part], line[part], descending, part.start), parts)
    if count < len(line):
        pairs.partition(count - 1)
        pairs = pairs[:count]
    _sort_long(pairs)
    return pairs.astype(np.uint32)  # the places are the low halves


def _order(rows: Array, descending: bool, count: int) -> Array:
    """The first places of several rows."""
    length = rows.shape[1]
    if count == 1 and descending:  # NumPy takes NaN for the largest, too
        largest: Array = rows.argmax(axis=1)
        return largest[:, None]
    if length >= SEARCHED and count * RARE <= length:
        whole = [slice(0, length)]
        return np.stack([_first_places(line, descending, count, whole) for line in rows])
    if rows.dtype.itemsize == 4 and length >= LEAST:
        pairs = np.empty(rows.shape, np.uint64)
        _fill_pairs(pairs, rows, descending, 0)
        if count < length:
            pairs.partition(count - 1, axis=1)
            pairs = pairs[:, :count]
        pairs.sort(axis=1)
        return pairs.astype(np.uint32)
    keys = _keys(rows, descending)
    if rows.dtype.itemsize < 4 or length < LEAST:
        return np.argsort(keys, axis=1, kind="stable")[:, :count]
    return np.stack([_wide_order(line) for line in keys])[:, :count]


def _keys(x: Array, descending: bool) -> Array:
    """Unsigned numbers of the same width, in the order of the elements; perhaps x itself."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    top = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    keys = x.view(unsigned)
    if x.dtype.kind == "i":
        keys = keys ^ top
    elif x.dtype.kind == "f":
        positive = x + x.dtype.type(0)  # -0 becomes +0
        if np.isnan(positive.max()):
            positive[np.isnan(positive)] = np.nan
        keys = positive.view(unsigned)
        # Negative numbers are ordered backwards by their bits
        mask = positive.view(f"i{unsigned.itemsize}") >> (8 * unsigned.itemsize - 1)
        keys ^= mask.view(unsigned) | top
    return np.invert(keys) if descending else keys


def _fill_pairs(pairs: Array, x: Array, descending: bool, start: int) -> None:
    """A key in the high half, and its place along the last axis in the low one."""
    np.left_shift(_keys(x, descending), np.uint64(32), out=pairs, dtype=np.uint64)
    pairs |= np.arange(start, start + x.shape[-1], dtype=np.uint64)


def _wide_order(keys: Array) -> Array:
    """Of 64-bit keys. NumPy's quickest order is not stable: where keys are equal, their places are sorted."""
    order = np.argsort(keys)
    ordered = keys[order]
    new = ordered[1:] != ordered[:-1]
    if new.all():
        return order
    pairs = np.zeros(len(keys), np.uint64)
    np.cumsum(new, out=pairs[1:])
    pairs <<= np.uint64(32)
    pairs |= order.view(np.uint64)
    pairs.sort()
    return pairs.astype(np.uint32)


def _first_places(line: Array, descending: bool, count: int, parts: list[slice]) -> Array:
    """The first places of one row, of which few are wanted, without sorting it.

    As many stretches as are wanted have an element that is as good as a `limit` or better: nothing that is
    behind it is wanted.
    """
    step = min(STRETCH, len(line) // (2 * count))
    best = np.sort(np.concatenate(each_of(lambda part: _best_of(line[part], step, descending), parts)))
    limit = best[-count] if descending else best[count - 1]
    if limit != limit and descending:  # NaN is the largest, and there are enough of them
        return np.flatnonzero(np.isnan(line))[:count]
    if limit != limit:
        found = np.flatnonzero(line == line)
        rest = np.isnan(line)
    else:
        found = np.concatenate(each_of(lambda part: _beyond(line, part, limit, descending), parts))
        rest = line == limit if len(found) < count else found
    if len(found) < count:
        found = np.concatenate((found, np.flatnonzero(rest)[: count - len(found)]))
    first: Array = found[_order(line[found][None], descending, count)[0]]
    return first


def _beyond(line: Array, part: slice, limit: Any, descending: bool) -> Array:
    """The places in a part of a line of what is better than a limit, NaN among it if that is the largest."""
    piece = line[part]
    places: Array = np.flatnonzero(~(piece <= limit) if descending else piece < limit) + part.start
    return places


def _best_of(line: Array, step: int, descending: bool) -> Array:
    """The best elements of stretches; NaN where there is one."""
    main = len(line) - len(line) % step
    fold = np.maximum if descending else np.minimum
    best: Array = fold.reduce(line[:main].reshape(-1, step), axis=1)
    return best if main == len(line) else np.append(best, fold.reduce(line[main:]))


# Places in a sorted line, and counts


def searched_places(line: Array, x: Array, side: Literal["left", "right"]) -> Array:
    """How many elements of a sorted line are less than each of x (with "right": or equal to it), int32."""
    result = np.empty(x.shape, np.int32)
    wanted, target = np.ascontiguousarray(x).reshape(-1), result.reshape(-1)

    def search(part: slice) -> None:
        target[part] = np.searchsorted(line, wanted[part], side)

    each_of(search, _parts(len(wanted), BLOCK))
    return result


def binned_places(x: Array, edges: Array) -> Array:
    """Between which rising edges elements lie, int32; outside, the number of bins."""
    result = np.empty(x.shape, np.int32)
    bins = len(edges) - 1

    def find(part: slice) -> None:
        line = x[part]
        found = np.searchsorted(edges, line, "right") - 1
        found[line == edges[-1]] = bins - 1
        found[~((line >= edges[0]) & (line <= edges[-1]))] = bins
        result[part] = found

    each_of(find, _parts(len(x), BLOCK))
    return result


def counts_between(x: Array, edges: Array) -> Array:
    """How many elements lie between rising edges, int32; the last edge belongs to the last two.

    Sorting a part that stays in the cache is quicker than looking for the place of each element.
    """
    line = x.reshape(-1)

    def below(part: slice) -> Array:
        ordered = np.sort(line[part])
        found = np.searchsorted(ordered, edges)
        if edges[-1] == edges[-1]:  # between edges that are NaN there is nothing
            found[-1] = np.searchsorted(ordered, edges[-1], side="right")
        return found

    totals = sum(each_of(below, _parts(len(line), BLOCK)), np.zeros(len(edges), np.intp))
    return np.diff(totals).astype(np.int32)
