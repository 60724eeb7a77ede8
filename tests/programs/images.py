"""Programs about images: nets for CIFAR, vision transformers, U-Nets, and others.

In: the programs' own classes. Out: rows of the table of programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.programs.program import Model, Program, classifier, floats, integers, loaded, trained

__all__ = ["programs"]

CIFAR = "kuangliu/pytorch-cifar"
# file of models/, what makes the model
CIFAR_NETS: dict[str, Callable[[Any], Any]] = {
    "lenet": lambda of: of.LeNet(),
    "vgg": lambda of: of.VGG("VGG11"),
    "resnet": lambda of: of.ResNet18(),
    "preact_resnet": lambda of: of.PreActResNet18(),
    "resnext": lambda of: of.ResNeXt29_2x64d(),
    "densenet": lambda of: of.DenseNet(of.Bottleneck, [2, 2, 2, 2], growth_rate=12),
    "mobilenet": lambda of: of.MobileNet(),
    "mobilenetv2": lambda of: of.MobileNetV2(),
    "shufflenetv2": lambda of: of.ShuffleNetV2(0.5),
    "senet": lambda of: of.SENet18(),
    "googlenet": lambda of: of.GoogLeNet(),
    "efficientnet": lambda of: without_rates(of.EfficientNetB0()),
    "regnet": lambda of: of.RegNetX_200MF(),
    "dpn": lambda of: of.DPN26(),
    "pnasnet": lambda of: of.PNASNetA(),
    "dla_simple": lambda of: of.SimpleDLA(),
}
VIT = "lucidrains/vit-pytorch"
SMALL = {"num_classes": 10, "dim": 32, "depth": 2, "heads": 2}
PATCHES = {**SMALL, "image_size": 32, "patch_size": 8, "mlp_dim": 64}
HEADS = {**PATCHES, "dim_head": 16}
STAGES = {"s1_emb_dim": 16, "s2_emb_dim": 32, "s3_emb_dim": 48}
# file of vit_pytorch/, class, arguments, shape of an image
VISION: tuple[tuple[str, str, dict[str, Any], tuple[int, ...]], ...] = (
    ("vit", "ViT", HEADS, (3, 32, 32)),
    ("simple_vit", "SimpleViT", HEADS, (3, 32, 32)),
    ("vit_1d", "ViT", {**SMALL, "seq_len": 64, "patch_size": 8, "mlp_dim": 64}, (3, 64)),
    (
        "vit_3d",
        "ViT",
        {**HEADS, "image_patch_size": 8, "frames": 4, "frame_patch_size": 2, "patch_size": None},
        (3, 4, 32, 32),
    ),
    ("deepvit", "DeepViT", HEADS, (3, 32, 32)),
    ("parallel_vit", "ViT", HEADS, (3, 32, 32)),
    ("vit_for_small_dataset", "ViT", HEADS, (3, 32, 32)),
    ("cait", "CaiT", {**HEADS, "cls_depth": 1}, (3, 32, 32)),
    ("xcit", "XCiT", {**HEADS, "cls_depth": 1}, (3, 32, 32)),
    ("t2t", "T2TViT", {**SMALL, "image_size": 32, "mlp_dim": 64}, (3, 32, 32)),
    ("pit", "PiT", {**HEADS, "depth": (1, 1)}, (3, 32, 32)),
    (
        "levit",
        "LeViT",
        {"image_size": 64, "num_classes": 10, "stages": 2, "dim": (32, 48), "depth": 1, "heads": (2, 3)}
        | {"mlp_mult": 2},
        (3, 64, 64),
    ),
    (
        "cvt",
        "CvT",
        {"num_classes": 10, **STAGES, "s2_heads": 2, "s3_heads": 2, "s2_depth": 1, "s3_depth": 1},
        (3, 32, 32),
    ),
    (
        "nest",
        "NesT",
        {"image_size": 32, "patch_size": 4, "num_classes": 10, "dim": 16, "heads": 2, "dim_head": 16}
        | {"num_hierarchies": 2, "block_repeats": (1, 1)},
        (3, 32, 32),
    ),
    (
        "max_vit",
        "MaxViT",
        {"num_classes": 10, "dim": 16, "depth": (1, 1), "dim_head": 8, "window_size": 4, "dropout": 0.0},
        (3, 32, 32),
    ),
    (
        "mobile_vit",
        "MobileViT",
        {"image_size": (64, 64), "dims": [16, 24, 32], "num_classes": 10, "depths": (1, 1, 1)}
        | {"channels": [8, 8, 16, 16, 16, 16, 24, 24, 32, 32, 64]},
        (3, 64, 64),
    ),
    (
        "crossformer",
        "CrossFormer",
        {"dim": (32, 32, 32, 32), "depth": (1, 1, 1, 1), "global_window_size": (4, 2, 1, 1)}
        | {"local_window_size": (4, 4, 2, 1), "num_classes": 10},
        (3, 64, 64),
    ),
    (
        "sep_vit",
        "SepViT",
        {"num_classes": 10, "dim": 16, "depth": (1, 1), "heads": (1, 2), "window_size": 7, "dim_head": 8},
        (3, 56, 56),
    ),
    (
        "scalable_vit",
        "ScalableViT",
        {"num_classes": 10, "dim": 16, "heads": (1, 2), "depth": (1, 1), "reduction_factor": (2, 1)}
        | {"window_size": (4, None), "ssa_dim_key": 8, "ssa_dim_value": 8, "iwsa_dim_key": 8}
        | {"iwsa_dim_value": 8},
        (3, 32, 32),
    ),
    (
        "cct",
        "CCT",
        {"img_size": 32, "embedding_dim": 32, "n_conv_layers": 1, "num_layers": 2, "num_heads": 2}
        | {"mlp_ratio": 2.0, "num_classes": 10, "positional_embedding": "learnable", "attention_dropout": 0.0}
        | {"stochastic_depth_rate": 0.0},
        (3, 32, 32),
    ),
    (
        "cross_vit",
        "CrossViT",
        {"image_size": 32, "num_classes": 10, "depth": 1, "sm_dim": 16, "sm_patch_size": 8, "sm_enc_heads": 2}
        | {"sm_enc_mlp_dim": 32, "lg_dim": 24, "lg_patch_size": 16, "lg_enc_depth": 1, "lg_enc_heads": 2}
        | {"lg_enc_mlp_dim": 32, "cross_attn_depth": 1, "cross_attn_heads": 2, "dropout": 0.0},
        (3, 32, 32),
    ),
    (
        "vivit",
        "ViViT",
        {"image_size": 32, "frames": 4, "image_patch_size": 8, "frame_patch_size": 2, "num_classes": 10}
        | {"dim": 32, "spatial_depth": 1, "temporal_depth": 1, "heads": 2, "mlp_dim": 64, "dim_head": 16}
        | {"use_flash_attn": False},
        (3, 4, 32, 32),
    ),
    ("simple_vit_with_fft", "SimpleViT", {**HEADS, "freq_patch_size": 8}, (3, 32, 32)),
    ("rvt", "RvT", HEADS, (3, 32, 32)),
)


def without_rates(model: Any) -> Any:
    """A net that keeps the rate of its dropout in its settings."""
    model.cfg |= {"dropout_rate": 0.0}
    return model


def cifar(name: str) -> Model:
    """A net of kuangliu's, at its own size of images."""
    return classifier(CIFAR_NETS[name](loaded(f"models.{name}")), 3, 32, 32, double=True)


