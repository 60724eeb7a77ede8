"""webgrad: tensors and machine learning on every GPU, in browsers, and on the CPU.

Importing it is light and touches no GPU: what needs the native library is loaded when it is first used. The
public names are the tables below. `__init__.pyi`, which `python -m scripts.stubs` writes, tells type checkers
and editors of them.
"""

from __future__ import annotations

from . import startup as _startup  # noqa: F401  (first: the other imports are what Ctrl-C may hit)

# isort: split
import importlib
from math import e, inf, nan, pi
from typing import Any

from . import errors, observing
from .config import settings as _settings
from .functions import methods as _methods  # noqa: F401  (which gives Tensor its methods)
from .functions import random
from .functions.array import maps as _maps
from .functions.einops_backend import register as _register_with_einops
from .functions.spellings import spelled as _spelled
from .porting import refusing as _refusing

__version__ = "0.1.0"
__array_api_version__ = "2025.12"
newaxis = None  # x[newaxis] has a new axis, as x[None] has

# module → its public names
_NAMES = {
    "dtypes": (
        "DType as_dtype bfloat16 bool complex64 complex128 float16 float32 float64 int8 int16 int32 int64 "
        "promote uint8 uint16 uint32 uint64"
    ),
    "errors": " ".join(errors.__all__),
    "tensor": "Tensor",
    "jit.capture": "jit",
    "functions.array.creation": (
        "arange asarray empty empty_like eye full full_like linspace meshgrid ones ones_like tensor zeros "
        "zeros_like"
    ),
    "functions.array.interop": "from_dlpack from_numpy",
    "functions.array.maps": " ".join(_maps.__all__),  # one row of an op each
    "functions.array.elementwise": (
        "allclose array_equal astype bitcast clamp clip copysign hypot isclose lerp logaddexp nan_to_num "
        "nextafter positive pow reciprocal signbit square where"
    ),
    "functions.array.arithmetic": (
        "deg2rad fmax fmin fmod frexp gcd heaviside isneginf isposinf isreal lcm ldexp logaddexp2 rad2deg"
    ),
    "functions.complex.parts": "angle complex conj imag is_complex polar real view_as_complex view_as_real",
    "functions.array.indexing": "nonzero take take_along_axis",
    "functions.array.reshaping": (
        "broadcast_arrays broadcast_shapes broadcast_to expand expand_dims flatten flip matrix_transpose "
        "moveaxis permute_dims reshape squeeze swapaxes transpose unsqueeze"
    ),
    "functions.array.manipulation": (
        "chunk concat diag diagonal hstack one_hot pad repeat repeat_interleave roll split stack tile tril "
        "triu unstack vstack"
    ),
    "functions.array.reductions": (
        "all any argmax argmin count_nonzero logsumexp max mean min norm prod std sum var vector_norm"
    ),
    "functions.array.scans": (
        "cummax cummin cumprod cumsum cumulative_max cumulative_min cumulative_prod cumulative_sum diff "
        "logcumsumexp"
    ),
    "functions.array.sorting": "argsort searchsorted sort topk",
    "functions.array.sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_consecutive unique_counts "
        "unique_inverse unique_values"
    ),
    "functions.array.types": "can_cast finfo iinfo isdtype result_type",
    "functions.array.inspection": "__array_namespace_info__ memory_layout",
    "functions.array.scatters": (
        "index_add index_max index_min index_multiply index_set scatter scatter_add scatter_max scatter_min "
        "scatter_multiply scatter_set"
    ),
    "functions.array.histograms": "bincount histogram histogramdd",
    "functions.array.statistics": (
        "average corrcoef cov median nanpercentile nanquantile percentile ptp quantile"
    ),
    "functions.array.nan_folds": (
        "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum "
        "nanvar"
    ),
    "functions.array.numpy_names": (
        "absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh argpartition around array array_equiv "
        "asanyarray ascontiguousarray bitwise_not cbrt concatenate conjugate copy degrees divmod fabs fix "
        "float_power identity invert iscomplex left_shift lexsort mod modf packbits partition promote_types "
        "radians ravel right_shift rint row_stack true_divide unpackbits"
    ),
    "functions.array.pieces": (
        "append apply_along_axis array_split atleast_1d atleast_2d atleast_3d column_stack delete dsplit "
        "dstack fliplr flipud hsplit insert trim_zeros vsplit"
    ),
    "functions.array.places": (
        "argwhere choose compress copyto diag_indices diagflat extract fill_diagonal flatnonzero indices ix_ "
        "put put_along_axis putmask ravel_multi_index select trace unravel_index"
    ),
    "functions.series": (
        "convolve correlate digitize ediff1d inner interp matvec polyadd "
        "polyder polyint polymul polyval unwrap vdot vecmat"
    ),
    "functions.array.calculus": "cumulative_trapezoid gradient trapezoid",
    "functions.array.patterns": (
        "block_diag geomspace kron logspace rot90 tri tril_indices triu_indices vander"
    ),
    "functions.array.distances": "cdist",
    "functions.array.strided": "as_strided sliding_windows",
    "functions.array.products": "dot einsum linear matmul outer tensordot vecdot",
    "functions.array.pytorch": (
        "addcdiv addcmul addmm addmv amax amin aminmax as_tensor baddbmm bmm broadcast_tensors bucketize "
        "cat clamp_max clamp_min div eq gather ge ger gt index_select is_floating_point is_tensor le lt "
        "masked_fill masked_select mm movedim mul mv narrow ne neg numel std_mean sub swapdims "
        "take_along_dim tensor_split trapz unbind unflatten var_mean"
    ),
    "functions.array.evaluation": "compute_apart eval",
    "functions.pure": "pure",
    "functions.random": "bernoulli rand randint randn",
    "functions.sampling": "manual_seed multinomial rand_like randint_like randn_like randperm",
    "functions.learning.activations": (
        "celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_softmax logsigmoid mish "
        "prelu relu relu6 selu silu softmax softmin softplus softshrink softsign swish tanhshrink threshold"
    ),
    "functions.learning.attention": "scaled_dot_product_attention",
    "functions.learning.normalisation": (
        "batch_norm batch_norm_training group_norm instance_norm layer_norm normalize rms_norm"
    ),
    "functions.learning.losses": (
        "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy huber_loss kl_div l1_loss "
        "mse_loss nll_loss smooth_l1_loss"
    ),
    "functions.learning.images": "interpolate",
    "functions.learning.positions": "apply_rotary rotary_angles rotary_embedding",
    "functions.convolution.convolution": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    ),
    "functions.convolution.pooling": "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d",
    "functions.convolution.adaptive": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d"
    ),
    "functions.convolution.unpooling": "max_unpool1d max_unpool2d max_unpool3d",
    "functions.convolution.windows": "fold unfold",
}

