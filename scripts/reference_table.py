"""Which page of the reference tells of which names: a table, in the order in which a reader would look.

A page has sections; a section takes the names of a namespace whose home, the module that has them, it lists.
Names without a docstring of their own, constants, have their sentence here.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CONSTANTS", "PAGES", "Page", "Section"]

CONSTANTS = {
    "__array_api_version__": "The version of the array API standard whose names these are.",
    "__version__": "webgrad's own version.",
    "e": "Euler's number, 2.718….",
    "inf": "Infinity.",
    "nan": "Not a number.",
    "newaxis": "None: `x[wg.newaxis]` has a new axis.",
    "pi": "3.14159….",
    "FASHION_CLASSES": "The names of Fashion-MNIST's ten classes, by label.",
    "PICKLED": "Endings of files that may hold pickled objects; models are not pulled in these.",
}


@dataclass(frozen=True, slots=True)
class Section:
    """Names under one heading: those of a namespace whose home module is one of `homes`, or all of them."""

    title: str
    namespace: str = "wg"
    homes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One file of the reference."""

    name: str
    title: str
    sentence: str
    sections: tuple[Section, ...]


def _of(*rows: tuple[str, str], namespace: str = "wg") -> tuple[Section, ...]:
    return tuple(Section(title, namespace, tuple(homes.split())) for title, homes in rows)


