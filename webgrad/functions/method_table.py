"""The functions that are methods of tensors too: x.softmax(axis=-1) is wg.softmax(x, axis=-1).

In: nothing. Out: a class with the functions as members: those of the table below, and all that are one row of
an op. `method_table.pyi`, which `python -m scripts.stubs` writes, tells type checkers of them.
"""

from .array import (
    elementwise,
    indexing,
    manipulation,
    maps,
    nan_folds,
    numpy_names,
    places,
    products,
    pytorch,
    reductions,
    reshaping,
    scans,
    sets,
    sorting,
    statistics,
)
from .complex import parts
from .learning import activations
from .spellings import spelled

FUNCTIONS = {
    maps: " ".join(name for name in maps.__all__ if name != "equal"),  # x.equal(y) is one bool in PyTorch
    reductions: "sum prod mean var std max min argmax argmin any all count_nonzero logsumexp norm",
    reshaping: "flatten squeeze unsqueeze broadcast_to swapaxes moveaxis flip",
    manipulation: "roll repeat tile split chunk unstack tril triu diagonal repeat_interleave",
    numpy_names: "copy ravel",
    places: "trace",
    sets: "unique",
    statistics: "median nanquantile quantile",
    nan_folds: "nanmean nansum",
    elementwise: "square reciprocal clip clamp pow lerp",
    parts: "conj angle is_complex",
    activations: "relu gelu silu softmax log_softmax",
    products: "matmul dot outer",
    scans: "cumsum cumprod cummax cummin diff",
    sorting: "sort argsort topk",
    indexing: "take take_along_axis nonzero",
    pytorch: (
        "sub mul div neg eq ne gt ge lt le amax amin mm bmm gather index_select masked_fill unbind addmm "
        "clamp_max clamp_min is_floating_point masked_select movedim narrow swapdims unflatten"
    ),
}

FunctionMethods = type(
    "FunctionMethods",
    (),
    {
        "__slots__": (),
        "__module__": __name__,
        **{
            name: spelled(getattr(module, name))
            for module, names in FUNCTIONS.items()
            for name in names.split()
        },
    },
)
