"""scikit-learn on tensors, by `array_api_dispatch=True`: fitted attributes and results as with NumPy arrays.

Signs of singular vectors are chosen by scikit-learn where it chooses them, and are free elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.libraries.comparing import EVERYWHERE, FLOATS, Array, Place, library, same, within, without_numpy

sklearn = library("sklearn")
decomposition = library("sklearn.decomposition")
discriminant_analysis = library("sklearn.discriminant_analysis")
linear_model = library("sklearn.linear_model")
metrics = library("sklearn.metrics")
model_selection = library("sklearn.model_selection")
naive_bayes = library("sklearn.naive_bayes")
pipeline = library("sklearn.pipeline")
preprocessing = library("sklearn.preprocessing")

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(40, 5)) * [1, 2, 3, 0.5, 1] + [0, 1, -2, 3, 0]
TARGET = X @ [1, 2, -1, 0.5, 0] + RANDOM.normal(size=40) / 10
CLASSES = (X[:, 0] + X[:, 1] > 1).astype(np.int32) + (X[:, 2] > -1)


class Fitted:
    """The same estimator fitted twice, with NumPy arrays and with tensors."""

    def __init__(
        self, make: Callable[[], Any], place: Place, dtype: Any, target: Array | None = None
    ) -> None:
        if target is not None and target.dtype.kind == "f":
            target = target.astype(dtype)
        self.place, self.x, self.target = place, X.astype(dtype), target
        self.numpy, self.ours = make(), make()
        given = (self.x,) if target is None else (self.x, target)
        self.numpy.fit(*given)
        with sklearn.config_context(array_api_dispatch=True):
            self.ours.fit(*(place.put(each) for each in given))

    def attributes(self, *names: str, signs: bool = True) -> None:
        """Whether attributes are the same; numbers may have become tensors of no axes."""
        for name in names:
            expected, found = getattr(self.numpy, name), getattr(self.ours, name)
            if isinstance(expected, np.ndarray):
                same(found, expected, self.place, signs=signs)
            else:
                within(self.x.dtype.type(found), self.x.dtype.type(expected))

    def call(self, name: str, signs: bool = True) -> None:
        """Whether a method gives the same for the data it was fitted with."""
        expected = getattr(self.numpy, name)(self.x)
        with sklearn.config_context(array_api_dispatch=True):
            found = getattr(self.ours, name)(self.place.put(self.x))
        same(found, expected, self.place, signs=signs)

    def there_and_back(self) -> None:
        """Whether `inverse_transform` gives the data again, or as much of it as NumPy's."""
        expected = self.numpy.inverse_transform(self.numpy.transform(self.x))
        with sklearn.config_context(array_api_dispatch=True):
            found = self.ours.inverse_transform(self.ours.transform(self.place.put(self.x)))
        same(found, expected, self.place)

    def score(self) -> None:
        """Whether the score, a number, is the same."""
        expected = self.numpy.score(self.x, self.target)
        with sklearn.config_context(array_api_dispatch=True):
            found = self.ours.score(self.place.put(self.x), self.place.put(self.target))
        within(np.float32(found), np.float32(expected))  # means of integers are float32


# The estimators that are promised