PAGES = (
    Page(
        "tensor",
        "Tensor",
        "What every function takes and gives. Most functions of one tensor are methods too.",
        _of(("Tensor", "tensor")),
    ),
    Page(
        "making",
        "Making tensors",
        "Tensors from numbers, from other libraries' arrays, and at random.",
        (
            *_of(
                ("From shapes and values", "functions.array.creation"),
                ("From other libraries", "functions.array.interop"),
            ),
            Section("Random numbers", "wg.random"),
            *_of(("Random numbers by PyTorch's names", "functions.random functions.sampling")),
        ),
    ),
    Page(
        "elements",
        "Element by element",
        "Arithmetic, comparisons and functions of single elements; operands are broadcast and promoted.",
        _of(
            (
                "Functions",
                "functions.array.elementwise functions.array.maps functions.array.arithmetic special.*",
            ),
            ("Complex numbers", "functions.complex.parts"),
        ),
    ),
    Page(
        "arrangement",
        "Shapes, indices and order",
        "The same elements at other places.",
        _of(
            (
                "Shapes and arrangement",
                "functions.array.manipulation functions.array.reshaping functions.array.patterns "
                "functions.array.strided",
            ),
            ("Indexing", "functions.array.indexing"),
            ("Writing to computed places", "functions.array.scatters"),
            ("Pieces", "functions.array.pieces"),
            ("Places and choices", "functions.array.places"),
            ("Order", "functions.array.sorting"),
            ("Sets", "functions.array.sets"),
        ),
    ),
    Page(
        "folds",
        "Sums, statistics and products",
        "Many elements become one.",
        _of(
            ("Over axes", "functions.array.reductions"),
            ("Along an axis", "functions.array.scans"),
            ("Statistics", "functions.array.statistics"),
            ("Without NaN", "functions.array.nan_folds"),
            ("Lines and polynomials", "functions.series linalg.polynomials"),
            ("Counting", "functions.array.histograms"),
            ("Slopes and areas", "functions.array.calculus"),
            ("Windows", "signal.windows"),
            ("Distances", "functions.array.distances"),
            ("Products", "functions.array.products linalg.products"),
        ),
    ),
    Page(
        "learning",
        "Functions of machine learning",
        "What layers are made of. `wg.nn.functional` has them too, by PyTorch's arguments.",
        _of(
            ("Activations", "functions.learning.activations"),
            ("Normalisation", "functions.learning.normalisation"),
            ("Losses", "functions.learning.losses"),
            ("Attention", "functions.learning.attention"),
            ("Positions", "functions.learning.positions"),
            ("Convolution", "functions.convolution.convolution"),
            (
                "Pooling",
                " ".join(f"functions.convolution.{each}" for each in ("pooling", "adaptive", "unpooling")),
            ),
            ("Windows", "functions.convolution.windows"),
            ("Images", "functions.learning.images"),
            ("Quantised weights", "functions.learning.quantised"),
        ),
    ),
    Page(
        "pytorch-names",
        "PyTorch's names",
        "Functions of the other pages under the names that PyTorch gives them.",
        _of(("Functions", "functions.array.pytorch")),
    ),
    Page(
        "numpy-names",
        "NumPy's names",
        "Functions of the other pages under NumPy's names, and small ones that only NumPy has.",
        _of(("Functions", "functions.array.numpy_names")),
    ),
    Page(
        "gradients",
        "Gradients and jit",
        "Functions of functions, and what is computed when.",
        _of(
            ("Gradients", "gradients.autograd"),
            ("Hooks", "gradients.hooks"),
            ("Gradients of tensors", "gradients.requires_grad"),
            ("Capturing", "jit.capture jit.inputs functions.pure"),
            ("Computing now", "functions.array.evaluation"),
        ),
    ),
    Page(
        "tools",
        "Looking and measuring",
        "What will run, what ran, and what it cost.",
        _of(("Tools", "explanation tuning tools.* observing web.*")),
    ),
    Page(
        "devices",
        "Devices and kernels",
        "Which device computes, what waits on it, and kernels of your own.",
        _of(
            ("Devices", "runtime.device runtime.adapters runtime.webgpu runtime.context runtime.buffers"),
            ("Kernels", "custom"),
            ("Batches", "batch"),
        ),
    ),
    Page(
        "types",
        "Data types and constants",
        "The dtypes, how they are promoted, and what can be asked about them.",
        _of(
            ("Data types", "dtypes"),
            ("Asked about", "functions.array.types functions.array.inspection"),
            ("Constants", "constants"),
        ),
    ),
    Page(
        "errors",
        "Errors",
        "All are `WebgradError`s; each message says what failed, with which values, and what to do.",
        _of(("Errors", "errors")),
    ),
    Page(
        "nn",
        "wg.nn",
        "Modules by PyTorch's names.",
        _of(
            ("Modules and parameters", "nn.module nn.hooks nn.parameter nn.containers nn.summary"),
            ("Linear and tables", "nn.linear nn.adaptive"),
            ("Convolution", "nn.convolution"),
            ("Pooling", "nn.pooling"),
            ("Normalisation", "nn.normalisation"),
            ("Activations", "nn.activations"),
            ("Dropout", "nn.dropout"),
            ("Sequences", "nn.recurrent"),
            ("Attention and transformers", "nn.attention nn.transformer"),
            ("Images and padding", "nn.images"),
            ("Distances", "nn.distances"),
            ("Losses", "nn.losses nn.class_losses"),
            ("Layers that take their sizes from their input", "nn.lazy"),
            namespace="wg.nn",
        ),
    ),
    Page(
        "nn-functional",
        "wg.nn.functional",
        "Functions by PyTorch's names and arguments.",
        (Section("Functions", "wg.nn.functional"),),
    ),
    Page(
        "nn-init",
        "wg.nn.init and wg.nn.utils",
        "Initial values, and clipping.",
        (
            Section("Initial values", "wg.nn.init"),
            Section("Gradients, vectors, weights", "wg.nn.utils"),
            Section("Sequences of different lengths", "wg.nn.utils.rnn"),
            Section("Parametrisation", "wg.nn.utils.parametrize"),
            Section("Parametrisations", "wg.nn.utils.parametrizations"),
            Section("Pruning", "wg.nn.utils.prune"),
        ),
    ),
    Page(
        "optim",
        "wg.optim",
        "Optimisers, and schedules of learning rates.",
        (Section("Optimisers", "wg.optim"), Section("Schedules", "wg.optim.lr_scheduler")),
    ),
    Page("amp", "wg.amp", "Mixed precision.", (Section("Mixed precision", "wg.amp"),)),
    Page(
        "data",
        "wg.data",
        "Datasets and loaders.",
        (Section("Datasets and loaders", "wg.data"), Section("Published datasets", "wg.data.datasets")),
    ),
    Page("training", "wg.training", "A training loop.", (Section("Training", "wg.training"),)),
    Page("io", "wg.io", "Files of tensors.", (Section("Files", "wg.io"),)),
    Page("models", "wg.models", "Published models.", (Section("Models", "wg.models"),)),
    Page("linalg", "wg.linalg", "Linear algebra.", (Section("Linear algebra", "wg.linalg"),)),
    Page("fft", "wg.fft", "Fourier transforms.", (Section("Fourier transforms", "wg.fft"),)),
    Page(
        "signal",
        "wg.signal",
        "Spectrograms and windows.",
        (Section("Spectrograms", "wg.signal"), Section("Windows", "wg.signal.windows")),
    ),
    Page("special", "wg.special", "Special functions.", (Section("Special functions", "wg.special"),)),
)
