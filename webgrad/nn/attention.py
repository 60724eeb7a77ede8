"""MultiheadAttention: attention over several heads, with its projections, as PyTorch has it.

In: query (queries, batch, columns), key and value (keys, batch, columns); with `batch_first` the batch comes
first; without a batch two axes. Out: the result, as the query lies, and the weights if they are asked for.
Masks say what is hidden: True, or a number that is added. Without weights it is one fused kernel.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg
from webgrad import Tensor
from webgrad.errors import ArgumentError, DTypeError, ShapeError

from . import functional as F
from . import init
from .checks import check_floats, check_sizes
from .dropout_functions import check_probability
from .linear import Linear
from .module import Module
from .parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """softmax(q kᵀ / sqrt(columns of a head)) v for each head, of projected inputs, projected back.

    Attention is over `embed_dim` columns cut into `num_heads`; `kdim` and `vdim` are those of keys and values
    where they have others. `add_bias_kv` adds a learnt key and value to all, `add_zero_attn` one of zeros.

    >>> attention = wg.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = wg.ones((3, 5, 8))
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    >>> attention(x, x, x, need_weights=False, is_causal=True)[1] is None
    True
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_sizes("MultiheadAttention", embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            raise ArgumentError(
                f"MultiheadAttention: embed_dim={embed_dim} must be a multiple of num_heads={num_heads}"
            )
        check_probability("MultiheadAttention", dropout)
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = float(dropout), bool(batch_first), add_zero_attn

        def empty(*shape: int) -> Parameter:
            return Parameter(wg.zeros(shape, dtype=dtype, device=device))

        together = self.kdim == self.vdim == embed_dim
        self.register_parameter("in_proj_weight", empty(3 * embed_dim, embed_dim) if together else None)
        for name, columns in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(f"{name}_proj_weight", None if together else empty(embed_dim, columns))
        self.register_parameter("in_proj_bias", empty(3 * embed_dim) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, empty(1, 1, embed_dim) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = getattr(self, name)
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The result, and the weights (batch, queries, keys) or None.

        `key_padding_mask` (batch, keys) and `attn_mask` (queries, keys) or (batch × heads, queries, keys)
        hide where they are True, or are added. With `is_causal` query i sees keys up to i; a mask that is
        given beside it says the same, and is not read. Without `average_attn_weights` the weights of every
        head are given: (batch, heads, queries, keys). A query that sees no key gives 0.
        """
        self._check(query, key, value)
        batched = query.ndim == 3
        q, k, v = self._projected(query, key, value)
        mask = self._mask(attn_mask, key_padding_mask, q, k, is_causal)
        k, v, mask, causal = self._extended(k, v, mask, is_causal, q)
        dropping = self.dropout > 0 and self.training
        weights: Tensor | None = None
        if need_weights or dropping:
            weights = self._weights(q, k, mask, causal)
            if dropping:
                weights = F.dropout(weights, self.dropout, training=True)
            mixed = weights @ v
        else:
            mixed = wg.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        output = self.out_proj(self._merged(mixed, batched))
        if weights is None or not need_weights:
            return output, None
        shown = wg.mean(weights, axis=1) if average_attn_weights else weights
        return output, shown if batched else shown[0]

    # Projections

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values as (batch, heads, positions, columns); equal inputs in one product."""
        wide, bias = self.embed_dim, self.in_proj_bias
        if self.in_proj_weight is None:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            biases = (None,) * 3 if bias is None else wg.split(bias, 3)
            parts = [
                wg.linear(each, weight, part)
                for each, weight, part in zip((query, key, value), weights, biases, strict=True)
            ]
        else:
            runs = [[query]]  # neighbours that are one tensor share a product
            for each in (key, value):
                if each is runs[-1][0]:
                    runs[-1].append(each)
                else:
                    runs.append([each])
            parts, at = [], 0
            for run in runs:
                rows = slice(at * wide, (at + len(run)) * wide)
                whole = len(run) == 3
                product = wg.linear(
                    run[0],
                    self.in_proj_weight if whole else self.in_proj_weight[rows],
                    bias if whole or bias is None else bias[rows],
                )
                parts += wg.split(product, len(run), axis=-1)
                at += len(run)
        if self.bias_k is not None:
            parts[1:] = [self._added(parts[1], self.bias_k), self._added(parts[2], self.bias_v)]
        q, k, v = (self._by_heads(each) for each in parts)
        return q, k, v

    def _added(self, x: Tensor, row: Tensor) -> Tensor:
        """The learnt key or value after the others."""
        if x.ndim == 2:
            return wg.concat([x, row[0]])
        axis = 1 if self.batch_first else 0
        shape = list(x.shape)
        shape[axis] = 1
        return wg.concat([x, wg.broadcast_to(row, tuple(shape))], axis=axis)

    def _by_heads(self, x: Tensor) -> Tensor:
        x = x.reshape((*x.shape[:-1], self.num_heads, self.head_dim))
        if x.ndim == 3:
            return x.permute(1, 0, 2).reshape((1, self.num_heads, -1, self.head_dim))
        return x.permute(0, 2, 1, 3) if self.batch_first else x.permute(1, 2, 0, 3)

    def _merged(self, x: Tensor, batched: bool) -> Tensor:
        x = x.permute(0, 2, 1, 3) if self.batch_first or not batched else x.permute(2, 0, 1, 3)
        x = x.reshape((*x.shape[:2], self.embed_dim))
        return x if batched else x[0]

    # Masks

    def _mask(
        self, given: Tensor | None, padding: Tensor | None, q: Tensor, k: Tensor, is_causal: bool
    ) -> Tensor | None:
        """What is added to the scores, broadcasting to (batch, heads, queries, keys); None for nothing."""
        batch, heads, queries, _ = q.shape
        keys = k.shape[2] - (self.bias_k is not None)
        mask: Tensor | None = None
        if given is not None and not is_causal:
            if given.shape == (batch * heads, queries, keys):
                mask = _numbers("attn_mask", given, q).reshape((batch, heads, queries, keys))
            elif given.shape == (queries, keys):
                mask = _numbers("attn_mask", given, q)
            else:
                raise ShapeError(
                    f"MultiheadAttention: attn_mask {given.shape} must be (queries, keys), here "
                    f"{(queries, keys)}, or (batch × heads, queries, keys), here "
                    f"{(batch * heads, queries, keys)}"
                )
        if padding is None:
            return mask
        if padding.shape not in ((batch, keys), (keys,) if batch == 1 else (batch, keys)):
            raise ShapeError(
                f"MultiheadAttention: key_padding_mask {padding.shape} must be (batch, keys), here "
                f"{(batch, keys)}"
            )
        hidden = _numbers("key_padding_mask", padding, q).reshape((batch, 1, 1, keys))
        return hidden if mask is None else mask + hidden

    def _extended(
        self, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, q: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None, bool]:
        """Keys, values and mask with the added ones, which every query sees, whether it is causal still."""
        more = (self.bias_k is not None) + bool(self.add_zero_attn)
        if not more:
            return k, v, mask, is_causal
        if self.add_zero_attn:
            zeros = wg.zeros((*k.shape[:2], 1, self.head_dim), k.dtype, device=k.device)
            k, v = wg.concat([k, zeros], axis=2), wg.concat([v, zeros], axis=2)
        if is_causal:
            later = _later(q.shape[2], k.shape[2] - more, q)
            mask = later if mask is None else mask + later
        if mask is not None:
            mask = wg.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, more)])
        return k, v, mask, False

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
        scores = q @ k.mT * (1 / math.sqrt(self.head_dim))
        if is_causal:
            later = _later(q.shape[2], k.shape[2], q)
            mask = later if mask is None else mask + later
        if mask is None:
            return wg.softmax(scores, axis=-1)
        scores = scores + mask
        seen = wg.max(scores, axis=-1, keepdims=True).detach() > -math.inf  # anything; else NaN would spread
        return wg.where(seen, wg.softmax(wg.where(seen, scores, 0.0), axis=-1), 0.0)

    # Checks

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        for each in (query, key, value):
            check_floats(self, each)
        told = f"MultiheadAttention of query {query.shape}, key {key.shape} and value {value.shape}"
        order = "batch, positions, columns" if self.batch_first else "positions, batch, columns"
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise ShapeError(f"{told}: all have the axes ({order}), or (positions, columns)")
        wanted = (self.embed_dim, self.kdim, self.vdim)
        if (query.shape[-1], key.shape[-1], value.shape[-1]) != wanted:
            raise ShapeError(
                f"{told}: the last axes must have the sizes embed_dim, kdim and vdim, here {wanted}"
            )
        if key.shape[:-1] != value.shape[:-1]:
            raise ShapeError(f"{told}: key and value must have as many positions; the axes are ({order})")
        batch = 0 if self.batch_first else 1
        if query.ndim == 3 and query.shape[batch] != key.shape[batch]:
            raise ShapeError(f"{told}: query and key must have equally large batches; the axes are ({order})")

    def extra_repr(self) -> str:
        """The sizes."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"


def _numbers(name: str, mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers to add."""
    if mask.dtype.kind == "b":
        return wg.where(mask, -math.inf, 0.0).astype(like.dtype)
    if mask.dtype.kind != "f":
        raise DTypeError(
            f"MultiheadAttention: {name} is of bools (True hides a key) or of floats (added to the scores), "
            f"not of {mask.dtype.name}: convert with mask.astype(webgrad.bool)"
        )
    return mask.astype(like.dtype)


def _later(queries: int, keys: int, like: Tensor) -> Tensor:
    """-inf for keys behind the query's own place."""
    places = wg.arange(queries, device=like.device).reshape((queries, 1))
    return _numbers("attn_mask", wg.arange(keys, device=like.device) > places, like)
