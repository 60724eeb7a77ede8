"""Programs about sequences: language models, translation, speech.

In: the programs' own classes. Out: rows of the table of programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from tests.programs.program import Model, Program, floats, inert, integers, language, loaded, trained

__all__ = ["programs"]

WORDS, LENGTH = 40, 16


def with_own_loss(model: Any) -> Model:
    """A language model whose call gives logits and the loss."""
    return language(model, WORDS, LENGTH, model)


def with_logits(model: Any, words: int = WORDS, length: int = LENGTH) -> Model:
    """A language model whose call gives logits."""
    return language(model, words, length, lambda x, y: cross_entropy(model(x), y))


def cross_entropy(output: Any, y: Any) -> Sequence[Any]:
    """Logits of (…, words), and their loss."""
    import torch

    loss = torch.nn.functional.cross_entropy(output.reshape(-1, output.shape[-1]), y.reshape(-1))
    return output, loss


def nano_gpt() -> Model:
    """nanoGPT's model, with the sizes that its page names for the cpu."""
    of = loaded("model")
    model = of.GPT(of.GPTConfig(block_size=64, vocab_size=65, n_layer=4, n_head=4, n_embd=128, dropout=0.0))
    return language(model, 65, 64, model, 12)


def min_gpt() -> Model:
    """minGPT's model and optimiser."""
    of = loaded("mingpt.model").GPT
    config = of.get_default_config()
    config.merge_from_dict(
        {"model_type": "gpt-nano", "vocab_size": WORDS, "block_size": LENGTH}
        | dict.fromkeys(("embd_pdrop", "resid_pdrop", "attn_pdrop"), 0.0)
    )
    model = of(config)
    optimiser = model.configure_optimizers(
        SimpleNamespace(weight_decay=0.1, learning_rate=1e-4, betas=(0.9, 0.95))
    )
    plain = with_own_loss(model)

    def step(x: Any, y: Any) -> Sequence[Any]:
        optimiser.zero_grad()
        output, loss = model(x, y)
        loss.backward()
        optimiser.step()
        return output, loss

    return Model(plain.modules, step, plain.batches)


def generated() -> Model:
    """nanoGPT's `generate`: tokens one after another, the likeliest of each."""
    import torch

    of = loaded("model")
    model = of.GPT(of.GPTConfig(block_size=32, vocab_size=WORDS, n_layer=2, n_head=2, n_embd=32, dropout=0.0))
    model.eval()

    def step(x: Any) -> Sequence[Any]:
        longer = model.generate(x, 8, top_k=1)
        logits, _ = model(longer[:, -32:])
        return longer, logits, torch.nn.functional.cross_entropy(logits[:, -1], longer[:, -1])

    return Model({"model": model}, step, [(integers(WORDS, 2, 4, seed=seed),) for seed in range(5)])


def llama() -> Model:
    """llama2.c's model."""
    of = loaded("model")
    model = of.Transformer(
        of.ModelArgs(
            dim=32, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=WORDS, multiple_of=8, max_seq_len=LENGTH
        )
    )

    def compute(x: Any, y: Any) -> Sequence[Any]:
        output = model(x, y)
        return output, model.last_loss

    return language(model, WORDS, LENGTH, compute)


def mamba() -> Model:
    """mamba-minimal's model."""
    of = loaded("model")
    return with_logits(of.Mamba(of.ModelArgs(d_model=16, n_layer=2, vocab_size=WORDS)))


def words(kind: str) -> Model:
    """A recurrent model of the word language model's, with a hidden state from batch to batch."""
    import torch

    of = loaded("model")
    model = of.RNNModel(kind, WORDS, 16, 16, 2, 0.0, True)
    state = [model.init_hidden(4)]

    def compute(x: Any, y: Any) -> Sequence[Any]:
        output, hidden = model(x.t(), state[0])
        state[0] = tuple(each.detach() for each in hidden) if isinstance(hidden, tuple) else hidden.detach()
        return output, torch.nn.functional.nll_loss(output, y.t().reshape(-1))

    return language(model, WORDS, LENGTH, compute)


def word_transformer() -> Model:
    """The word language model's transformer."""
    import torch

    model = loaded("model").TransformerModel(WORDS, 16, 2, 32, 2, 0.0)

    def compute(x: Any, y: Any) -> Sequence[Any]:
        output = model(x.t())
        return output, torch.nn.functional.nll_loss(output.view(-1, WORDS), y.t().reshape(-1))

    return language(model, WORDS, LENGTH, compute)


def pairs(seed: int, high: int = WORDS) -> tuple[Any, Any]:
    """Sentences in two languages, none of them padded."""
    return integers(high - 3, 4, 10, seed=seed) + 3, integers(high - 3, 4, 9, seed=seed + 50) + 3


def attention_is_all_you_need() -> Model:
    """jadore801120's Transformer."""
    model = loaded("transformer.Models").Transformer(
        WORDS,
        WORDS,
        0,
        0,
        d_word_vec=32,
        d_model=32,
        d_inner=64,
        n_layers=2,
        n_head=2,
        d_k=16,
        d_v=16,
        dropout=0.0,
    )
    return trained(model, lambda x, y: cross_entropy(model(x, y[:, :-1]), y[:, 1:]), pairs)


