"""torch.nn.functional: convolution, pooling, norms, images, tables, attention.

In: tensors, and torch's arguments. Out: tensors; places of largest elements are torch's integers.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ..binding import bind
from ..reductions import index

__all__ = ["OPTIONS", "functions"]

F = wg.nn.functional

OPTIONS = {
    "$conv": "(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)",
    "$back": "(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1)",
    "$pool": "kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False",
    "$mean": "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True",
    "$fractional": "kernel_size, output_size=None, output_ratio=None, return_indices=False, "
    "_random_samples=None",
    "$given": "kernel_size, stride, padding, dilation, ceil_mode",
}
ROWS = """
[function]
linear(input, weight, bias=None) = wg.linear(*alike("linear", input, weight, bias))
bilinear(input1, input2, weight, bias=None) = F.bilinear(input1, input2, weight, bias).astype(input1.dtype,
    copy=False)
conv1d$conv = F.conv1d(*alike("conv1d", input, weight, bias), stride, padding, dilation, groups)
conv2d$conv = F.conv2d(*alike("conv2d", input, weight, bias), stride, padding, dilation, groups)
conv3d$conv = F.conv3d(*alike("conv3d", input, weight, bias), stride, padding, dilation, groups)
conv_transpose1d$back = F.conv_transpose1d(*alike("conv_transpose1d", input, weight, bias), stride, padding,
    output_padding, groups, dilation)
conv_transpose2d$back = F.conv_transpose2d(*alike("conv_transpose2d", input, weight, bias), stride, padding,
    output_padding, groups, dilation)
conv_transpose3d$back = F.conv_transpose3d(*alike("conv_transpose3d", input, weight, bias), stride, padding,
    output_padding, groups, dilation)
conv_tbc(input, weight, bias, pad=0) = F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1,
    pad).permute(2, 0, 1)
unfold(input, kernel_size, dilation=1, padding=0, stride=1) = F.unfold(input, kernel_size, dilation, padding,
    stride)
fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1) = F.fold(input, output_size,
    kernel_size, dilation, padding, stride)

max_pool1d(input, $pool) = placed(F.max_pool1d(input, $given, return_indices))
max_pool2d(input, $pool) = placed(F.max_pool2d(input, $given, return_indices))
max_pool3d(input, $pool) = placed(F.max_pool3d(input, $given, return_indices))
max_pool1d_with_indices(input, $pool) = placed(F.max_pool1d(input, $given, True))
max_pool2d_with_indices(input, $pool) = placed(F.max_pool2d(input, $given, True))
max_pool3d_with_indices(input, $pool) = placed(F.max_pool3d(input, $given, True))
max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None) = F.max_unpool1d(input,
    indices, kernel_size, stride, padding, output_size)
max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None) = F.max_unpool2d(input,
    indices, kernel_size, stride, padding, output_size)
max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None) = F.max_unpool3d(input,
    indices, kernel_size, stride, padding, output_size)
avg_pool1d(input, $mean) = F.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)
avg_pool2d(input, $mean, divisor_override=None) = F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode,
    count_include_pad, divisor_override)
avg_pool3d(input, $mean, divisor_override=None) = F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode,
    count_include_pad, divisor_override)
lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False) = F.lp_pool1d(input, norm_type,
    kernel_size, stride, ceil_mode)
lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False) = F.lp_pool2d(input, norm_type,
    kernel_size, stride, ceil_mode)
lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False) = F.lp_pool3d(input, norm_type,
    kernel_size, stride, ceil_mode)
fractional_max_pool2d(input, $fractional) = placed(F.fractional_max_pool2d(input, kernel_size, output_size,
    output_ratio, return_indices, _random_samples))
fractional_max_pool3d(input, $fractional) = placed(F.fractional_max_pool3d(input, kernel_size, output_size,
    output_ratio, return_indices, _random_samples))
fractional_max_pool2d_with_indices(input, $fractional) = placed(F.fractional_max_pool2d(input, kernel_size,
    output_size, output_ratio, True, _random_samples))
fractional_max_pool3d_with_indices(input, $fractional) = placed(F.fractional_max_pool3d(input, kernel_size,
    output_size, output_ratio, True, _random_samples))
adaptive_avg_pool1d(input, output_size) = F.adaptive_avg_pool1d(input, output_size)
adaptive_avg_pool2d(input, output_size) = F.adaptive_avg_pool2d(input, output_size)
adaptive_avg_pool3d(input, output_size) = F.adaptive_avg_pool3d(input, output_size)
adaptive_max_pool1d(input, output_size, return_indices=False) = placed(F.adaptive_max_pool1d(input,
    output_size, return_indices))
adaptive_max_pool2d(input, output_size, return_indices=False) = placed(F.adaptive_max_pool2d(input,
    output_size, return_indices))
adaptive_max_pool3d(input, output_size, return_indices=False) = placed(F.adaptive_max_pool3d(input,
    output_size, return_indices))
adaptive_max_pool1d_with_indices(input, output_size, return_indices=False) =
    placed(F.adaptive_max_pool1d(input, output_size, True))
