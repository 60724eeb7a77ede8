"""The names of weights: GGUF's to those that Hugging Face publishes, family by family.

In: a GGUF file's names. Out: the same weights under the names the modules are loaded by. Both are facts of
the formats; `{}` is the number of a layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["published_names"]

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
_FAMILIES: Mapping[str, Mapping[str, str]] = {"gemma3": _GEMMA3, "gpt2": _GPT2}


def published_names(architecture: str, names: Iterable[str]) -> dict[str, str]:
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
