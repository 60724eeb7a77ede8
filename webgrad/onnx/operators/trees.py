"""ai.onnx.ml's ensembles of trees: rows go down all trees at once, a level with each step.

In: a node's attributes, in the form of each version. Out: tables over the nodes of all trees, of which leaves
lead to themselves: as many steps as the deepest tree has levels, each a few gathers, give every row's leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import webgrad as wg

from ...arrays import Array, np
from .classical import CLASSICAL, labelled, post_transformed
from .table import Call, operator

__all__: list[str] = []

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_COMPARED = (wg.less_equal, wg.less, wg.greater_equal, wg.greater, wg.equal, wg.not_equal)
_MEMBER = 6
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


class _Nodes(NamedTuple):
    """Nodes of all trees, as arrays, then as tensors."""

    feature: Any
    mode: Any  # a place in _MODES
    value: Any
    is_true_for_nan: Any
    if_true: Any
    if_false: Any
    roots: Any
    members: Any  # (nodes, most members), NaN where there is none; of no width without such nodes


class _Trees(NamedTuple):
    """The same on a device, with what leaves are worth."""

    nodes: _Nodes
    depth: int
    modes: list[int]  # those that there are
    worth: Any  # (nodes, targets)
    votes: Any  # whether a leaf has a worth for a target, for the least and the largest
    is_positive: bool  # every worth is


def _deepest(nodes: _Nodes) -> int:
    """The most steps from a root to a leaf; raises where nodes go round in a circle."""
    places, steps = np.unique(nodes.roots), 0
    while True:
        places = places[nodes.if_true[places] != places]
        if not places.size:
            return steps
        places = np.unique(np.concatenate([nodes.if_true[places], nodes.if_false[places]]))
        steps += 1
        if steps > len(nodes.feature):
            raise wg.ModelFileError("a tree's nodes go round in a circle")


def _trees(nodes: _Nodes, leaves: Array, targets: Array, weights: Array, count: int, device: Any) -> _Trees:
    """Tables on a device; `leaves`, `targets` and `weights` are what single leaves give to single targets."""
    size = len(nodes.feature)
    if targets.size and not 0 <= targets.min() <= targets.max() < count:
        raise wg.ModelFileError(f"a leaf's target is outside of the {count} that there are")
    if size * count > 1 << 28:
        raise wg.ModelFileError(f"trees of {size:,} nodes with {count:,} targets are too many")
    worth, votes = np.zeros((size, count), weights.dtype), np.zeros((size, count), bool)
    np.add.at(worth, (leaves, targets), weights)
    votes[leaves, targets] = True
    is_branch = nodes.if_true != np.arange(size)
    modes = np.unique(nodes.mode[is_branch]).tolist()
    depth = _deepest(nodes)
    placed = _Nodes(*(wg.asarray(each, device=device) for each in nodes))
    tables = wg.asarray(worth, device=device), wg.asarray(votes, device=device)
    return _Trees(placed, depth, modes, *tables, bool((weights >= 0).all()))


def _leaves_of(x: Any, trees: _Trees) -> Any:
    """The leaf (rows, trees) in which each row ends."""
    nodes = trees.nodes
    at = wg.broadcast_to(nodes.roots, (x.shape[0], nodes.roots.shape[0]))
    for _ in range(trees.depth):
        value = wg.take_along_axis(x, wg.take(nodes.feature, at), axis=1)
        goes = _is_true(value, at, trees)
        goes = goes | (wg.isnan(value) & wg.take(nodes.is_true_for_nan, at))
        at = wg.where(goes, wg.take(nodes.if_true, at), wg.take(nodes.if_false, at))
    return at


def _is_true(value: Any, at: Any, trees: _Trees) -> Any:
    """Whether each node's comparison holds."""
    compared = wg.take(trees.nodes.value, at)
    mode = wg.take(trees.nodes.mode, at) if len(trees.modes) > 1 else None
    found: Any = wg.zeros(at.shape, wg.bool, device=at.device)
    for each in trees.modes:
        if each == _MEMBER:
            holds = wg.any(wg.take(trees.nodes.members, at, axis=0) == value[..., None], axis=-1)
        else:
            holds = _COMPARED[each](value, compared)
        found = holds if mode is None else wg.where(mode == each, holds, found)
    return found