def hyunwoong() -> Model:
    """hyunwoongko's Transformer."""
    model = loaded("models.model.transformer").Transformer(
        0, 0, 2, WORDS, WORDS, 32, 2, 20, 64, 2, 0.0, "cpu"
    )
    return trained(model, lambda x, y: cross_entropy(model(x, y[:, :-1]), y[:, 1:]), pairs)


def annotated() -> Model:
    """The annotated transformer, with its own batches, label smoothing and loss."""
    inert("pandas", "altair", "torchtext", "spacy", "GPUtil")
    of = loaded("the_annotated_transformer")
    model = of.make_model(WORDS, WORDS, N=2, d_model=32, d_ff=64, h=2, dropout=0.0)
    loss_of = of.SimpleLossCompute(model.generator, of.LabelSmoothing(WORDS, padding_idx=0, smoothing=0.1))

    def compute(x: Any, y: Any) -> Sequence[Any]:
        batch = of.Batch(x, y, 0)
        output = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)
        return output, loss_of(output, batch.tgt_y, batch.ntokens)[1]

    return trained(model, compute, pairs)


def translator() -> Model:
    """The example of translation, on nn.Transformer."""
    import torch

    model = loaded("src.model").Translator(2, 2, 32, 2, WORDS, WORDS, 64, 0.0)

    def compute(x: Any, y: Any) -> Sequence[Any]:
        source, target = x.t(), y.t()
        size = target.shape[0] - 1
        mask = torch.nn.Transformer.generate_square_subsequent_mask(size)
        none = torch.zeros(source.shape[0], source.shape[0]).bool()
        padded, behind = (source == 0).t(), (target[:-1] == 0).t()
        output = model(source, target[:-1], none, mask, padded, behind, padded)
        return cross_entropy(output, target[1:])

    return trained(model, compute, pairs)


def lora() -> Model:
    """loralib's layers in a net, of which only what they add is trained."""
    import torch

    of = loaded("loralib.layers")
    mark = loaded("loralib.utils").mark_only_lora_as_trainable
    model = torch.nn.Sequential(
        of.Embedding(WORDS, 32, r=4),
        of.MergedLinear(32, 96, r=4, enable_lora=[True, False, True]),
        torch.nn.GELU(),
        of.Linear(96, WORDS, r=4),
    )
    with torch.no_grad():
        for name, each in model.named_parameters():
            if "lora_" in name:
                each.copy_(floats(*each.shape, scale=0.1))
    mark(model)
    return with_logits(model)


def temporal() -> Model:
    """TCN's model of words."""
    model = loaded("TCN.word_cnn.model").TCN(16, WORDS, [16, 16], dropout=0.0, emb_dropout=0.0)
    return with_logits(model)


def conformer() -> Model:
    """lucidrains' Conformer."""
    import torch

    model = loaded("conformer.conformer").Conformer(32, depth=2, dim_head=16, heads=2, conv_kernel_size=7)

    def compute(x: Any, y: Any) -> Sequence[Any]:
        output = model(x)
        return output, torch.nn.functional.mse_loss(output, y)

    return trained(
        model, compute, lambda seed: (floats(2, 20, 32, seed=seed), floats(2, 20, 32, seed=seed + 9))
    )


def hifi_gan() -> Model:
    """HiFi-GAN's generator, with normed weights."""
    import torch

    inert("matplotlib")
    config = SimpleNamespace(
        resblock="1",
        resblock_kernel_sizes=[3, 5],
        resblock_dilation_sizes=[[1, 3, 5], [1, 3, 5]],
        upsample_rates=[4, 2],
        upsample_kernel_sizes=[8, 4],
        upsample_initial_channel=16,
    )
    model = loaded("models").Generator(config)

    def compute(x: Any, y: Any) -> Sequence[Any]:
        output = model(x)
        return output, torch.nn.functional.l1_loss(output, y)

    return trained(model, compute, lambda seed: (floats(2, 80, 8, seed=seed), floats(2, 1, 64, seed=seed)))


def programs() -> Iterator[Program]:
    """All of them."""
    examples = "pytorch/examples"
    yield Program("nanogpt", "karpathy/nanoGPT", nano_gpt)
    yield Program("nanogpt-generate", "karpathy/nanoGPT", generated)
    yield Program("mingpt", "karpathy/minGPT", min_gpt)
    yield Program("llama2c", "karpathy/llama2.c", llama)
    yield Program("mamba-minimal", "johnma2006/mamba-minimal", mamba)
    for kind in ("LSTM", "GRU", "RNN_TANH"):
        yield Program(f"words-{kind.lower()}", examples, partial(words, kind), "word_language_model")
    yield Program("words-transformer", examples, word_transformer, "word_language_model")
    yield Program("translation", examples, translator, "language_translation")
    yield Program(
        "attention-is-all-you-need",
        "jadore801120/attention-is-all-you-need-pytorch",
        attention_is_all_you_need,
    )
    yield Program("transformer-hyunwoongko", "hyunwoongko/transformer", hyunwoong)
    yield Program("annotated-transformer", "harvardnlp/annotated-transformer", annotated)
    yield Program("lora", "microsoft/LoRA", lora)
    yield Program("tcn-words", "locuslab/TCN", temporal)
    yield Program("conformer", "lucidrains/conformer", conformer)
    yield Program("hifi-gan", "jik876/hifi-gan", hifi_gan)
