"""What each key of a GGUF file's architecture does here: it is used, has no effect, or is refused.

In: an architecture and its keys. Out: nothing, or a `ModelFileError` that names the key and its value. The
invariant: no key that changes what a model computes is passed over. A key that no table has is refused too:
what it means is not known. The facts are llama.cpp's (src/llama-model.cpp, src/models/) and its converters'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import webgrad as wg

from .reader import shown

__all__ = ["ARCHITECTURES", "NO_EFFECT", "USED", "check_keys", "rule_of"]

USED: Final = "used"  # read by settings.py, rotary.py or embedding.py
NO_EFFECT: Final = "without effect"  # tells of the file, of training, or of a part that is not computed
# Otherwise a rule is the values at which a key changes nothing; all others are refused.
Rule = str | tuple[Any, ...]

_SIZES: dict[str, Rule] = dict.fromkeys(
    (
        *("vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length"),
        *("attention.head_count", "attention.head_count_kv"),
        *("attention.key_length", "attention.value_length"),
    ),
    USED,
)
_NEUTRAL: dict[str, Rule] = {
    "tensor_data_layout": NO_EFFECT,  # how the file was made; nothing reads it
    # Networks of experts
    "expert_count": (0,),
    "expert_used_count": (0,),
    "expert_shared_count": (0,),
    "expert_group_count": (0,),
    "expert_group_used_count": (0,),
    "expert_feed_forward_length": (0,),
    "expert_shared_feed_forward_length": (0,),
    "expert_gating_func": (0,),
    "expert_weights_scale": (0.0, 1.0),
    "expert_weights_norm": (False,),
    "leading_dense_block_count": (0,),
    "interleave_moe_layer_step": (0,),
    "moe_every_n_layers": (0,),
    "nextn_predict_layers": (0,),
    # Numbers that states, scores or logits are multiplied by or bounded to
    "logit_scale": (0.0, 1.0),
    "residual_scale": (0.0, 1.0),
    "embedding_scale": (0.0, 1.0),
    "attention.scale": (0.0,),
    "attention.output_scale": (0.0, 1.0),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attention.temperature_scale": (0.0,),
    "attention.temperature_length": (0,),
    "attn_logit_softcapping": (0.0,),
    "final_logit_softcapping": (0.0,),
    "router_logit_softcapping": (0.0,),
    # Other shapes of a layer
    "attention.sliding_window": (0,),
    "attention.sliding_window_pattern": (0,),
    "attention.shared_kv_layers": (0,),
    "use_parallel_residual": (False,),
    "swin_norm": (False,),
    "rescale_every_n_layers": (0,),
    "token_shift_count": (0,),
}
_DECODER: dict[str, Rule] = {
    **_SIZES,
    **_NEUTRAL,
    "attention.causal": (True,),
    "pooling_type": (0,),  # others make one vector of a text
}
_ROTARY: dict[str, Rule] = {
    **_DECODER,
    "attention.layer_norm_rms_epsilon": USED,
    "attention.layer_norm_epsilon": NO_EFFECT,  # of norms with a mean, which there are none of
    "rope.dimension_count": USED,
    "rope.freq_base": USED,
    "rope.scaling.type": USED,
    "rope.scaling.factor": USED,
    "rope.scale_linear": USED,  # the factor's old name
    "rope.scaling.finetuned": NO_EFFECT,
    "rope.scaling.original_context_length": NO_EFFECT,  # of YaRN, which rope.scaling.type would say
    "rope.scaling.attn_factor": (1.0,),
    "rope.scaling.alpha": (0.0,),
    "rope.scaling.yarn_log_multiplier": (0.0,),
    "rope.scaling.yarn_ext_factor": (0.0, -1.0),
    "rope.scaling.yarn_attn_factor": (1.0,),
    "rope.scaling.yarn_beta_fast": (32.0,),
    "rope.scaling.yarn_beta_slow": (1.0,),
}
_LEARNT_POSITIONS: dict[str, Rule] = {  # and norms with a mean
    "attention.layer_norm_epsilon": USED,
    "attention.layer_norm_rms_epsilon": NO_EFFECT,
    "rope.*": NO_EFFECT,
}

ARCHITECTURES: Mapping[str, Mapping[str, Rule]] = {
    "llama": {**_ROTARY, "attention.sliding_window": USED},  # Mistral's
    "qwen2": _ROTARY,
    "qwen3": _ROTARY,
    "gemma3": {
        **_ROTARY,
        "attention.sliding_window": USED,
        "attention.sliding_window_pattern": USED,
        "rope.freq_base_swa": USED,
        "rope.local.freq_base": USED,  # what other writers call the base of layers with a window
        "final_logit_softcapping": USED,
        "mm.*": NO_EFFECT,  # pictures, of which nothing is computed
        "vision.*": NO_EFFECT,
    },
    "gpt2": {**_DECODER, **_LEARNT_POSITIONS},
    "bert": {
        **_SIZES,
        **_NEUTRAL,
        **_LEARNT_POSITIONS,
        "attention.causal": (False,),
        "pooling_type": USED,
        "classifier.output_labels": NO_EFFECT,  # of a head that is not computed
    },
}
_EXPERTS = ": layers with several networks to choose from (mixtures of experts, as Mixtral) are not computed"


def rule_of(architecture: str, key: str) -> Rule | None:
    """What a key without its architecture's name does; None where no table has it."""
    table = ARCHITECTURES[architecture]
    return table.get(key, table.get(f"{key.partition('.')[0]}.*"))


def check_keys(metadata: Mapping[str, Any], architecture: str, source: str) -> None:
    """Raise where a key would change the meaning of a model and is not obeyed."""
    for key, value in _of_architecture(metadata, architecture):
        rule = rule_of(architecture, key)
        if rule is None:
            raise wg.ModelFileError(
                f"{source}: what {architecture}.{_short(key)}={shown(value)} means is not known. "
                "If it changes nothing, remove it: gguf-new-metadata --remove-metadata KEY OLD NEW (package "
                "gguf)"
            )
        if isinstance(rule, tuple) and not _is_one_of(value, rule):
            reason = _EXPERTS if "expert" in key else f", which computes as with {rule[-1]}"
            raise wg.ModelFileError(
                f"{source}: {architecture}.{key}={shown(value)} is not offered by webgrad{reason}"
            )


def _of_architecture(metadata: Mapping[str, Any], architecture: str) -> Iterator[tuple[str, Any]]:
    start = f"{architecture}."
    for key, value in metadata.items():
        if key.startswith(start) and value is not None:
            yield key.removeprefix(start), value


def _is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    """Whether a value is the same number, or the same truth value, as one of these."""
    return any(
        isinstance(value, int | float) and isinstance(value, bool) == isinstance(each, bool) and value == each
        for each in allowed
    )


def _short(key: str) -> str:
    return key if key.isprintable() and len(key) <= 80 else shown(key)
