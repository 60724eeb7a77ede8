"""Small random models for exports: decoders of every family, and a BERT, most of two layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import webgrad as wg
from scripts.random_models import FAMILIES, write_folder
from webgrad.models import EmbeddingModel, LanguageModel
from webgrad.models.embedding import EmbeddingSettings, load_encoder

__all__ = ["small_bert", "small_decoder"]


def small_decoder(folder: Path, family: str) -> LanguageModel:
    """A model of 256 tokens, which has no tokenizer."""
    write_folder(FAMILIES[family], folder)
    model = wg.models.load(folder, device="cpu")
    assert isinstance(model, LanguageModel)
    return model


def small_bert(folder: Path, tokenizer: Any = None) -> EmbeddingModel:
    """A model of 256 tokens, whose texts have at most 16; it pools in three ways."""
    write_folder(FAMILIES["bert"], folder)
    encoder = load_encoder(folder, "cpu")
    settings = EmbeddingSettings(encoder.settings, ("mean", "max", "cls"), True, 16)
    return EmbeddingModel(settings, encoder, tokenizer)
