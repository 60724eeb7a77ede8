"""Diffusion models: networks, schedulers and pipelines that make pictures.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from .folder import load
from .pipelines.class_conditional import ClassConditional
from .pipelines.latents import Preview
from .pipelines.pixart import PixArt
from .pipelines.stable import StableDiffusion
from .pipelines.terrain import Terrain
from .pipelines.unconditional import Unconditional
from .pipelines.wuerstchen import Wuerstchen, WuerstchenDecoder, WuerstchenPrior
from .saving import save
from .schedulers import (
    DDIM,
    DDPM,
    LCM,
    PNDM,
    DDPMWuerstchen,
    DPMSolver,
    Euler,
    EulerAncestral,
    FlowMatching,
    scheduler_named,
)
from .transformers import (
    DiTTransformer,
    DiTTransformerConfig,
    PixArtTransformer,
    PixArtTransformerConfig,
)
from .unets import UNet2D, UNet2DCondition, UNet2DConditionConfig, UNet2DConfig

__all__ = [
    "DDIM",
    "DDPM",
    "LCM",
    "PNDM",
    "ClassConditional",
    "DDPMWuerstchen",
    "DPMSolver",
    "DiTTransformer",
    "DiTTransformerConfig",
    "Euler",
    "EulerAncestral",
    "FlowMatching",
    "PixArt",
    "PixArtTransformer",
    "PixArtTransformerConfig",
    "Preview",
    "StableDiffusion",
    "Terrain",
    "UNet2D",
    "UNet2DCondition",
    "UNet2DConditionConfig",
    "UNet2DConfig",
    "Unconditional",
    "Wuerstchen",
    "WuerstchenDecoder",
    "WuerstchenPrior",
    "load",
    "save",
    "scheduler_named",
]
