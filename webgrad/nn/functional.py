"""The functions of neural networks under the names of `torch.nn.functional`.

Most are webgrad's own, the others those of this folder. They take PyTorch's arguments in its order; axes are
called `axis` or `dim`, and the first argument is no `input`. A function that is added to webgrad is
added here by its name, unless its arguments mean something else, as those of `webgrad.pad` do.
`functional.pyi`, which `python -m scripts.stubs` writes, tells type checkers and editors of them.

>>> import webgrad.nn.functional as F
>>> F.relu(wg.asarray([-1.0, 2.0])).tolist()
[0.0, 2.0]
"""

from __future__ import annotations

import webgrad as wg
from webgrad.functions.spellings import all_spelled
from webgrad.porting import refusing

from . import chance, ctc, distances, dropout_functions, margins, pooling_functions, sampling, spatial, tables

# webgrad's own
_NAMES = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d batch_norm binary_cross_entropy
binary_cross_entropy_with_logits celu conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
cross_entropy elu fold gelu glu group_norm hardshrink hardsigmoid hardswish hardtanh huber_loss instance_norm
interpolate kl_div l1_loss layer_norm leaky_relu linear log_softmax logsigmoid max_pool1d max_pool2d
max_pool3d max_unpool1d max_unpool2d max_unpool3d mish mse_loss nll_loss normalize one_hot prelu relu relu6
rms_norm scaled_dot_product_attention selu sigmoid silu smooth_l1_loss softmax softmin softplus softshrink
softsign tanh tanhshrink threshold unfold
"""
_OTHERS = (
    chance, ctc, distances, dropout_functions, margins, pooling_functions, sampling, spatial, tables,
)  # fmt: skip

globals().update({name: getattr(wg, name) for name in _NAMES.split()})
for _module in _OTHERS:
    globals().update({name: getattr(_module, name) for name in _module.__all__})
__all__ = sorted([*_NAMES.split(), *(name for each in _OTHERS for name in each.__all__)])
globals().update(all_spelled(__all__, globals()))
__getattr__ = refusing("webgrad.nn.functional", "nn.functional", __all__)
