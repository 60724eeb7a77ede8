"""ai.onnx.ml's features and linear models: what scikit-learn's pipelines are written as.

Labels that are texts are chosen on the host, so that a model with such labels waits for its scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from .table import Call, operator
from .values import is_array

__all__ = ["CLASSICAL", "labelled", "post_transformed"]

CLASSICAL = "ai.onnx.ml"


# Features


@operator("ArrayFeatureExtractor", domain=CLASSICAL, known="x")
def array_feature_extractor(x: Any, places: Any) -> Any:
    """Elements of the last axis."""
    rows = x if x.ndim > 1 else x.reshape((1, -1))
    if is_array(x):
        return rows[..., places.numpy().reshape(-1)]
    return wg.take(rows, places.reshape(-1), axis=-1)


@operator("Binarizer", domain=CLASSICAL)
def binarizer(x: Any, *, threshold: float = 0.0) -> Any:
    return (x > threshold).astype(x.dtype)


@operator("Scaler", domain=CLASSICAL)
def scaler(x: Any, *, offset: Sequence[float] = (0.0,), scale: Sequence[float] = (1.0,)) -> Any:
    values = x.astype(wg.float32)
    return (values - _row(offset, values)) * _row(scale, values)


@operator("Normalizer", domain=CLASSICAL)
def normalizer(x: Any, *, norm: str = "MAX") -> Any:
    """Rows divided by their largest size, the sum of sizes or the root of squares; rows of zeros stay."""
    values = x.astype(wg.float32)
    sizes = wg.abs(values)
    if norm == "MAX":
        whole = wg.max(values, axis=-1, keepdims=True)
    elif norm == "L1":
        whole = wg.sum(sizes, axis=-1, keepdims=True)
    elif norm == "L2":
        whole = wg.sqrt(wg.sum(values * values, axis=-1, keepdims=True))
    else:
        raise wg.ModelFileError(f"Normalizer's norm is MAX, L1 or L2, not {norm!r}")
    return wg.where(whole == 0, values, values / whole)


@operator("Imputer", domain=CLASSICAL)
def imputer(
    x: Any,
    *,
    imputed_value_floats: Sequence[float] = (),
    imputed_value_int64s: Sequence[int] = (),
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Any:
    if imputed_value_int64s:
        return wg.where(x == replaced_value_int64, _row(imputed_value_int64s, x), x)
    is_missing = wg.isnan(x) if math.isnan(replaced_value_float) else x == replaced_value_float
    return wg.where(is_missing, _row(imputed_value_floats, x), x)


@operator("OneHotEncoder", domain=CLASSICAL, known="x")
def one_hot_encoder(
    x: Any, *, cats_int64s: Sequence[int] = (), cats_strings: Sequence[str] = (), zeros: int = 1, call: Call
) -> Any:
    if is_array(x):
        found = x[..., None] == np.asarray(cats_strings or cats_int64s, object if cats_strings else None)
        if not zeros and not found.any(-1).all():
            raise wg.ArgumentError("OneHotEncoder meets a category that it does not have, and zeros=0")
        return found.astype(np.float32)
    kinds = wg.asarray(list(cats_int64s), dtype=wg.int32, device=x.device)
    return (x.astype(wg.int32)[..., None] == kinds).astype(wg.float32)


@operator("FeatureVectorizer", domain=CLASSICAL)
def feature_vectorizer(*inputs: Any, inputdimensions: Sequence[int] = ()) -> Any:
    """Columns side by side, each input's cut or filled with zeros to its number of them."""
    widths = inputdimensions or [each.shape[-1] for each in inputs]
    rows = [each.reshape((1, -1)) if each.ndim == 1 else each for each in inputs]
    columns = [
        wg.pad(each[:, :width], ((0, 0), (0, max(width - each.shape[1], 0)))).astype(wg.float32)
        for each, width in zip(rows, widths, strict=True)
    ]
    return wg.concat(columns, axis=1)


# Maps from values to values


