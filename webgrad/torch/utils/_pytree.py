"""torch.utils._pytree: the leaves of nested containers, and containers from leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "TreeSpec", "tree_all", "tree_any", "tree_flatten", "tree_iter", "tree_leaves", "tree_map", "tree_map_",
    "tree_map_only", "tree_structure", "tree_unflatten",
]  # fmt: skip

PyTree = Any
_DICTS = (dict, OrderedDict, defaultdict)


@dataclass(frozen=True)
class TreeSpec:
    """The structure of a tree: what it is made of, and its parts; a leaf has no type."""

    type: Any
    context: Any
    children: tuple[TreeSpec, ...]

    @property
    def num_leaves(self) -> int:
        """How many leaves it has."""
        return sum(each.num_leaves for each in self.children) if self.type is not None else 1

    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        return tree_unflatten(leaves, self)


LeafSpec = TreeSpec(None, None, ())


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of nested lists, tuples and dicts, and their structure.

    >>> import webgrad.torch as torch
    >>> leaves, spec = torch.utils._pytree.tree_flatten({"a": [1, 2], "b": (3,)})
    >>> leaves, torch.utils._pytree.tree_unflatten([4, 5, 6], spec)
    ([1, 2, 3], {'a': [4, 5], 'b': (6,)})
    """
    leaves: list[Any] = []
    return leaves, _flattened(tree, is_leaf, leaves)


def _flattened(tree: Any, is_leaf: Callable[[Any], bool] | None, leaves: list[Any]) -> TreeSpec:
    kind = type(tree)
    if not (is_leaf is not None and is_leaf(tree)):
        if kind in _DICTS:
            names = (list(tree), tree.default_factory if kind is defaultdict else None)
            return TreeSpec(kind, names, tuple(_flattened(each, is_leaf, leaves) for each in tree.values()))
        if kind in (list, tuple, deque) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            context = tree.maxlen if kind is deque else None
            return TreeSpec(kind, context, tuple(_flattened(each, is_leaf, leaves) for each in tree))
    leaves.append(tree)
    return LeafSpec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """A tree of this structure with these leaves."""
    found = list(leaves)
    if len(found) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: {len(found)} leaves for a tree of {treespec.num_leaves}")
    return _unflattened(iter(found), treespec)


def _unflattened(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    parts = [_unflattened(leaves, each) for each in spec.children]
    if spec.type in _DICTS:
        items = dict(zip(spec.context[0], parts, strict=True))
        return defaultdict(spec.context[1], items) if spec.type is defaultdict else spec.type(items)
    if spec.type is deque:
        return deque(parts, spec.context)
    return spec.type(*parts) if hasattr(spec.type, "_fields") else spec.type(parts)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves of a tree, one after another."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The tree of what a function gives for each leaf, and for the leaves at its place in other trees.

    >>> import webgrad.torch as torch
    >>> torch.utils._pytree.tree_map(lambda x: x + 1, [1, (2, 3)])
    [2, (3, 4)]
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_leaves(each, is_leaf) for each in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """A function called with each leaf; the same tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """The tree with what a function gives for leaves of a type; the others stay."""
    return tree_map(lambda each: func(each) if isinstance(each, kind) else each, tree, is_leaf=is_leaf)


def tree_any(predicate: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether it holds for a leaf."""
    return any(map(predicate, tree_leaves(tree, is_leaf)))


def tree_all(predicate: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether it holds for all leaves."""
    return all(map(predicate, tree_leaves(tree, is_leaf)))
