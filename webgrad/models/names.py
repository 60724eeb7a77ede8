"""The names of weights: a file's to those that Hugging Face publishes, family by family.

In: the names of a GGUF or safetensors file. Out: the same weights under the names the modules are loaded by.
All are facts of the formats; `{}` is the number of a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

__all__ = ["names_of_gguf", "names_of_safetensors"]

_DECODER = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "blk.{}.attn_norm": "model.layers.{}.input_layernorm",
    "blk.{}.attn_q": "model.layers.{}.self_attn.q_proj",
    "blk.{}.attn_k": "model.layers.{}.self_attn.k_proj",
    "blk.{}.attn_v": "model.layers.{}.self_attn.v_proj",
    "blk.{}.attn_output": "model.layers.{}.self_attn.o_proj",
    "blk.{}.attn_q_norm": "model.layers.{}.self_attn.q_norm",
    "blk.{}.attn_k_norm": "model.layers.{}.self_attn.k_norm",
    "blk.{}.ffn_norm": "model.layers.{}.post_attention_layernorm",
    "blk.{}.ffn_gate": "model.layers.{}.mlp.gate_proj",
    "blk.{}.ffn_up": "model.layers.{}.mlp.up_proj",
    "blk.{}.ffn_down": "model.layers.{}.mlp.down_proj",
}
_GEMMA3 = {
    **_DECODER,
    "blk.{}.post_attention_norm": "model.layers.{}.post_attention_layernorm",
    "blk.{}.ffn_norm": "model.layers.{}.pre_feedforward_layernorm",
    "blk.{}.post_ffw_norm": "model.layers.{}.post_feedforward_layernorm",
}
_GPT2 = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
    "blk.{}.attn_norm": "transformer.h.{}.ln_1",
    "blk.{}.attn_qkv": "transformer.h.{}.attn.c_attn",
    "blk.{}.attn_output": "transformer.h.{}.attn.c_proj",
    "blk.{}.ffn_norm": "transformer.h.{}.ln_2",
    "blk.{}.ffn_up": "transformer.h.{}.mlp.c_fc",
    "blk.{}.ffn_down": "transformer.h.{}.mlp.c_proj",
}
_BERT = {
    "token_embd": "embeddings.word_embeddings",
    "position_embd": "embeddings.position_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "token_embd_norm": "embeddings.LayerNorm",
    "blk.{}.attn_q": "encoder.layer.{}.attention.self.query",
    "blk.{}.attn_k": "encoder.layer.{}.attention.self.key",
    "blk.{}.attn_v": "encoder.layer.{}.attention.self.value",
    "blk.{}.attn_output": "encoder.layer.{}.attention.output.dense",
    "blk.{}.attn_output_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "blk.{}.ffn_up": "encoder.layer.{}.intermediate.dense",
    "blk.{}.ffn_down": "encoder.layer.{}.output.dense",
    "blk.{}.layer_output_norm": "encoder.layer.{}.output.LayerNorm",
}
_FAMILIES: Mapping[str, Mapping[str, str]] = {"gemma3": _GEMMA3, "gpt2": _GPT2, "bert": _BERT}
_OLD_NORMS = {"gamma": "weight", "beta": "bias"}  # what norms' parameters are called in the oldest files


def names_of_safetensors(architecture: str, names: Iterable[str]) -> dict[str, str]:
    """Published name → the file's own name, which may have a wrapper more or less."""
    unwrapped = _WRAPPERS.get(architecture, _without_wrapper)
    return {unwrapped(each): each for each in names}


def _of_gpt2(name: str) -> str:
    """GPT-2 is published as it is, and as the body of what writes."""
    return name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}"


def _of_bert(name: str) -> str:
    """BERT is published as it is, and as the body of what fills in words."""
    stem, _, kind = name.removeprefix("bert.").rpartition(".")
    return f"{stem}.{_OLD_NORMS.get(kind, kind)}"


def _without_wrapper(name: str) -> str:
    """Models that see and write have their writing half inside."""
    for wrapper in ("language_model.", "model.language_model."):
        if name.startswith(wrapper):
            rest = name.removeprefix(wrapper)
            return rest if rest.startswith(("model.", "lm_head.")) else f"model.{rest}"
    return name


_WRAPPERS: Mapping[str, Callable[[str], str]] = {"gpt2": _of_gpt2, "bert": _of_bert}


def names_of_gguf(architecture: str, names: Iterable[str]) -> dict[str, str]:
    """Published name → the file's own name, for all names that the family knows."""
    table = _FAMILIES.get(architecture, _DECODER)
    found = {}
    for own in names:
        stem, _, kind = own.rpartition(".")  # kind: weight or bias
        parts = stem.split(".")
        number = parts[1] if len(parts) == 3 and parts[0] == "blk" else ""
        published = table.get(f"blk.{{}}.{parts[2]}" if number else stem)
        if published is not None:
            found[f"{published.format(number)}.{kind}"] = own
    return found