@operator("LabelEncoder", domain=CLASSICAL, host="x")
def label_encoder_of_classes(
    x: Any,
    *,
    classes_strings: Sequence[str] = (),
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Any:
    if x.dtype == object:
        return _looked_up(x, classes_strings, range(len(classes_strings)), default_int64, np.int64)
    return _looked_up(x, range(len(classes_strings)), classes_strings, default_string, object)


@operator("LabelEncoder", 2, domain=CLASSICAL, host="x")
def label_encoder(
    x: Any,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Any = None,
    keys_floats: Sequence[float] = (),
    keys_int64s: Sequence[int] = (),
    keys_strings: Sequence[str] = (),
    keys_tensor: Any = None,
    values_floats: Sequence[float] = (),
    values_int64s: Sequence[int] = (),
    values_strings: Sequence[str] = (),
    values_tensor: Any = None,
) -> Any:
    keys = keys_strings or keys_int64s or keys_floats
    if keys_tensor is not None:
        keys = keys_tensor.tolist()
    if values_tensor is not None:
        unknown = _DEFAULTS[values_tensor.dtype.kind] if default_tensor is None else default_tensor.item()
        return _looked_up(x, keys, values_tensor.tolist(), unknown, values_tensor.dtype)
    kinds = (
        (values_strings, default_string, object),
        (values_int64s, default_int64, np.int64),
        (values_floats, default_float, np.float32),
    )
    values, unknown, dtype = next((each for each in kinds if each[0]), kinds[0])
    return _looked_up(x, keys, values, unknown, dtype)


_DEFAULTS = {"O": "_Unused", "i": -1, "f": -0.0}


@operator("CategoryMapper", domain=CLASSICAL, host="x")
def category_mapper(
    x: Any,
    *,
    cats_int64s: Sequence[int],
    cats_strings: Sequence[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Any:
    if x.dtype == object:
        return _looked_up(x, cats_strings, cats_int64s, default_int64, np.int64)
    return _looked_up(x, cats_int64s, cats_strings, default_string, object)


@operator("DictVectorizer", domain=CLASSICAL, folds=False)
def dict_vectorizer(
    x: Any, *, int64_vocabulary: Sequence[int] = (), string_vocabulary: Sequence[str] = ()
) -> Any:
    """A map's values in the order of a vocabulary, 0 for what the map has not."""
    values = [x.get(each, 0) for each in string_vocabulary or int64_vocabulary]
    if any(isinstance(each, str) for each in values):
        return np.asarray([[each or "" for each in values]], object)
    return np.asarray([values], np.float32 if any(isinstance(each, float) for each in values) else np.int64)


@operator("CastMap", domain=CLASSICAL, folds=False)
def cast_map(x: Any, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Any:
    dtypes = {"TO_FLOAT": np.float32, "TO_STRING": object, "TO_INT64": np.int64}
    if map_form == "DENSE":
        values = [x[key] for key in sorted(x)]
    else:
        values = [x.get(at, "" if cast_to == "TO_STRING" else 0) for at in range(max_map)]
    return np.asarray([values], dtypes[cast_to])


@operator("ZipMap", domain=CLASSICAL, host="x", folds=False)
def zip_map(
    x: Any, *, classlabels_int64s: Sequence[int] = (), classlabels_strings: Sequence[str] = ()
) -> Any:
    names = classlabels_strings or classlabels_int64s
    return [dict(zip(names, row, strict=True)) for row in np.atleast_2d(x).tolist()]


def _looked_up(x: Array, keys: Sequence[Any], values: Sequence[Any], unknown: Any, dtype: Any) -> Array:
    table = dict(zip(keys, values, strict=True))
    missing = next((value for key, value in table.items() if key != key), unknown)  # that of a key NaN
    found = [table.get(each, missing if each != each else unknown) for each in x.reshape(-1).tolist()]
    return np.asarray(found, dtype).reshape(x.shape)


def _row(values: Sequence[float], like: Any) -> Any:
    """An attribute with a number for each column, or one for all."""
    return wg.asarray(list(values), dtype=like.dtype, device=like.device)


# Linear models


@operator("LinearRegressor", domain=CLASSICAL)
def linear_regressor(
    x: Any,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
    targets: int = 1,
    call: Call,
) -> Any:
    return post_transformed(_linear(x, coefficients, intercepts, targets, call), post_transform)


@operator("LinearClassifier", domain=CLASSICAL)
def linear_classifier(
    x: Any,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
    call: Call,
) -> Any:
    labels = classlabels_strings or classlabels_ints
    columns = x.shape[-1]
    scores = _linear(x, coefficients, intercepts, len(coefficients) // columns, call)
    if scores.shape[1] > 1:
        chosen = wg.argmax(scores, axis=1)
        return labelled(chosen, labels, call), post_transformed(scores, post_transform)
    chosen = labelled((scores[:, 0] > 0).astype(wg.int32), labels or (0, 1), call)
    if post_transform == "LOGISTIC":
        scores = wg.sigmoid(scores)
    return chosen, wg.concat([1.0 - scores, scores], axis=1) if len(labels) == 2 else scores


def _linear(
    x: Any, coefficients: Sequence[float], intercepts: Sequence[float], targets: int, call: Call
) -> Any:
    """Scores (rows, targets)."""
    rows = (x.reshape((1, -1)) if x.ndim == 1 else x).astype(wg.float32)
    device = rows.device
    weight, bias = call.once(
        lambda: (
            wg.asarray(np.asarray(coefficients, np.float32).reshape(targets, -1), device=device),
            wg.asarray(np.asarray(intercepts, np.float32), device=device) if intercepts else None,
        )
    )
    return wg.linear(rows, weight, bias)


def labelled(chosen: Any, labels: Sequence[Any], call: Call) -> Any:
    """The labels of chosen places: numbers as a tensor; texts as an array, for which the host waits."""
    if labels and isinstance(labels[0], str):
        return np.asarray(labels, object)[call.host(chosen)]
    return wg.take(wg.asarray(np.asarray(labels, np.int64), device=chosen.device), chosen)


def post_transformed(scores: Any, kind: str) -> Any:
    """Scores as a model wants them."""
    if kind not in _TRANSFORMS:
        raise wg.ModelFileError(f"post_transform is {', '.join(_TRANSFORMS)}, not {kind!r}")
    return _TRANSFORMS[kind](scores)


def _softmax_zero(scores: Any) -> Any:
    """Softmax in which a score of 0 has no share."""
    powers = wg.where(scores == 0, 0.0, wg.exp(scores - wg.max(scores, axis=-1, keepdims=True)))
    return powers / wg.sum(powers, axis=-1, keepdims=True)


_TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "NONE": lambda scores: scores,
    "LOGISTIC": lambda scores: wg.sigmoid(scores),
    "SOFTMAX": lambda scores: wg.softmax(scores, axis=-1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": lambda scores: math.sqrt(2.0) * wg.special.erfinv(2.0 * scores - 1.0),
}