def _scores(x: Any, trees: _Trees, aggregate: str, base: Sequence[float]) -> Any:
    """Scores (rows, targets)."""
    leaves = _leaves_of(x, trees)
    worth = wg.take(trees.worth, leaves, axis=0)
    if aggregate in ("MIN", "MAX"):
        votes, sign = wg.take(trees.votes, leaves, axis=0), -1.0 if aggregate == "MIN" else 1.0
        best = sign * wg.max(wg.where(votes, sign * worth, -wg.inf), axis=1)
        scores = wg.where(wg.any(votes, axis=1), best, 0.0)
    else:
        scores = wg.sum(worth, axis=1)
    if aggregate == "AVERAGE":
        scores = scores / trees.nodes.roots.shape[0]
    return scores + wg.asarray(np.asarray(base, np.float32), device=x.device) if len(base) else scores


def _rows(x: Any) -> Any:
    rows = x.reshape((1, -1)) if x.ndim == 1 else x
    return rows if rows.dtype.kind == "f" else rows.astype(wg.float32)


# Versions 1 to 3: nodes by the numbers of their trees, and their own


def _old_nodes(given: Mapping[str, Any]) -> tuple[_Nodes, dict[tuple[int, int], int]]:
    """Nodes, and where each is by its tree and number."""
    names = list(zip(given["nodes_treeids"], given["nodes_nodeids"], strict=True))
    places = {name: at for at, name in enumerate(names)}
    is_leaf = np.asarray([each == "LEAF" for each in given["nodes_modes"]])
    itself = np.arange(len(names))
    branches: dict[str, Any] = {"nodes_truenodeids": itself, "nodes_falsenodeids": itself}
    for name in branches:
        children = zip(given["nodes_treeids"], given[name], is_leaf, strict=True)
        try:
            branches[name] = np.asarray(
                [at if leaf else places[tree, child] for at, (tree, child, leaf) in enumerate(children)]
            )
        except KeyError as error:
            raise wg.ModelFileError(f"a tree has no node {error}") from None
    values = given["nodes_values_as_tensor"]
    values = np.asarray(given["nodes_values"], np.float32) if values is None else values
    modes = [0 if each == "LEAF" else _MODES.index(each) for each in given["nodes_modes"]]
    first: dict[int, int] = {}
    for at, (tree, _) in enumerate(names):
        first.setdefault(tree, at)
    missing = given["nodes_missing_value_tracks_true"] or [0] * len(names)
    small = np.asarray(given["nodes_featureids"], np.int32), np.asarray(modes, np.int32), values
    return (
        _Nodes(
            *small,
            np.asarray(missing, bool),
            branches["nodes_truenodeids"].astype(np.int32),
            branches["nodes_falsenodeids"].astype(np.int32),
            np.asarray(list(first.values()), np.int32),
            np.zeros((len(names), 0), np.float32),
        ),
        places,
    )


def _old_trees(given: Mapping[str, Any], kind: str, count: int, device: Any) -> _Trees:
    """Trees of which leaves give to what `kind` names: targets or classes."""
    nodes, places = _old_nodes(given)
    names = zip(given[f"{kind}_treeids"], given[f"{kind}_nodeids"], strict=True)
    leaves = np.asarray([places[name] for name in names], np.int64)
    weights = given[f"{kind}_weights_as_tensor"]
    weights = np.asarray(given[f"{kind}_weights"], np.float32) if weights is None else weights
    return _trees(nodes, leaves, np.asarray(given[f"{kind}_ids"], np.int64), weights, count, device)


@operator("TreeEnsembleRegressor", domain=CLASSICAL)
def tree_ensemble_regressor(
    x: Any,
    *,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] = (),
    base_values_as_tensor: Any = None,
    n_targets: int = 1,
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Sequence[float] = (),
    nodes_hitrates_as_tensor: Any = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Sequence[str],
    nodes_nodeids: Sequence[int],
    nodes_treeids: Sequence[int],
    nodes_truenodeids: Sequence[int],
    nodes_values: Sequence[float] = (),
    nodes_values_as_tensor: Any = None,
    post_transform: str = "NONE",
    target_ids: Sequence[int],
    target_nodeids: Sequence[int],
    target_treeids: Sequence[int],
    target_weights: Sequence[float] = (),
    target_weights_as_tensor: Any = None,
    call: Call,
) -> Any:
    given, rows = locals(), _rows(x)
    trees = call.once(lambda: _old_trees(given, "target", n_targets, rows.device))
    base = base_values if base_values_as_tensor is None else base_values_as_tensor.tolist()
    return post_transformed(_scores(rows, trees, aggregate_function, base), post_transform)


