"""Transformer layers, encoders and decoders under PyTorch's names.

In: sequences (positions, batch, columns), with `batch_first` (batch, positions, columns), or one without a
batch. Out: the same shape. Attention goes through the fused kernel; masks hide where they are True, or are
added. Nothing is read back: whether a mask is causal is said by the caller.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import webgrad as wg
from webgrad import Tensor
from webgrad.errors import ArgumentError, ShapeError

from . import functional as F
from . import init
from .attention import MultiheadAttention
from .checks import check_sizes
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalisation import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


def _activation(layer: str, given: Activation) -> Callable[[Tensor], Tensor]:
    if callable(given):
        return given
    if given not in _ACTIVATIONS:
        names = " and ".join(_ACTIVATIONS)
        raise ArgumentError(f"{layer}: activation={given!r} is a function, or one of the names {names}")
    return _ACTIVATIONS[given]


class _Layer(Module):
    """What layers of encoders and decoders share: attention to itself, the feed-forward part, norms."""

    attentions = 1

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"device": device, "dtype": dtype}
        for name in ("self_attn", "multihead_attn")[: self.attentions]:
            made = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **place)
            setattr(self, name, made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        parts = range(1, self.attentions + 2)
        for number in parts:
            setattr(self, f"norm{number}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place))
        for number in parts:
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.norm_first = bool(norm_first)
        self.activation = _activation(type(self).__name__, activation)

    def _around(self, number: int, x: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
        """x + part(x), normalised before or after."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        result: Tensor = x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))
        return result

    def _feed_forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return result

    def _attend_to_self(
        self, mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Callable[[Tensor], Tensor]:
        def attend(x: Tensor) -> Tensor:
            result: Tensor = self.self_attn(
                x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
            )[0]
            return result

        return attend


class TransformerEncoderLayer(_Layer):
    """x = norm1(x + attention(x)), then norm2(x + linear2(activation(linear1(x)))); or norms first.

    >>> layer = wg.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(wg.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The layer's result; masks are those of MultiheadAttention."""
        x = self._around(1, src, self._attend_to_self(src_mask, src_key_padding_mask, is_causal))
        return self._around(2, x, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Attention to itself, to `memory`, and the feed-forward part, each added to x and normalised.

    >>> layer = wg.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(wg.ones((3, 5, 8)), wg.ones((3, 7, 8)), tgt_is_causal=True).shape
    (3, 5, 8)
    """

    attentions = 2

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The layer's result; masks are those of MultiheadAttention."""

        def attend_to_memory(x: Tensor) -> Tensor:
            result: Tensor = self.multihead_attn(
                x,
                memory,
                memory,
                attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask,
                need_weights=False,
                is_causal=memory_is_causal,
            )[0]
            return result

        x = self._around(1, tgt, self._attend_to_self(tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._around(2, x, attend_to_memory)
        return self._around(3, x, self._feed_forward)


def _copies(layer: Module, count: int) -> ModuleList:
    check_sizes(type(layer).__name__, num_layers=count)
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after the other, and a final norm if one is given.

    The copies begin with equal weights, as PyTorch's do.

    >>> layer = wg.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)
    >>> wg.nn.TransformerEncoder(layer, 2, norm=wg.nn.LayerNorm(8))(wg.ones((5, 3, 8))).shape
    (5, 3, 8)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The result of all layers; `is_causal` says that the mask hides what is later, or stands for it."""
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, is_causal=bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """`num_layers` copies of a decoder's layer, one after the other, and a final norm if one is given.

    >>> layer = wg.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
    >>> wg.nn.TransformerDecoder(layer, 2)(wg.ones((5, 3, 8)), wg.ones((7, 3, 8))).shape
    (5, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The result of all layers."""
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
                memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder, and a decoder that attends to what it gives; each ends with a norm.

    >>> model = wg.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
    >>> model(wg.ones((3, 7, 8)), wg.ones((3, 5, 8)), tgt_is_causal=True).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        layer = (
            *(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps),
            *(batch_first, norm_first, bias, device, dtype),
        )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer), num_decoder_layers, norm()
        )
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, bool(batch_first)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """What the decoder makes of `tgt`, given `src`."""
        batch = 0 if self.batch_first else 1
        told = f"Transformer of src {src.shape} and tgt {tgt.shape}"
        if src.ndim != tgt.ndim or (src.ndim == 3 and src.shape[batch] != tgt.shape[batch]):
            raise ShapeError(f"{told}: both have a batch, of equal size (axis {batch}), or none")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(f"{told}: the last axes must have the size d_model={self.d_model}")
        memory = self.encoder(src, src_mask, src_key_padding_mask, is_causal=src_is_causal)
        result: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )
        return result

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask that hides what is later: 0 up to the diagonal, -inf above it.

        >>> wg.nn.Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        places = wg.arange(sz, device=device)
        later = places > places.reshape((sz, 1))
        return wg.where(later, -math.inf, 0.0).astype(wg.float32 if dtype is None else dtype)
