"""torch.nn.modules: the same classes by the files in which torch keeps them, and the bases that they share.

In: the classes of `torch.nn`. Out: modules of these names, such as `torch.nn.modules.conv`, whose names are
the classes themselves.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import webgrad as _wg

from ... import nn as _nn
from ..module import Module
from . import loss, utils

__all__ = ["Module", "loss", "utils"]

# The file, and its classes; a private base is behind the class whose base it is
_FILES = """
activation   CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish
             MultiheadAttention PReLU RReLU ReLU ReLU6 SELU Sigmoid SiLU Softmax Softmax2d Softmin Softplus
             Softshrink Softsign Tanh Tanhshrink Threshold
adaptive     AdaptiveLogSoftmaxWithLoss
batchnorm    BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm
             _BatchNorm=BatchNorm1d _NormBase=BatchNorm1d+1
channelshuffle  ChannelShuffle
container    ModuleDict ModuleList ParameterDict ParameterList Sequential
conv         Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d
             LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d
             _ConvNd=Conv1d+1 _ConvTransposeNd=ConvTranspose1d
distance     CosineSimilarity PairwiseDistance
dropout      AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout _DropoutNd=Dropout
flatten      Flatten Unflatten
fold         Fold Unfold
instancenorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d
             LazyInstanceNorm3d _InstanceNorm=InstanceNorm1d
linear       Bilinear Identity LazyLinear Linear
normalization  GroupNorm LayerNorm LocalResponseNorm RMSNorm
padding      CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d
             ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
             ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d
pixelshuffle PixelShuffle PixelUnshuffle
pooling      AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
             AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d
             LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d
rnn          GRU GRUCell LSTM LSTMCell RNN RNNCell RNNBase=LSTM RNNCellBase=LSTMCell
sparse       Embedding EmbeddingBag
transformer  Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
upsampling   Upsample UpsamplingBilinear2d UpsamplingNearest2d
lazy         LazyModuleMixin
module       Module register_module_forward_hook register_module_forward_pre_hook
             register_module_full_backward_hook
"""


def _class(spec: str) -> tuple[str, Any]:
    """A name and what it stands for: `Conv1d`, `_BatchNorm=BatchNorm1d` (its base), `_ConvNd=Conv1d+1`."""
    name, _, of = spec.partition("=")
    of, _, further = of.partition("+")
    found = getattr(_nn, of or name, None) or getattr(_wg.nn, name, None)
    for _ in range(1 + int(further or 0) if of else 0):
        found = None if found is None else found.__bases__[0]
    return name, found


def _file(name: str, specs: list[str]) -> ModuleType:
    full = f"{__name__}.{name}"
    module = ModuleType(full, f"torch.nn.modules.{name}.")
    classes = {key: each for key, each in map(_class, specs) if each is not None}
    module.__dict__.update(classes, __all__=list(classes))
    sys.modules[full] = module
    return module


for _line in _FILES.replace("\n ", "").split("\n"):
    if _line:
        _name, *_specs = _line.split()
        globals()[_name] = _file(_name, _specs)
        globals().update({each: thing for each, thing in vars(globals()[_name]).items() if each[0] != "_"})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