adaptive_max_pool2d_with_indices(input, output_size, return_indices=False) =
    placed(F.adaptive_max_pool2d(input, output_size, True))
adaptive_max_pool3d_with_indices(input, output_size, return_indices=False) =
    placed(F.adaptive_max_pool3d(input, output_size, True))

batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05)
    = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps) if input.ndim >
    1 else input.clone()
instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
    momentum=0.1, eps=1e-05) = F.instance_norm(input, running_mean, running_var, weight, bias,
    use_input_stats, momentum, eps)
layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05) = F.layer_norm(input, normalized_shape,
    weight, bias, eps)
rms_norm(input, normalized_shape, weight=None, eps=None) = F.rms_norm(input, normalized_shape, weight, eps)
group_norm(input, num_groups, weight=None, bias=None, eps=1e-05) = F.group_norm(input, num_groups, weight,
    bias, eps)
local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0) = F.local_response_norm(input, size, alpha,
    beta, k)

pad(input, pad, mode="constant", value=None) = F.pad(input, pad, mode, 0.0 if value is None else value)
pixel_shuffle(input, upscale_factor) = F.pixel_shuffle(input, upscale_factor)
pixel_unshuffle(input, downscale_factor) = F.pixel_unshuffle(input, downscale_factor)
channel_shuffle native_channel_shuffle(input, groups) = F.channel_shuffle(input, groups)
interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,
    recompute_scale_factor=None, antialias=False) = F.interpolate(input, size, scale_factor, mode,
    align_corners, recompute_scale_factor, antialias)
upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None) = F.interpolate(input, size,
    scale_factor, mode, align_corners)
upsample_nearest(input, size=None, scale_factor=None) = F.interpolate(input, size, scale_factor)
upsample_bilinear(input, size=None, scale_factor=None) = F.interpolate(input, size, scale_factor, "bilinear",
    True)
grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None) = F.grid_sample(input,
    grid, mode, padding_mode, bool(align_corners))
affine_grid(theta, size, align_corners=None) = F.affine_grid(theta, tuple(size), bool(align_corners))

embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
    sparse=False) = F.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
    sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None) =
    F.embedding_bag(*in_order(input, weight), offsets, max_norm, norm_type, scale_grad_by_freq, mode,
    per_sample_weights, include_last_offset, padding_idx)
one_hot(input, num_classes=-1) = index(F.one_hot(input, classes(input, num_classes)))
scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
    enable_gqa=False) = F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
    scale, enable_gqa)
multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias,
    bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True,
    key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False,
    q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights=True, is_causal=False) = attended(query, key, value, num_heads, in_proj_weight if
    not use_separate_proj_weight else (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias, bias_k,
    bias_v, add_zero_attn, dropout_p if training else 0.0, out_proj_weight, out_proj_bias, key_padding_mask,
    need_weights, attn_mask, average_attn_weights, is_causal)
"""


def alike(name: str, x: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
    """The operands of a product, which must have one dtype."""
    for what, each in (("weight", weight), ("bias", bias)):
        if each is not None and each.dtype is not x.dtype:
            raise RuntimeError(
                f"{name}: Input type ({x.dtype.name}) and {what} type ({each.dtype.name}) should be the same"
            )
    return x, weight, bias


def placed(found: Any) -> Any:
    """Values; or values and their places, as torch's integers."""
    return (found[0], index(found[1])) if isinstance(found, tuple) else found


def in_order(x: Any, weight: Any) -> tuple[Any, Any]:
    """Integers and a table, which old programs give the other way round."""
    return (weight, x) if x.dtype.kind == "f" else (x, weight)


def classes(x: Any, count: int) -> int:
    """How many classes there are: one more than the largest, where that is not said."""
    if count != -1:
        return count
    if not int(x.size):
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    return int(wg.max(x).item()) + 1


def attended(
    query: Any,
    key: Any,
    value: Any,
    num_heads: int,
    projections: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    *how: Any,
) -> Any:
    """Attention over heads with the parameters that are given; `how` is what its layer's `forward` takes."""
    layer = wg.nn.MultiheadAttention.__new__(wg.nn.MultiheadAttention)
    wg.nn.Module.__init__(layer)
    parts = projections if isinstance(projections, tuple) else (None,) * 3
    columns = int(query.shape[-1])
    layer.__dict__.update(
        embed_dim=columns,
        num_heads=num_heads,
        head_dim=columns // num_heads,
        kdim=key.shape[-1],
        vdim=value.shape[-1],
        dropout=dropout,
        batch_first=False,
        add_zero_attn=add_zero_attn,
        in_proj_weight=None if isinstance(projections, tuple) else projections,
        in_proj_bias=in_proj_bias,
        bias_k=bias_k,
        bias_v=bias_v,
        out_proj=lambda x: wg.linear(x, out_proj_weight, out_proj_bias),
        **dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), parts, strict=True)),
    )
    return layer.forward(query, key, value, *how)


functions = bind(ROWS, globals(), OPTIONS)
