"""Functions of neural networks that torch has at its top too, some with arguments of their own.

In: tensors. Out: tensors.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .binding import bind
from .nn import functional as F

__all__ = ["functions"]

# What is the same in torch.nn.functional
_SAME = """
adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d binary_cross_entropy_with_logits celu celu_
channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
cosine_embedding_loss cosine_similarity ctc_loss group_norm hardshrink hinge_embedding_loss kl_div
margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d max_pool3d pairwise_distance pdist
pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu_ rms_norm rrelu rrelu_ selu selu_ threshold
threshold_ triplet_margin_loss bilinear
"""
ROWS = """
[function in_place]
dropout(input, p, train) = F.dropout(input, p, train)
alpha_dropout(input, p, train) = F.alpha_dropout(input, p, train)
feature_dropout(input, p, train) = F.dropout2d(input, p, train)
feature_alpha_dropout(input, p, train) = F.feature_alpha_dropout(input, p, train)

[function]
batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True) =
    F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps,
    cudnn_enabled=True) = F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats,
    momentum, eps)
layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True) =
    F.layer_norm(input, normalized_shape, weight, bias, eps)
embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False) = F.embedding(indices,
    weight, None if padding_idx == -1 else padding_idx, scale_grad_by_freq=scale_grad_by_freq)
native_dropout(input, p, train) = dropped(input, p, train)
native_dropout_backward(grad_output, mask, scale) = grad_output * mask * scale
"""


def dropped(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """x with elements dropped, and which were kept."""
    if train is False or not p:
        return x.clone(), wg.ones(tuple(x.shape), dtype=wg.bool, device=x.device)
    kept = wg.random.bernoulli(1.0 - p, tuple(x.shape), device=x.device)
    return wg.where(kept, x if p == 1 else x * (1.0 / (1.0 - p)), 0.0), kept


functions = {name: getattr(F, name) for name in _SAME.split()} | bind(ROWS, globals())
