"""Index expressions: integers built by constructors that simplify, with known ranges.

An `Index` is a constant plus multiples of atoms; an `Atom` is a variable (a thread's or a loop's), a quotient
or remainder that could not be simplified away, an index clamped to a size, or a number computed in the
kernel. Invariant: an Index is never negative as a whole, so unsigned arithmetic that wraps on the way is
exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


class Atom:
    """An opaque term of an index. `low` and `high` bound it, both included."""

    __slots__ = ("divisor", "expression", "hash", "high", "kind", "low", "name")

    def __init__(
        self, kind: str, name: int | str, expression: Index | None, divisor: int, low: int, high: int
    ) -> None:
        self.kind = kind  # variable, quotient, remainder, limit, value
        self.name = name
        self.expression = expression
        self.divisor = divisor
        self.low = low
        self.high = high
        self.hash = hash((kind, name, expression, divisor))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Atom)
            and self.hash == other.hash
            and self.kind == other.kind
            and self.name == other.name
            and self.divisor == other.divisor
            and self.expression == other.expression
        )

    def __repr__(self) -> str:
        sign = {"quotient": "/", "remainder": "%", "limit": "min"}.get(self.kind)
        return str(self.name) if sign is None else f"({self.expression!r} {sign} {self.divisor})"


class Index:
    """constant + Σ factor · atom."""

    __slots__ = ("constant", "hash", "high", "low", "terms")

    def __init__(self, terms: dict[Atom, int], constant: int) -> None:
        self.terms = terms
        self.constant = constant
        low = high = constant
        for atom, factor in terms.items():
            if factor > 0:
                low += factor * atom.low
                high += factor * atom.high
            else:
                low += factor * atom.high
                high += factor * atom.low
        self.low = low
        self.high = high
        self.hash = hash((frozenset(terms.items()), constant))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Index)
            and self.hash == other.hash
            and self.constant == other.constant
            and self.terms == other.terms
        )

    def __repr__(self) -> str:
        parts = [repr(atom) if factor == 1 else f"{factor}*{atom!r}" for atom, factor in self.terms.items()]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)

    def __add__(self, other: Index) -> Index:
        if not other.terms:
            return Index(self.terms, self.constant + other.constant) if other.constant else self
        if not self.terms:
            return Index(other.terms, self.constant + other.constant) if self.constant else other
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            total = terms.get(atom, 0) + factor
            if total:
                terms[atom] = total
            else:
                terms.pop(atom)
        return _recombined(terms, self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Index({atom: each * factor for atom, each in self.terms.items()}, self.constant * factor)

    def shifted(self, offset: int) -> Index:
        """Plus a constant."""
        return Index(self.terms, self.constant + offset) if offset else self

    def __floordiv__(self, divisor: int) -> Index:
        return self if divisor <= 1 else _divide(self, divisor)[0]

    def __mod__(self, divisor: int) -> Index:
        return ZERO if divisor <= 1 else _divide(self, divisor)[1]  # 0: a tensor without elements

    def limited(self, size: int) -> Index:
        """Clamped to size - 1; what would be negative becomes the last as well."""
        if self.low >= 0 and self.high < size:
            return self
        return _of(Atom("limit", "", self, size, 0, max(size - 1, 0)))

    @property
    def fixed(self) -> bool:
        """Whether it is a constant."""
        return not self.terms

    def replace(self, change: Callable[[Atom], Index | None]) -> Index:
        """The index with some atoms replaced, simplified again."""
        result = Index({}, self.constant)
        for atom, factor in self.terms.items():
            new = change(atom)
            if new is None:
                if atom.expression is None:
                    new = _of(atom)
                else:
                    inner = atom.expression.replace(change)
                    if inner == atom.expression:
                        new = _of(atom)
                    elif atom.kind == "quotient":
                        new = inner // atom.divisor
                    elif atom.kind == "remainder":
                        new = inner % atom.divisor
                    else:
                        new = inner.limited(atom.divisor)
            result += new * factor
        return result

    def mentions(self, wanted: Callable[[Atom], bool]) -> bool:
        """Whether an atom of a kind is somewhere in it."""
        return any(
            wanted(atom) or (atom.expression is not None and atom.expression.mentions(wanted))
            for atom in self.terms
        )


ZERO = Index({}, 0)


def constant(value: int) -> Index:
    """A number."""
    return Index({}, value)


def variable(name: int | str, size: int, kind: str = "variable") -> Index:
    """A variable from 0 to size - 1."""
    return _of(Atom(kind, name, None, 0, 0, max(size - 1, 0)))


def _of(atom: Atom) -> Index:
    return Index({atom: 1}, 0)


def _divide(x: Index, divisor: int) -> tuple[Index, Index]:
    """x // divisor and x % divisor.

    What is a multiple of the divisor divides exactly; of the rest, r: nothing is left where 0 <= r < divisor;
    a common factor g of r's large terms and the divisor is divided out where the small terms stay below g.
    """
    if x.low >= 0 and x.high < divisor:
        return ZERO, x
    whole: dict[Atom, int] = {}
    rest: dict[Atom, int] = {}
    for atom, factor in x.terms.items():
        if factor % divisor == 0:
            whole[atom] = factor // divisor
        else:
            rest[atom] = factor
    quotient = Index(whole, x.constant // divisor)
    r = Index(rest, x.constant % divisor)
    if r.low < 0:
        lift = -(r.low // divisor)
        quotient = quotient.shifted(-lift)
        r = r.shifted(lift * divisor)
    if r.high < divisor:
        return quotient, r
    if len(r.terms) == 1 and not r.constant:
        ((atom, factor),) = r.terms.items()
        if factor == 1 and atom.expression is not None:
            if atom.kind == "quotient":  # (y // a) // b = y // ab
                inner = _atom("quotient", atom.expression, atom.divisor * divisor)
                return quotient + inner, _of(_remainder(r, divisor))
            if atom.kind == "remainder" and atom.divisor % divisor == 0:  # of y % ab by a
                outer = (atom.expression // divisor) % (atom.divisor // divisor)
                return quotient + outer, atom.expression % divisor
    common = _common_factor(r, divisor)
    if common > 1:
        large = {atom: factor // common for atom, factor in r.terms.items() if factor % common == 0}
        small = Index({a: f for a, f in r.terms.items() if f % common}, r.constant % common)
        if large and small.low >= 0 and small.high < common:
            part = Index(large, r.constant // common)
            over, left = _divide(part, divisor // common)
            return quotient + over, left * common + small
    return quotient + _of(Atom("quotient", "", r, divisor, r.low // divisor, r.high // divisor)), _of(
        _remainder(r, divisor)
    )


def _atom(kind: str, x: Index, divisor: int) -> Index:
    if x.low >= 0 and x.high < divisor:
        return ZERO
    return _of(Atom(kind, "", x, divisor, x.low // divisor, x.high // divisor))


def _remainder(x: Index, divisor: int) -> Atom:
    return Atom("remainder", "", x, divisor, 0, divisor - 1)


def _common_factor(r: Index, divisor: int) -> int:
    """The largest factor of the divisor that divides the larger terms, the smaller ones staying below it."""
    best = 1
    for factor in {abs(each) for each in r.terms.values()}:
        common = math.gcd(factor, divisor)
        if common > best:
            small = (
                sum(abs(f) * (a.high - a.low) for a, f in r.terms.items() if f % common) + r.constant % common
            )
            if small < common:
                best = common
    return best


def _recombined(terms: dict[Atom, int], constant: int) -> Index:
    """k (x % m) + km (x // m) = kx; k (x % m) + km ((x // m) % n) = k (x % mn)."""
    for atom, factor in terms.items():
        if atom.kind != "remainder":
            continue
        x, m = atom.expression, atom.divisor
        assert x is not None
        quotient = Atom("quotient", "", x, m, 0, 0)
        if terms.get(quotient) == factor * m:
            rest = {a: f for a, f in terms.items() if a != atom and a != quotient}
            return Index(rest, constant) + x * factor
        for other, other_factor in terms.items():
            if other_factor == factor * m and other.kind == "remainder" and other.expression == x // m:
                rest = {a: f for a, f in terms.items() if a != atom and a != other}
                return Index(rest, constant) + (x % (m * other.divisor)) * factor
    return Index(terms, constant)


def flatten(indices: Sequence[Index], shape: Sequence[int]) -> Index:
    """The flat index of an element in memory."""
    result, stride = ZERO, 1
    for index, size in zip(reversed(indices), reversed(shape), strict=True):
        if size != 1:
            result = index * stride + result
        stride *= size
    return result


def broadcast(indices: Sequence[Index], shape: Sequence[int]) -> tuple[Index, ...]:
    """The indices of an operand's element that is broadcast to these indices."""
    last = indices[len(indices) - len(shape) :]
    return tuple(ZERO if size == 1 else index for size, index in zip(shape, last, strict=True))


def unflatten(index: Index, shape: Sequence[int]) -> tuple[Index, ...]:
    """The indices of the element at a flat index."""
    result: list[Index] = []
    for axis in range(len(shape) - 1, -1, -1):
        size = shape[axis]
        if size == 1:
            result.append(ZERO)
        elif math.prod(shape[:axis]) == 1:  # the outermost takes no remainder
            result.append(index)
            index = ZERO
        else:
            result.append(index % size)
            index = index // size
    return tuple(reversed(result))
