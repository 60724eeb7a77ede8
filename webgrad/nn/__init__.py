"""Neural networks, with PyTorch's names: `webgrad.nn.functional` has the functions that layers are made of.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from . import functional, init
from .attention import MultiheadAttention
from .containers import (
    Flatten,
    Identity,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
    Unflatten,
)
from .linear import Bilinear, Embedding, Linear
from .module import Module
from .parameter import Parameter
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Bilinear",
    "Embedding",
    "Flatten",
    "GRUCell",
    "Identity",
    "LSTMCell",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RNNCell",
    "Sequential",
    "Unflatten",
    "functional",
    "init",
]