def vision(file: str, kind: str, arguments: dict[str, Any], shape: tuple[int, ...]) -> Model:
    """A vision transformer of lucidrains'."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return classifier(getattr(loaded(f"vit_pytorch.{file}"), kind)(**given), *shape)


def unet(bilinear: bool) -> Model:
    """milesial's U-Net with the loss of its train.py."""
    import torch

    model = loaded("unet.unet_model").UNet(3, 2, bilinear)
    dice = loaded("utils.dice_score").dice_loss
    functional = torch.nn.functional

    def compute(x: Any, mask: Any) -> Any:
        output = model(x)
        loss = functional.cross_entropy(output, mask)
        loss = loss + dice(
            functional.softmax(output, dim=1),
            functional.one_hot(mask, 2).permute(0, 3, 1, 2).to(output.dtype),
            multiclass=True,
        )
        return output, loss

    def batch(seed: int) -> Any:
        return floats(2, 3, 32, 32, seed=seed), integers(2, 2, 32, 32, seed=seed)

    return trained(model, compute, batch, double=True)


def u2net() -> Model:
    """The small U²-Net with the loss of u2net_train.py: every side output's."""
    import torch

    model, loss = loaded("model.u2net").U2NETP(3, 1), torch.nn.BCELoss()

    def compute(x: Any, mask: Any) -> Any:
        outputs = model(x)
        return outputs[0], sum(loss(each, mask) for each in outputs)

    def batch(seed: int) -> Any:
        return floats(1, 3, 64, 64, seed=seed), integers(2, 1, 1, 64, 64, seed=seed).float()

    return trained(model, compute, batch, 0.00001, double=True)


