"""Layers against torch.nn: the same call makes both, torch's state goes into ours, gradients of all agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.torch.checking import Input, bools, classes, compare_modules, distinct, normal, signs, uniform

Make = Callable[[Any], Any]  # of torch.nn or webgrad.nn a module


@dataclass(frozen=True, slots=True)
class Case:
    """A module, what it is called with, and how, if not plainly."""

    make: Make
    inputs: tuple[Input, ...]
    call: Callable[..., Any] | None = None
    training: bool = True


def case(make: Make, *inputs: Input, call: Callable[..., Any] | None = None, training: bool = True) -> Case:
    """A row of the table."""
    return Case(make, inputs, call, training)


def plain(name: str, *inputs: Input, **options: Any) -> Case:
    """A module of a name and of options that both libraries call the same."""
    return case(lambda nn: getattr(nn, name)(**options), *inputs)


IMAGE = normal(2, 4, 7, 6)
LINE = normal(2, 4, 9)
BLOCK = normal(2, 4, 5, 4, 6)
APART = distinct(2, 4, 7, 6)

LAYERS = {
    "Linear": case(lambda nn: nn.Linear(5, 3), normal(4, 5)),
    "Linear, no bias, three axes": case(lambda nn: nn.Linear(5, 3, bias=False), normal(2, 4, 5)),
    "Linear, one vector": case(lambda nn: nn.Linear(5, 3), normal(5)),
    "Bilinear": case(lambda nn: nn.Bilinear(5, 4, 3), normal(6, 5), normal(6, 4)),
    "Embedding": case(lambda nn: nn.Embedding(10, 3), classes(10, 4, 5)),
    "Embedding, padding": case(lambda nn: nn.Embedding(6, 3, padding_idx=2), classes(6, 4, 5)),
    "Sequential": case(lambda nn: nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2)), normal(4, 5)),
    "Flatten": case(lambda nn: nn.Flatten(), IMAGE),
    "Unflatten": case(lambda nn: nn.Unflatten(1, (2, 2)), LINE),
    "Identity": case(lambda nn: nn.Identity(), LINE),
    "Conv1d": case(lambda nn: nn.Conv1d(4, 6, 3), LINE),
    "Conv1d, stride, dilation": case(lambda nn: nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2), LINE),
    "Conv2d": case(lambda nn: nn.Conv2d(4, 6, 3), IMAGE),
    "Conv2d, padding, stride": case(lambda nn: nn.Conv2d(4, 6, 3, stride=2, padding=1), IMAGE),
    "Conv2d, dilation": case(lambda nn: nn.Conv2d(4, 6, (3, 2), dilation=(2, 1), padding=(2, 0)), IMAGE),
    "Conv2d, groups": case(lambda nn: nn.Conv2d(4, 6, 3, groups=2, padding=1, bias=False), IMAGE),
    "Conv2d, depthwise": case(lambda nn: nn.Conv2d(4, 8, 3, groups=4, padding=1), IMAGE),
    "Conv2d, same": case(lambda nn: nn.Conv2d(4, 5, (3, 2), padding="same"), IMAGE),
    "Conv2d, 1 × 1": case(lambda nn: nn.Conv2d(4, 5, 1), IMAGE),
    "Conv2d, unbatched": case(lambda nn: nn.Conv2d(4, 5, 3), normal(4, 6, 5)),
    "Conv3d": case(lambda nn: nn.Conv3d(4, 3, 2, stride=(1, 2, 1), padding=1), BLOCK),
    "ConvTranspose1d": case(lambda nn: nn.ConvTranspose1d(4, 3, 3, stride=2, padding=1), LINE),
    "ConvTranspose2d": case(lambda nn: nn.ConvTranspose2d(4, 3, 3), IMAGE),
    "ConvTranspose2d, all options": case(
        lambda nn: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, dilation=2),
        IMAGE,
    ),
    "ConvTranspose3d": case(lambda nn: nn.ConvTranspose3d(4, 2, 2, stride=2), BLOCK),
    "Dropout, eval": case(lambda nn: nn.Dropout(0.5), LINE, training=False),
    "Upsample, nearest": case(lambda nn: nn.Upsample(scale_factor=2), IMAGE),
    "Upsample, bilinear": case(lambda nn: nn.Upsample(size=(9, 11), mode="bilinear"), IMAGE),
    "PixelShuffle": case(lambda nn: nn.PixelShuffle(2), IMAGE),
    "PixelUnshuffle": case(lambda nn: nn.PixelUnshuffle(2), normal(2, 3, 6, 4)),
    "ZeroPad2d": case(lambda nn: nn.ZeroPad2d((1, 2, 0, 3)), IMAGE),
    "ConstantPad1d": case(lambda nn: nn.ConstantPad1d((1, 2), 3.5), LINE),
    "ReflectionPad2d": case(lambda nn: nn.ReflectionPad2d(2), IMAGE),
    "ReplicationPad2d": case(lambda nn: nn.ReplicationPad2d((1, 2, 3, 0)), IMAGE),
    "Conv2d, padded by reflection": case(
        lambda nn: nn.Conv2d(4, 5, 3, padding=1, padding_mode="reflect"), IMAGE
    ),
    "Conv1d, padded round": case(lambda nn: nn.Conv1d(4, 5, 3, padding=2, padding_mode="circular"), LINE),
    "ChannelShuffle": case(lambda nn: nn.ChannelShuffle(2), IMAGE),
    "UpsamplingNearest2d": case(lambda nn: nn.UpsamplingNearest2d(scale_factor=2), IMAGE),
    "UpsamplingBilinear2d": case(lambda nn: nn.UpsamplingBilinear2d(size=(5, 9)), IMAGE),
    "Upsample, trilinear": case(lambda nn: nn.Upsample(scale_factor=2, mode="trilinear"), BLOCK),
    "ZeroPad1d": case(lambda nn: nn.ZeroPad1d(2), LINE),
    "ZeroPad3d": case(lambda nn: nn.ZeroPad3d((1, 0, 2, 1, 0, 3)), BLOCK),
    "ConstantPad2d": case(lambda nn: nn.ConstantPad2d((1, -1, 2, 0), 1.5), IMAGE),
    "ConstantPad3d": case(lambda nn: nn.ConstantPad3d(1, -2.0), BLOCK),
    "CircularPad1d": case(lambda nn: nn.CircularPad1d((2, 3)), LINE),
    "CircularPad2d": case(lambda nn: nn.CircularPad2d(2), IMAGE),
    "ReflectionPad1d": case(lambda nn: nn.ReflectionPad1d((3, 1)), LINE),
    "ReflectionPad3d": case(lambda nn: nn.ReflectionPad3d(2), BLOCK),
    "ReplicationPad1d": case(lambda nn: nn.ReplicationPad1d((3, 1)), LINE),
    "ReplicationPad3d": case(lambda nn: nn.ReplicationPad3d(1), BLOCK),
    "CosineSimilarity": case(lambda nn: nn.CosineSimilarity(), normal(4, 6), normal(4, 6)),
    "PairwiseDistance": case(lambda nn: nn.PairwiseDistance(), normal(4, 6), normal(4, 6)),
}

NORMS = {
    "BatchNorm1d": case(lambda nn: nn.BatchNorm1d(4), LINE),
    "BatchNorm1d, two axes": case(lambda nn: nn.BatchNorm1d(4), normal(6, 4)),
    "BatchNorm2d": case(lambda nn: nn.BatchNorm2d(4), IMAGE),
    "BatchNorm2d, eval": case(lambda nn: nn.BatchNorm2d(4), IMAGE, training=False),
    "BatchNorm2d, plain": case(lambda nn: nn.BatchNorm2d(4, affine=False, momentum=None), IMAGE),
    "BatchNorm2d, no statistics": case(lambda nn: nn.BatchNorm2d(4, track_running_stats=False), IMAGE),
    "BatchNorm3d": case(lambda nn: nn.BatchNorm3d(4, eps=1e-3, momentum=0.3), BLOCK),
    "LayerNorm": case(lambda nn: nn.LayerNorm(6), IMAGE),
    "LayerNorm, two axes": case(lambda nn: nn.LayerNorm((7, 6), eps=1e-3), IMAGE),
    "LayerNorm, plain": case(lambda nn: nn.LayerNorm(6, elementwise_affine=False), IMAGE),
    "LayerNorm, no bias": case(lambda nn: nn.LayerNorm(6, bias=False), IMAGE),
    "RMSNorm": case(lambda nn: nn.RMSNorm(6), IMAGE),
    "GroupNorm": case(lambda nn: nn.GroupNorm(2, 4), IMAGE),
    "GroupNorm, one group": case(lambda nn: nn.GroupNorm(1, 4, affine=False), LINE),
    "InstanceNorm1d": case(lambda nn: nn.InstanceNorm1d(4), LINE),
    "InstanceNorm2d": case(lambda nn: nn.InstanceNorm2d(4, affine=True), IMAGE),
    "InstanceNorm3d": case(lambda nn: nn.InstanceNorm3d(4), BLOCK),
    "LocalResponseNorm": case(lambda nn: nn.LocalResponseNorm(3, alpha=0.5), IMAGE),
}


def unpooling(nn: Any, axes: int) -> Any:
    """A pooling and its way back."""
    return nn.ModuleList(
        [getattr(nn, f"MaxPool{axes}d")(2, return_indices=True), getattr(nn, f"MaxUnpool{axes}d")(2)]
    )


def unpooled(both: Any, x: Any) -> Any:
    pool, back = both
    return back(*pool(x))


POOLS = {
    "MaxPool1d": case(lambda nn: nn.MaxPool1d(3, stride=2, padding=1), distinct(2, 4, 9)),
    "MaxPool2d": case(lambda nn: nn.MaxPool2d(2), APART),
    "MaxPool2d, padding": case(lambda nn: nn.MaxPool2d(3, stride=2, padding=1), APART),
    "MaxPool2d, dilation": case(lambda nn: nn.MaxPool2d((2, 3), stride=1, dilation=2), APART),
    "MaxPool2d, ceil": case(lambda nn: nn.MaxPool2d(2, ceil_mode=True), APART),
    "MaxPool3d": case(lambda nn: nn.MaxPool3d(2), distinct(2, 2, 4, 4, 5)),
    "AvgPool1d": case(lambda nn: nn.AvgPool1d(3, stride=2, padding=1), LINE),
    "AvgPool2d": case(lambda nn: nn.AvgPool2d(2), IMAGE),
    "AvgPool2d, padding not counted": case(
        lambda nn: nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), IMAGE
    ),
    "AvgPool3d": case(lambda nn: nn.AvgPool3d(2, stride=1), BLOCK),
    "AdaptiveAvgPool1d": case(lambda nn: nn.AdaptiveAvgPool1d(4), LINE),
    "AdaptiveAvgPool2d": case(lambda nn: nn.AdaptiveAvgPool2d((3, 4)), IMAGE),
    "AdaptiveAvgPool2d, to one": case(lambda nn: nn.AdaptiveAvgPool2d(1), IMAGE),
    "AdaptiveAvgPool3d": case(lambda nn: nn.AdaptiveAvgPool3d(2), BLOCK),
    "AdaptiveMaxPool1d": case(lambda nn: nn.AdaptiveMaxPool1d(4), distinct(2, 4, 9)),
    "AdaptiveMaxPool3d": case(lambda nn: nn.AdaptiveMaxPool3d(2), distinct(2, 2, 4, 5, 3)),
    "MaxUnpool1d": case(lambda nn: unpooling(nn, 1), distinct(2, 4, 8), call=unpooled),
    "MaxUnpool2d": case(lambda nn: unpooling(nn, 2), distinct(2, 4, 6, 8), call=unpooled),
    "MaxUnpool3d": case(lambda nn: unpooling(nn, 3), distinct(2, 2, 4, 4, 6), call=unpooled),
    "AdaptiveMaxPool2d": case(lambda nn: nn.AdaptiveMaxPool2d((3, 4)), APART),
}

# Names of modules without arguments that matter, each over numbers from -4 to 4 that avoid its corners
PLAIN = [
    "ReLU",
    "ReLU6",
    "LeakyReLU",
    "PReLU",
    "ELU",
    "SELU",
    "CELU",
    "GELU",
    "SiLU",
    "Mish",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Softsign",
    "Hardtanh",
    "Hardsigmoid",
    "Hardswish",
    "LogSigmoid",
    "Tanhshrink",
    "Softshrink",
    "Hardshrink",
]
ACTIVATIONS = {name: plain(name, distinct(9, 9)) for name in PLAIN}
ACTIVATIONS |= {
    "Softmax": case(lambda nn: nn.Softmax(1), LINE),
    "LogSoftmax": case(lambda nn: nn.LogSoftmax(1), LINE),
    "Softmin": case(lambda nn: nn.Softmin(-1), LINE),
    "GLU": case(lambda nn: nn.GLU(1), LINE),
    "GELU, tanh": case(lambda nn: nn.GELU(approximate="tanh"), distinct(9, 9)),
    "Threshold": case(lambda nn: nn.Threshold(0.5, 2.0), distinct(9, 9)),
    "PReLU, channels": case(lambda nn: nn.PReLU(4), LINE),
    "LeakyReLU, slope": case(lambda nn: nn.LeakyReLU(0.3), distinct(9, 9)),
    "ELU, alpha": case(lambda nn: nn.ELU(0.7), distinct(9, 9)),
    "Softplus, beta": case(lambda nn: nn.Softplus(2.0, 5.0), distinct(9, 9)),
    "Hardtanh, range": case(lambda nn: nn.Hardtanh(-0.5, 2.0), distinct(9, 9)),
}

SEQUENCE = normal(5, 3, 4)
RECURRENT = {
    "RNN": case(lambda nn: nn.RNN(4, 6), SEQUENCE),
    "RNN, relu, two layers": case(lambda nn: nn.RNN(4, 6, 2, nonlinearity="relu"), SEQUENCE),
    "RNN, state": case(lambda nn: nn.RNN(4, 6, bidirectional=True), SEQUENCE, normal(2, 3, 6)),
    "LSTM": case(lambda nn: nn.LSTM(4, 6), SEQUENCE),
    "LSTM, two layers, both ways": case(
        lambda nn: nn.LSTM(4, 6, num_layers=2, bidirectional=True, batch_first=True), SEQUENCE
    ),
    "LSTM, projection": case(lambda nn: nn.LSTM(4, 6, 2, proj_size=3, bidirectional=True), SEQUENCE),
    "LSTM, no bias": case(lambda nn: nn.LSTM(4, 6, bias=False), SEQUENCE),
    "LSTM, one sequence": case(lambda nn: nn.LSTM(4, 6), normal(5, 4)),
    "LSTM, state": case(
        lambda nn: nn.LSTM(4, 6),
        SEQUENCE,
        normal(1, 3, 6),
        normal(1, 3, 6),
        call=lambda module, x, h, c: module(x, (h, c)),
    ),
    "LSTM, dropout, eval": case(lambda nn: nn.LSTM(4, 6, 2, dropout=0.5), SEQUENCE, training=False),
    "GRU": case(lambda nn: nn.GRU(4, 6), SEQUENCE),
    "GRU, two layers, both ways": case(lambda nn: nn.GRU(4, 6, 2, bidirectional=True), SEQUENCE),
    "GRU, state": case(lambda nn: nn.GRU(4, 6, batch_first=True), SEQUENCE, normal(1, 5, 6)),
    "RNNCell": case(lambda nn: nn.RNNCell(4, 6), normal(3, 4), normal(3, 6)),
    "RNNCell, relu": case(lambda nn: nn.RNNCell(4, 6, nonlinearity="relu"), normal(3, 4)),
    "LSTMCell": case(
        lambda nn: nn.LSTMCell(4, 6),
        normal(3, 4),
        normal(3, 6),
        normal(3, 6),
        call=lambda module, x, h, c: module(x, (h, c)),
    ),
    "LSTMCell, one": case(lambda nn: nn.LSTMCell(4, 6, bias=False), normal(4)),
    "GRUCell": case(lambda nn: nn.GRUCell(4, 6), normal(3, 4), normal(3, 6)),
}

QUERY, KEY = normal(5, 3, 8), normal(7, 3, 8)


def to_itself(module: Any, x: Any, **options: Any) -> Any:
    return module(x, x, x, **options)


ATTENTION = {
    "MultiheadAttention": case(lambda nn: nn.MultiheadAttention(8, 2), QUERY, call=to_itself),
    "MultiheadAttention, no weights": case(
        lambda nn: nn.MultiheadAttention(8, 2, batch_first=True),
        QUERY,
        call=lambda module, x: to_itself(module, x, need_weights=False),
    ),
    "MultiheadAttention, keys apart": case(lambda nn: nn.MultiheadAttention(8, 2), QUERY, KEY, KEY),
    "MultiheadAttention, memory": case(
        lambda nn: nn.MultiheadAttention(8, 4, bias=False),
        QUERY,
        KEY,
        call=lambda module, x, memory: module(x, memory, memory, need_weights=False),
    ),
    "MultiheadAttention, kdim and vdim": case(
        lambda nn: nn.MultiheadAttention(8, 2, kdim=5, vdim=6), QUERY, normal(7, 3, 5), normal(7, 3, 6)
    ),
    "MultiheadAttention, learnt key": case(
        lambda nn: nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True), QUERY, KEY, KEY
    ),
    "MultiheadAttention, masks": case(
        lambda nn: nn.MultiheadAttention(8, 2),
        QUERY,
        KEY,
        bools(3, 7),
        bools(5, 7),
        call=lambda module, x, memory, padding, mask: module(
            x, memory, memory, key_padding_mask=padding, attn_mask=mask, average_attn_weights=False
        ),
    ),
    "MultiheadAttention, masks, no weights": case(
        lambda nn: nn.MultiheadAttention(8, 2),
        QUERY,
        KEY,
        bools(6, 5, 7),
        call=lambda module, x, memory, mask: module(x, memory, memory, attn_mask=mask, need_weights=False),
    ),
    "MultiheadAttention, added mask, no batch": case(
        lambda nn: nn.MultiheadAttention(8, 2),
        normal(5, 8),
        normal(5, 5, fixed=True),
        call=lambda module, x, mask: module(x, x, x, attn_mask=mask),
    ),
    "TransformerEncoderLayer": case(lambda nn: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), QUERY),
    "TransformerEncoderLayer, norm first": case(
        lambda nn: nn.TransformerEncoderLayer(
            8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        ),
        QUERY,
    ),
    "TransformerEncoderLayer, eval": case(
        lambda nn: nn.TransformerEncoderLayer(8, 2, 16, bias=False), QUERY, training=False
    ),
    "TransformerEncoderLayer, masks": case(
        lambda nn: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0),
        QUERY,
        bools(5, 5),
        bools(3, 5),
    ),
    "TransformerDecoderLayer": case(lambda nn: nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0), QUERY, KEY),
    "TransformerDecoderLayer, norm first, masks": case(
        lambda nn: nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, norm_first=True),
        QUERY,
        KEY,
        bools(5, 5),
        bools(5, 7),
    ),
    "TransformerEncoder": case(
        lambda nn: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2, norm=nn.LayerNorm(8)
        ),
        QUERY,
    ),
    "TransformerDecoder": case(
        lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0), 2), QUERY, KEY
    ),
    "Transformer": case(
        lambda nn: nn.Transformer(8, 2, 1, 2, 16, dropout=0.0),
        KEY,
        QUERY,
        call=lambda module, source, target: module(source, target),
    ),
    "Transformer, causal": case(
        lambda nn: nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True),
        normal(3, 7, 8),
        normal(3, 5, 8),
        call=lambda module, source, target: module(
            source, target, tgt_mask=module.generate_square_subsequent_mask(5), tgt_is_causal=True
        ),
    ),
}

SCORES, LABELS = normal(6, 5), classes(5, 6)
PAIRS = (normal(6, 5), normal(6, 5, fixed=True))
DRAWN = (normal(6, 5), normal(6, 5))
CHANCES = (uniform(0.05, 0.95, 6, 5), uniform(0.0, 1.0, 6, 5, fixed=True))


LOSSES = {
    **{
        f"{name}, {reduction}": plain(name, *PAIRS, reduction=reduction)
        for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")
        for reduction in ("mean", "sum", "none")
    },
    "SmoothL1Loss, beta": case(lambda nn: nn.SmoothL1Loss(beta=0.3), *PAIRS),
    "HuberLoss, delta": case(lambda nn: nn.HuberLoss(delta=0.3), *PAIRS),
    **{
        f"CrossEntropyLoss, {reduction}": plain("CrossEntropyLoss", SCORES, LABELS, reduction=reduction)
        for reduction in ("mean", "sum", "none")
    },
    "CrossEntropyLoss, smoothing": case(lambda nn: nn.CrossEntropyLoss(label_smoothing=0.2), SCORES, LABELS),
    "CrossEntropyLoss, ignored": case(lambda nn: nn.CrossEntropyLoss(ignore_index=1), SCORES, LABELS),
    "CrossEntropyLoss, images": case(
        lambda nn: nn.CrossEntropyLoss(), normal(2, 5, 3, 4), classes(5, 2, 3, 4)
    ),
    "CrossEntropyLoss, chances": case(
        lambda nn: nn.CrossEntropyLoss(), SCORES, uniform(0, 1, 6, 5, fixed=True)
    ),
    "NLLLoss": case(lambda nn: nn.NLLLoss(), SCORES, LABELS),
    "NLLLoss, ignored, sum": case(lambda nn: nn.NLLLoss(ignore_index=2, reduction="sum"), SCORES, LABELS),
    "BCELoss": case(lambda nn: nn.BCELoss(), *CHANCES),
    "BCELoss, sum": case(lambda nn: nn.BCELoss(reduction="sum"), *CHANCES),
    "BCEWithLogitsLoss": case(lambda nn: nn.BCEWithLogitsLoss(), SCORES, CHANCES[1]),
    "BCEWithLogitsLoss, none": case(lambda nn: nn.BCEWithLogitsLoss(reduction="none"), SCORES, CHANCES[1]),
    "KLDivLoss": case(lambda nn: nn.KLDivLoss(reduction="batchmean"), SCORES, CHANCES[1]),
    "KLDivLoss, logs": case(lambda nn: nn.KLDivLoss(reduction="sum", log_target=True), *PAIRS),
    "PoissonNLLLoss": case(lambda nn: nn.PoissonNLLLoss(), SCORES, uniform(0.1, 3.0, 6, 5, fixed=True)),
    "PoissonNLLLoss, full": case(
        lambda nn: nn.PoissonNLLLoss(full=True), SCORES, uniform(0.1, 3.0, 6, 5, fixed=True)
    ),
    "GaussianNLLLoss": case(
        lambda nn: nn.GaussianNLLLoss(), SCORES, normal(6, 5, fixed=True), uniform(0.2, 2.0, 6, 5)
    ),
    "CosineEmbeddingLoss": case(lambda nn: nn.CosineEmbeddingLoss(margin=0.1), *DRAWN, signs(6)),
    "HingeEmbeddingLoss": case(lambda nn: nn.HingeEmbeddingLoss(), SCORES, signs(6, 5)),
    "MarginRankingLoss": case(lambda nn: nn.MarginRankingLoss(0.2), normal(6), normal(6), signs(6)),
    "TripletMarginWithDistanceLoss": case(
        lambda nn: nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(), margin=0.7),
        *DRAWN,
        normal(6, 5),
    ),
    "TripletMarginLoss": case(lambda nn: nn.TripletMarginLoss(), normal(6, 5), normal(6, 5), normal(6, 5)),
    "TripletMarginLoss, swap": case(
        lambda nn: nn.TripletMarginLoss(margin=2.0, swap=True), normal(6, 5), normal(6, 5), normal(6, 5)
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch says what it does not optimise
TABLE = LAYERS | NORMS | POOLS | ACTIVATIONS | RECURRENT | ATTENTION | LOSSES


@pytest.mark.parametrize("name", TABLE)
def test_it_is_torchs(name: str) -> None:
    chosen = TABLE[name]
    compare_modules(name, chosen.make, chosen.inputs, chosen.call, chosen.training)


def test_the_table_is_long_enough() -> None:
    assert len({name.split(",")[0] for name in TABLE}) >= 110