@operator("TreeEnsembleClassifier", domain=CLASSICAL)
def tree_ensemble_classifier(
    x: Any,
    *,
    base_values: Sequence[float] = (),
    base_values_as_tensor: Any = None,
    class_ids: Sequence[int],
    class_nodeids: Sequence[int],
    class_treeids: Sequence[int],
    class_weights: Sequence[float] = (),
    class_weights_as_tensor: Any = None,
    classlabels_int64s: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Sequence[float] = (),
    nodes_hitrates_as_tensor: Any = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Sequence[str],
    nodes_nodeids: Sequence[int],
    nodes_treeids: Sequence[int],
    nodes_truenodeids: Sequence[int],
    nodes_values: Sequence[float] = (),
    nodes_values_as_tensor: Any = None,
    post_transform: str = "NONE",
    call: Call,
) -> Any:
    given, rows = locals(), _rows(x)
    labels = classlabels_strings or classlabels_int64s
    trees = call.once(lambda: _old_trees(given, "class", len(labels), rows.device))
    base = list(base_values if base_values_as_tensor is None else base_values_as_tensor.tolist())
    if len(labels) == 2 and set(class_ids) == {0}:
        return _of_two(rows, trees, base, labels, post_transform, call)
    scores = _scores(rows, trees, "SUM", base)
    return labelled(wg.argmax(scores, axis=1), labels, call), post_transformed(scores, post_transform)


def _of_two(
    rows: Any, trees: _Trees, base: Sequence[float], labels: Sequence[Any], transform: str, call: Call
) -> Any:
    """A label of two and both scores, where leaves give to one class only: chances, or scores around 0."""
    score = _scores(rows, trees, "SUM", ())[:, :1] + float(base[-1] if base else 0.0)
    chosen = (score[:, 0] > (0.5 if trees.is_positive else 0.0)).astype(wg.int32)
    other = 1.0 - score if trees.is_positive and transform != "LOGISTIC" else -score
    scores = wg.concat([other, score], axis=1)
    return labelled(chosen, labels, call), wg.sigmoid(scores) if transform == "LOGISTIC" else scores


# Version 5: leaves apart, nodes by their places


@operator("TreeEnsemble", 5, domain=CLASSICAL)
def tree_ensemble(
    x: Any,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Sequence[int],
    leaf_weights: Any,
    membership_values: Any = None,
    n_targets: int = 1,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Any = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: Any,
    nodes_splits: Any,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    post_transform: int = 0,
    tree_roots: Sequence[int],
    call: Call,
) -> Any:
    given, rows = locals(), _rows(x)
    trees = call.once(lambda: _new_trees(given, rows.device))
    scores = _scores(rows, trees, _AGGREGATES[aggregate_function], ())
    return post_transformed(scores, _TRANSFORMS[post_transform])


def _new_trees(given: Mapping[str, Any], device: Any) -> _Trees:
    """Branches first, then leaves, each of which leads to itself; a tree may be a single leaf."""
    count, leaves = len(given["nodes_modes"]), len(given["leaf_targetids"])

    def children(side: str) -> Array:
        at = np.asarray(given[f"nodes_{side}nodeids"], np.int32)
        is_leaf = np.asarray(given[f"nodes_{side}leafs"], bool)
        if ((at < 0) | (at >= np.where(is_leaf, leaves, count))).any():
            raise wg.ModelFileError("a branch leads to a node that is not there")
        return np.concatenate([at + count * is_leaf, count + np.arange(leaves)]).astype(np.int32)

    def filled(values: Any, dtype: Any) -> Array:
        return np.concatenate([np.asarray(values, dtype), np.zeros(leaves, dtype)])

    missing = given["nodes_missing_value_tracks_true"] or [0] * count
    members = _members(given["membership_values"], given["nodes_modes"], given["nodes_splits"].dtype)
    nodes = _Nodes(
        feature=filled(given["nodes_featureids"], np.int32),
        mode=filled(given["nodes_modes"], np.int32),
        value=filled(given["nodes_splits"], given["nodes_splits"].dtype),
        is_true_for_nan=filled(missing, bool),
        if_true=children("true"),
        if_false=children("false"),
        roots=np.asarray(given["tree_roots"], np.int32),
        members=np.concatenate([members, np.full((leaves, members.shape[1]), np.nan, members.dtype)]),
    )
    targets = np.asarray(given["leaf_targetids"], np.int64)
    at = count + np.arange(leaves)
    return _trees(nodes, at, targets, given["leaf_weights"], given["n_targets"], device)


def _members(values: Any, modes: Array, dtype: Any) -> Array:
    """For each node the values of its set: sets stand one behind the other, with NaN between them."""
    wanting = np.flatnonzero(modes == _MEMBER)
    if not wanting.size:
        return np.zeros((len(modes), 0), dtype)
    ends = np.flatnonzero(np.isnan(values))
    sets = [each[~np.isnan(each)] for each in np.split(values, ends)][: len(wanting)]
    found = np.full((len(modes), max(map(len, sets))), np.nan, dtype)
    for at, each in zip(wanting, sets, strict=True):
        found[at, : len(each)] = each
    return found