# the same, of modules that are loaded when one of their names is first used
_LATER = {
    "gradients.autograd": (
        "checkpoint custom_gradient enable_grad grad is_grad_enabled no_grad set_grad_enabled value_and_grad"
    ),
    "gradients.hooks": "HookHandle",
    "gradients.requires_grad": "grad_of",
    "jit.inputs": "at_capture fresh is_captured watch",
    "signal.windows": "bartlett blackman hamming hanning kaiser",
    "functions.learning.quantised": "QuantisedTensor from_blocks quantise quantised_linear",
    "linalg.polynomials": "polyfit",
    "linalg.products": "cross",
    "special.elementary": "sinc",
    "custom": "Kernel kernel",
    "batch": "Batch BatchArray",
    "runtime.device": (
        "CpuDevice default_device open_device open_device_async reset_stats set_default_device stats "
        "synchronize"
    ),
    "runtime.webgpu": "Device",
    "runtime.adapters": "devices",
    "runtime.buffers": "Buffer",
    "runtime.context": "Event",
    "tuning": "tune",
    "tools.explanation": "Explanation explain",
    "tools.memory": "MemoryReport memory",
    "tools.traced_graph": "TracedGraph TracedNode graph_of",
    "tools.profiling.profile": "Profile profile",
    "tools.checking.check": "check",
    "tools.checking.verdict": "CheckReport",
    "tools.recording.record": "Recording record",
    "tools.recording.replay": "replay",
    "tools.recording.report": "ReplayReport",
    "web.export": "export",
}

# namespaces and libraries built on webgrad, loaded when they are first used
_LIBRARIES = frozenset(
    {
        "amp",
        "data",
        "diffusion",
        "fft",
        "io",
        "linalg",
        "models",
        "nn",
        "onnx",
        "optim",
        "signal",
        "special",
        "torch",
        "training",
    }
)

_HOMES = {name: home for home, names in (_NAMES | _LATER).items() for name in names.split()}
__all__ = ["__array_api_version__", "__version__", "e", "inf", "nan", "newaxis", "pi", "random"]
__all__ += _HOMES
__all__ += _LIBRARIES
_refuse = _refusing("module 'webgrad'", "wg", __all__)


def _enter_wanted() -> None:
    """Start what WEBGRAD_DEBUG and WEBGRAD_DUMP ask for."""
    settings = _settings()
    if settings.debug or settings.dump:
        from .tools.debug import enter  # here: tools are loaded by those who ask for them

        enter(settings)
    observing.wanted.enter = None


observing.wanted.enter = _enter_wanted
_register_with_einops()


def __getattr__(name: str) -> Any:
    if name in _LIBRARIES:
        return importlib.import_module(f"webgrad.{name}")  # which is an attribute from then on
    if name not in _HOMES:
        _refuse(name)
    value = getattr(importlib.import_module(f"webgrad.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_LIBRARIES})


for _home, _names in _NAMES.items():  # now, since `tensor` and `jit` would be modules otherwise
    _module = importlib.import_module(f"webgrad.{_home}")
    globals().update({name: _spelled(getattr(_module, name)) for name in _names.split()})