def clip(layers: Any, width: int) -> Model:
    """OpenAI's CLIP with the loss of its paper."""
    import torch

    model = loaded("clip.model").CLIP(32, 64, layers, width, 16, 12, 100, 32, 2, 2)

    def compute(images: Any, texts: Any) -> Any:
        by_image, by_text = model(images, texts)
        order = torch.arange(len(images), device=by_image.device)
        loss = torch.nn.functional.cross_entropy
        return by_image, (loss(by_image, order) + loss(by_text, order)) / 2

    def batch(seed: int) -> Any:
        return floats(4, 3, 64, 64, seed=seed), integers(100, 4, 12, seed=seed)

    return trained(model, compute, batch)


def super_resolution() -> Model:
    """The example's net, which puts pixels in order."""
    import torch

    model = loaded("model").Net(upscale_factor=3)

    def compute(x: Any, target: Any) -> Any:
        output = model(x)
        return output, torch.nn.functional.mse_loss(output, target)

    def batch(seed: int) -> Any:
        return floats(2, 1, 16, 16, seed=seed), floats(2, 1, 48, 48, seed=seed)

    return trained(model, compute, batch)


def style() -> Model:
    """The example's net that transfers styles."""
    import torch

    model = loaded("neural_style.transformer_net").TransformerNet()

    def compute(x: Any, target: Any) -> Any:
        output = model(x)
        return output, torch.nn.functional.mse_loss(output, target)

    def batch(seed: int) -> Any:
        return floats(1, 3, 32, 32, seed=seed), floats(1, 3, 32, 32, seed=seed)

    return trained(model, compute, batch, 0.001)


def pointnet() -> Model:
    """PointNet, with the regulariser of its train_classification.py."""
    import torch

    of = loaded("pointnet.model")
    model = of.PointNetCls(k=5, feature_transform=True)

    def compute(points: Any, labels: Any) -> Any:
        output, _, turned = model(points)
        loss = torch.nn.functional.nll_loss(output, labels)
        return output, loss + of.feature_transform_regularizer(turned) * 0.001

    def batch(seed: int) -> Any:
        return floats(8, 3, 64, seed=seed), integers(5, 8, seed=seed)

    return trained(model, compute, batch, 0.001, double=True)


def programs() -> Iterator[Program]:
    """All of them."""
    for name in CIFAR_NETS:
        yield Program(f"cifar-{name}", CIFAR, partial(cifar, name))
    for row in VISION:
        yield Program(f"vit-{row[0]}", VIT, partial(vision, *row))
    yield Program("unet", "milesial/Pytorch-UNet", partial(unet, False))
    yield Program("unet-bilinear", "milesial/Pytorch-UNet", partial(unet, True))
    yield Program("u2net", "xuebinqin/U-2-Net", u2net)
    yield Program("clip-vit", "openai/CLIP", partial(clip, 2, 64))
    yield Program("clip-resnet", "openai/CLIP", partial(clip, (1, 1, 1, 1), 16))
    yield Program("super-resolution", "pytorch/examples", super_resolution, "super_resolution")
    yield Program("fast-neural-style", "pytorch/examples", style, "fast_neural_style")
    yield Program("pointnet", "fxia22/pointnet.pytorch", pointnet)
