"""torch's signatures of modules whose arguments are others than webgrad's, and what webgrad makes of them.

In: rows such as `MSELoss(size_average=None, …) = …`. Out: `__init__` by the names of classes. A row gives the
options that the module's function is called with (before them, of losses with weights, their tensors); of
`OWN` what webgrad's class is made with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg

from ..binding import read
from ._reduction import reduction_of
from .losses import OPTIONS
from .parameter import Buffer

__all__ = ["INITS"]

Applied, WeightedLoss = (
    wg.nn.ReLU.__base__,
    wg.nn.BCELoss.__base__,
)  # a function's module, and one with weights

APPLIED = """
[function]
CELU(alpha=1.0, inplace=False) = alpha=alpha, inplace=inplace
ELU(alpha=1.0, inplace=False) = alpha=alpha, inplace=inplace
Hardsigmoid Hardswish Mish ReLU ReLU6 SELU SiLU(inplace=False) = inplace=inplace
Hardtanh(min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None) = min_val=min_val if
    min_value is None else min_value, max_val=max_val if max_value is None else max_value, inplace=inplace
LeakyReLU(negative_slope=0.01, inplace=False) = negative_slope=negative_slope, inplace=inplace
RReLU(lower=0.125, upper=1 / 3, inplace=False) = lower=lower, upper=upper, inplace=inplace
Threshold(threshold, value, inplace=False) = threshold=threshold, value=value, inplace=inplace
LogSigmoid Sigmoid Softsign Tanh Tanhshrink(*args, **kwargs) = **kwargs
LogSoftmax Softmax Softmin(dim=None) = dim=dim
AvgPool1d(kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True) =
    kernel_size=kernel_size, stride=kernel_size if stride is None else stride, padding=padding,
    ceil_mode=ceil_mode, count_include_pad=count_include_pad
FractionalMaxPool2d FractionalMaxPool3d(kernel_size, output_size=None, output_ratio=None,
    return_indices=False, _random_samples=None) = kernel_size=kernel_size, output_size=output_size,
    output_ratio=output_ratio, return_indices=return_indices,
    _random_samples=buffer(_random_samples)
Upsample(size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None) =
    size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners,
    recompute_scale_factor=recompute_scale_factor
CTCLoss(blank=0, reduction="mean", zero_infinity=False) = blank=blank, reduction=reduction,
    zero_infinity=zero_infinity
CosineEmbeddingLoss(margin=0.0, $reduced) = margin=margin, $how
HingeEmbeddingLoss(margin=1.0, $reduced) = margin=margin, $how
KLDivLoss($reduced, log_target=False) = $how, log_target=log_target
L1Loss MSELoss MultiLabelMarginLoss SoftMarginLoss($reduced) = $how
MarginRankingLoss(margin=0.0, $reduced) = margin=margin, $how
PoissonNLLLoss(log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction="mean") =
    log_input=log_input, full=full, eps=eps, $how
SmoothL1Loss($reduced, beta=1.0) = $how, beta=beta
TripletMarginLoss(margin=1.0, p=2.0, eps=1e-06, swap=False, $reduced) = margin=margin, p=p, eps=eps,
    swap=swap, $how
"""
WEIGHTED = """
[function]
BCELoss(weight=None, $reduced) = dict(weight=weight), $how
BCEWithLogitsLoss(weight=None, $reduced, pos_weight=None) = dict(weight=weight, pos_weight=pos_weight), $how
CrossEntropyLoss(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
    label_smoothing=0.0) = dict(weight=weight), ignore_index=ignore_index, $how,
    label_smoothing=label_smoothing
NLLLoss(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean") =
    dict(weight=weight), ignore_index=ignore_index, $how
MultiLabelSoftMarginLoss(weight=None, $reduced) = dict(weight=weight), $how
MultiMarginLoss(p=1, margin=1.0, weight=None, $reduced) = dict(weight=weight), p=p, margin=margin, $how
"""
OWN = """
[function]
Embedding(num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0,
    scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, dtype=None) =
    num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, device, dtype
EmbeddingBag(num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
    mode="mean", sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None,
    dtype=None) = num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode,
    include_last_offset, padding_idx, device, dtype
ParameterDict(parameters=None) = parameters
TransformerEncoder(encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True) =
    encoder_layer, num_layers, norm
LinearCrossEntropyLoss(in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None,
    reduction="mean", weight=None, ignore_index=None, label_smoothing=0.0, options=None) = in_features,
    num_classes, out_features=out_features, bias=bias, device=device, dtype=dtype, reduction=reduction,
    weight=weight, ignore_index=ignore_index, label_smoothing=label_smoothing
"""


def buffer(tensor: Any) -> Any:
    """A tensor as a buffer of the module that it is assigned to."""
    return None if tensor is None else Buffer(tensor)


def _inits(table: str, base: Any) -> dict[str, Callable[..., None]]:
    """The `__init__` of every row; `base` is whose is called, the class's own where it is None."""
    made: dict[str, Callable[..., None]] = {}
    for row in read(table, OPTIONS):
        for name in row.names:
            above = getattr(wg.nn, name) if base is None else base
            text = f"def __init__(self, {row.signature}):\n    above.__init__(self, {row.expression})\n"
            scope: dict[str, Any] = {"above": above, "reduction_of": reduction_of, "buffer": buffer}
            exec(compile(text, f"<webgrad.torch.nn {name}>", "exec"), scope)
            made[name] = scope["__init__"]
            made[name].__qualname__ = f"{name}.__init__"
    return made


INITS = {**_inits(APPLIED, Applied), **_inits(WEIGHTED, WeightedLoss), **_inits(OWN, None)}
