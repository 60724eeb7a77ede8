"""ai.onnx.ml: features, maps, linear models, trees and support vector machines against plain loops."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import floats, loaded, model, node

GENERATOR = np.random.default_rng(8)
OPSETS = {"": 18, "ai.onnx.ml": 5}


def ran(tmp_path: Path, kind: str, x: Any, outputs: str = "y", version: int = 3, **attributes: Any) -> Any:
    nodes = [node(kind, "x", outputs, domain="ai.onnx.ml", **attributes)]
    types = dict.fromkeys(outputs.split())
    opsets = OPSETS | {"ai.onnx.ml": version}
    type_ = ("string" if x.dtype == object else x.dtype.name, list(x.shape))
    m = loaded(tmp_path, model(nodes, {"x": type_}, types, opset=opsets))
    m(x)
    found = [each.numpy() if isinstance(each, wg.Tensor) else each for each in m(x).values()]
    return found if len(found) > 1 else found[0]


def texts(*values: str) -> Any:
    return np.asarray(values, object)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_of_zeros_are_not_divided(tmp_path: Path, norm: str) -> None:
    x = floats([3, -4], [0, 0])
    whole = {"MAX": 3.0, "L1": 7.0, "L2": 5.0}[norm]
    assert np.allclose(ran(tmp_path, "Normalizer", x, norm=norm), floats([3 / whole, -4 / whole], [0, 0]))


def test_features(tmp_path: Path) -> None:
    x = floats([1, np.nan], [3, 4])
    found = ran(tmp_path, "Imputer", x, imputed_value_floats=[7.0, 8.0], replaced_value_float=float("nan"))
    assert found.tolist() == [[1, 8], [3, 4]]
    found = ran(tmp_path, "Scaler", floats([1, 2]), offset=[1.0, 0.0], scale=[2.0, 3.0])
    assert found.tolist() == [[0, 6]]
    assert ran(tmp_path, "Binarizer", floats(0.5, 0.6), threshold=0.5).tolist() == [0, 1]
    assert ran(tmp_path, "OneHotEncoder", texts("b", "z"), cats_strings=["a", "b"]).tolist() == [
        [0, 1],
        [0, 0],
    ]
    with pytest.raises(wg.ArgumentError, match="a category that it does not have"):
        ran(tmp_path, "OneHotEncoder", texts("b", "z"), cats_strings=["a", "b"], zeros=0)


def test_maps(tmp_path: Path) -> None:
    given: Any = {"keys_strings": ["a", "b"], "values_floats": [1.0, 2.0], "default_float": -1.0}
    assert ran(tmp_path, "LabelEncoder", texts("b", "z", "a"), version=2, **given).tolist() == [2, -1, 1]
    given = {"keys_floats": [1.0, float("nan")], "values_strings": ["one", "none"]}
    found = ran(tmp_path, "LabelEncoder", floats(np.nan, 1, 2), version=2, **given)
    assert found.tolist() == ["none", "one", "_Unused"]
    given = {"cats_int64s": [5, 6], "cats_strings": ["a", "b"]}
    assert ran(tmp_path, "CategoryMapper", texts("b", "z"), **given).tolist() == [6, -1]
    found = ran(tmp_path, "ZipMap", floats([0.25, 0.75]), classlabels_strings=["n", "y"])
    assert found == [{"n": 0.25, "y": 0.75}]


@pytest.mark.parametrize("labels", [{"classlabels_ints": [5, 6]}, {"classlabels_strings": ["n", "y"]}])
def test_one_score_decides_between_two(tmp_path: Path, labels: Any) -> None:
    names = next(iter(labels.values()))
    given = {"coefficients": [1.0, -1.0], "intercepts": [0.5], "post_transform": "LOGISTIC", **labels}
    chosen, scores = ran(tmp_path, "LinearClassifier", floats([2, 1], [1, 2]), "y z", **given)
    chances = 1 / (1 + np.exp(-np.asarray([1.5, -0.5])))
    assert chosen.tolist() == [names[1], names[0]]
    np.testing.assert_allclose(scores, np.stack([1 - chances, chances], 1), rtol=1e-6)


# Trees

MODES = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


def grown(depth: int, nodes: list[dict[str, Any]], leaves: list[tuple[int, int, float]]) -> int:
    """A tree of random branches; some paths end early."""
    at = len(nodes)
    nodes.append({"mode": "LEAF", "feature": 0, "value": 0.0, "yes": 0, "no": 0, "nan": 0})
    if depth == 0 or GENERATOR.random() < 0.2:
        leaves.append((at, int(GENERATOR.integers(3)), float(GENERATOR.integers(-8, 8)) / 4))
        return at
    nodes[at] = {
        "mode": str(GENERATOR.choice(list(MODES))),
        "feature": int(GENERATOR.integers(2)),
        "value": float(GENERATOR.integers(-2, 3)),
        "nan": int(GENERATOR.integers(2)),
        "yes": grown(depth - 1, nodes, leaves),
        "no": grown(depth - 1, nodes, leaves),
    }
    return at


def walked(nodes: list[dict[str, Any]], row: Any) -> int:
    at = 0
    while nodes[at]["mode"] != "LEAF":
        each, value = nodes[at], row[nodes[at]["feature"]]
        goes = MODES[each["mode"]](value, each["value"]) or (np.isnan(value) and each["nan"])
        at = each["yes"] if goes else each["no"]
    return at


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_are_walked_as_one_by_one(tmp_path: Path, aggregate: str) -> None:
    x = GENERATOR.integers(-3, 4, (30, 2)).astype(np.float32)
    x[3, 0] = x[9, 1] = np.nan
    trees: list[Any] = []
    for depth in (0, 2, 3, 5):
        nodes: list[dict[str, Any]] = []
        leaves: list[tuple[int, int, float]] = []
        grown(depth, nodes, leaves)
        trees.append((nodes, leaves))
    every = [(tree, at, each) for tree, (nodes, _) in enumerate(trees) for at, each in enumerate(nodes)]
    worth = [(tree, *each) for tree, (_, leaves) in enumerate(trees) for each in leaves]
    attributes: dict[str, Any] = {
        "nodes_treeids": [tree for tree, _, _ in every],
        "nodes_nodeids": [at for _, at, _ in every],
        "nodes_modes": [each["mode"] for _, _, each in every],
        "nodes_featureids": [each["feature"] for _, _, each in every],
        "nodes_values": [each["value"] for _, _, each in every],
        "nodes_truenodeids": [each["yes"] for _, _, each in every],
        "nodes_falsenodeids": [each["no"] for _, _, each in every],
        "nodes_missing_value_tracks_true": [each["nan"] for _, _, each in every],
        "target_treeids": [each[0] for each in worth],
        "target_nodeids": [each[1] for each in worth],
        "target_ids": [each[2] for each in worth],
        "target_weights": [each[3] for each in worth],
    }
    base = [0.5, 0.25, 1.0]
    given: Any = {"n_targets": 3, "aggregate_function": aggregate, "base_values": base}
    found = ran(tmp_path, "TreeEnsembleRegressor", x, **attributes, **given)
    fold = {"MIN": min, "MAX": max}.get(aggregate, sum)
    for row, scores in zip(x, found, strict=True):
        votes: list[list[float]] = [[], [], []]
        for nodes, leaves in trees:
            end = walked(nodes, row)
            for at, target, weight in leaves:
                if at == end:
                    votes[target].append(weight)
        expected = [fold(each) if each else 0.0 for each in votes]
        if aggregate == "AVERAGE":
            expected = [each / len(trees) for each in expected]
        np.testing.assert_allclose(scores, np.add(expected, base), rtol=1e-6)


def stump(**other: Any) -> dict[str, Any]:
    """x[0] <= 1 → leaf 1, else leaf 2."""
    return {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [1.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        **other,
    }


@pytest.mark.parametrize(("weights", "scores"), [([0.25, 0.75], [0.75, 0.25]), ([-1.0, 2.0], [1.0, -1.0])])
def test_trees_with_scores_of_one_class(tmp_path: Path, weights: Any, scores: Any) -> None:
    """Chances, and scores around 0."""
    classes = {
        "class_treeids": [0, 0],
        "class_nodeids": [1, 2],
        "class_ids": [0, 0],
        "class_weights": weights,
    }
    given = stump(**classes, classlabels_int64s=[10, 20])
    chosen, found = ran(tmp_path, "TreeEnsembleClassifier", floats([0], [5]), "y z", **given)
    assert chosen.tolist() == [10, 20]
    assert found[0].tolist() == scores


def test_trees_that_go_round_in_a_circle_are_refused(tmp_path: Path) -> None:
    leaves = {"target_treeids": [0], "target_nodeids": [2], "target_ids": [0], "target_weights": [1.0]}
    given = stump(nodes_modes=["BRANCH_LEQ", "BRANCH_LT", "LEAF"], nodes_falsenodeids=[2, 0, 0], **leaves)
    with pytest.raises(wg.ModelFileError, match="round in a circle"):
        ran(tmp_path, "TreeEnsembleRegressor", floats([0]), **given)


# Support vector machines


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_votes_of_pairs_of_classes(tmp_path: Path, kind: str) -> None:
    sizes, gamma, zero, degree = [2, 3, 1], 0.3, 0.5, 2.0
    vectors, x = (GENERATOR.standard_normal((rows, 4), np.float32) for rows in (6, 9))
    coefficients, rho = GENERATOR.standard_normal((2, 6), np.float32), floats(0.1, -0.2, 0.3)
    products = x @ vectors.T
    kernels = {
        "LINEAR": products,
        "POLY": (gamma * products + zero) ** degree,
        "RBF": np.exp(-gamma * ((x[:, None] - vectors) ** 2).sum(-1)),
        "SIGMOID": np.tanh(gamma * products + zero),
    }
    of = np.repeat([0, 1, 2], sizes)
    scores = np.stack(
        [
            (kernels[kind] * ((of == i) * coefficients[j - 1] + (of == j) * coefficients[i])).sum(1) + rho[at]
            for at, (i, j) in enumerate(combinations(range(3), 2))
        ],
        axis=1,
    )
    votes = np.zeros((9, 3), int)
    for at, (i, j) in enumerate(combinations(range(3), 2)):
        votes[np.arange(9), np.where(scores[:, at] > 0, i, j)] += 1
    given = {
        "coefficients": coefficients.reshape(-1).tolist(),
        "support_vectors": vectors.reshape(-1).tolist(),
        "vectors_per_class": sizes,
        "rho": rho.tolist(),
        "kernel_type": kind,
        "kernel_params": [gamma, zero, degree],
        "classlabels_strings": ["a", "b", "c"],
    }
    chosen, found = ran(tmp_path, "SVMClassifier", x, "y z", **given)
    np.testing.assert_allclose(found, scores, rtol=1e-3, atol=1e-5)
    assert chosen.tolist() == [["a", "b", "c"][each] for each in votes.argmax(1)]