@EVERYWHERE
@FLOATS
def test_standard_scaler(device: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_numpy(monkeypatch):
        both = Fitted(preprocessing.StandardScaler, Place(device, dtype), dtype)
        both.call("transform")
        both.there_and_back()
    both.attributes("mean_", "scale_", "var_")


@EVERYWHERE
@FLOATS
def test_pca(device: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_numpy(monkeypatch):
        both = Fitted(lambda: decomposition.PCA(3, svd_solver="full"), Place(device, dtype), dtype)
        both.call("transform")
        both.there_and_back()
    both.attributes("components_", "mean_", "explained_variance_", "singular_values_", "noise_variance_")


@EVERYWHERE
@FLOATS
def test_ridge(device: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_numpy(monkeypatch):
        both = Fitted(lambda: linear_model.Ridge(solver="svd"), Place(device, dtype), dtype, TARGET)
        both.call("predict")
        both.score()
    both.attributes("coef_", "intercept_")


def discriminants(device: str, dtype: Any) -> Fitted:
    return Fitted(discriminant_analysis.LinearDiscriminantAnalysis, Place(device, dtype), dtype, CLASSES)


@EVERYWHERE
def test_linear_discriminant_analysis(device: str) -> None:
    both = discriminants(device, np.float32)
    both.attributes("means_", "priors_", "xbar_", "coef_", "intercept_", "classes_")
    both.attributes("scalings_", signs=False)
    both.call("transform", signs=False)
    for name in ("predict", "predict_proba"):
        both.call(name)


@FLOATS
def test_more_of_linear_discriminant_analysis(dtype: Any) -> None:
    both = discriminants("cpu", dtype)
    both.attributes("coef_", "explained_variance_ratio_")
    for name in ("predict_proba", "predict_log_proba", "decision_function"):
        both.call(name)
    both.score()


# Others that come for free: on the cpu, since they are made of the same functions


@FLOATS
@pytest.mark.parametrize(
    "options",
    [
        {"svd_solver": "covariance_eigh"},
        {"svd_solver": "randomized", "power_iteration_normalizer": "QR", "random_state": 0},
        {"svd_solver": "full", "whiten": True},
    ],
    ids=["eigenvectors", "randomised", "whitened"],
)
def test_other_ways_of_pca(dtype: Any, options: dict[str, Any]) -> None:
    both = Fitted(lambda: decomposition.PCA(3, **options), Place("cpu"), dtype)
    both.attributes("components_", "explained_variance_ratio_")
    both.call("transform")


@FLOATS
@pytest.mark.parametrize(
    "name", ["MinMaxScaler", "MaxAbsScaler", "Normalizer", "Binarizer", "PolynomialFeatures"]
)
def test_preprocessing(dtype: Any, name: str) -> None:
    both = Fitted(getattr(preprocessing, name), Place("cpu"), dtype)
    both.call("transform")
    if name in ("MinMaxScaler", "MaxAbsScaler"):
        both.there_and_back()


@FLOATS
def test_naive_bayes(dtype: Any) -> None:
    both = Fitted(naive_bayes.GaussianNB, Place("cpu"), dtype, CLASSES)
    both.attributes("theta_", "var_", "class_prior_", "classes_")
    both.call("predict")
    both.call("predict_proba")


@FLOATS
@pytest.mark.parametrize("name", ["RidgeClassifier", "RidgeClassifierCV"])
def test_linear_classifiers(dtype: Any, name: str) -> None:
    options = {"solver": "svd"} if name == "RidgeClassifier" else {}
    both = Fitted(lambda: getattr(linear_model, name)(**options), Place("cpu"), dtype, CLASSES)
    both.attributes("coef_", "intercept_", "classes_")
    both.call("predict")


@EVERYWHERE
def test_a_pipeline(device: str) -> None:
    def make() -> Any:
        return pipeline.make_pipeline(
            preprocessing.StandardScaler(),
            decomposition.PCA(3, svd_solver="full"),
            linear_model.Ridge(solver="svd"),
        )

    both = Fitted(make, Place(device), np.float32, TARGET)
    both.call("predict")
    both.score()


# Metrics

GUESS = (TARGET + np.linspace(-1, 1, 40)).astype(np.float32)
LABELS = (CLASSES > 0).astype(np.int32)
GUESSED = np.where(np.arange(40) % 7 == 0, 1 - LABELS, LABELS).astype(np.int32)
CHANCES = (GUESSED * 0.6 + 0.2 + np.arange(40) / 400).astype(np.float32)
GIVEN = {
    **dict.fromkeys(
        ("mean_squared_error", "mean_absolute_error", "r2_score", "max_error", "median_absolute_error"),
        (TARGET.astype(np.float32), GUESS),
    ),
    **dict.fromkeys(
        ("accuracy_score", "f1_score", "confusion_matrix", "zero_one_loss", "jaccard_score"),
        (LABELS, GUESSED),
    ),
    **dict.fromkeys(
        ("log_loss", "brier_score_loss", "average_precision_score", "roc_auc_score"), (LABELS, CHANCES)
    ),
}


def compared(name: str, device: str) -> None:
    """Whether a metric gives the same number, or array of whole ones, for tensors."""
    place, metric = Place(device), getattr(metrics, name)
    expected = metric(*GIVEN[name])
    with sklearn.config_context(array_api_dispatch=True):
        found = metric(*map(place.put, GIVEN[name]))
    if isinstance(expected, np.ndarray):
        same(found, expected, place, dtypes=False)  # counts are int32 where NumPy's are int64
    else:
        within(np.float32(found), np.float32(expected))


@pytest.mark.parametrize("name", GIVEN)
def test_metrics(name: str) -> None:
    compared(name, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["accuracy_score", "confusion_matrix", "r2_score", "mean_squared_error"])
def test_metrics_of_tensors_on_a_gpu(name: str) -> None:
    compared(name, "webgpu:0")


@EVERYWHERE
@pytest.mark.parametrize("name", ["euclidean_distances", "cosine_similarity", "rbf_kernel"])
def test_pairwise_metrics(device: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, metric = Place(device), getattr(metrics.pairwise, name)
    first, second = X[:12].astype(np.float32), X[12:].astype(np.float32)
    with sklearn.config_context(array_api_dispatch=True), without_numpy(monkeypatch):
        found = metric(place.put(first), place.put(second))
    same(found, metric(first, second), place)


@EVERYWHERE
def test_data_are_split_where_they_are(device: str) -> None:
    place, x = Place(device), X.astype(np.float32)
    expected = model_selection.train_test_split(x, CLASSES, random_state=0)
    with sklearn.config_context(array_api_dispatch=True):
        found = model_selection.train_test_split(place.put(x), place.put(CLASSES), random_state=0)
    same(found, expected, place)


# What goes wrong


def on_cpu(values: Array) -> wg.Tensor:
    return wg.asarray(values, device="cpu")


def test_numpy_arrays_for_what_was_fitted_with_tensors() -> None:
    with sklearn.config_context(array_api_dispatch=True):
        fitted = linear_model.Ridge(solver="svd").fit(on_cpu(X), on_cpu(TARGET))
        with pytest.raises(ValueError, match="must use the same namespace and the same device"):
            fitted.predict(X)


def test_data_that_are_not_finite_are_refused() -> None:
    missing = np.where(np.arange(40)[:, None] == 3, np.nan, X)
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(ValueError, match="Input X contains NaN"),
    ):
        linear_model.Ridge(solver="svd").fit(on_cpu(missing), on_cpu(TARGET))
