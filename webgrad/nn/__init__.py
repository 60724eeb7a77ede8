"""Neural networks, with PyTorch's names: `webgrad.nn.functional` has the functions that layers are made of.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from . import functional, utils
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from .transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

__all__ = ["functional", "utils"]
