"""Programs that are run whole: their own scripts with small settings, until they have gone back some times.

In: paths of scripts, arguments, and what they read. Out: rows of the table of programs.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from tests.programs.program import Program, Script

__all__ = ["programs"]

TWICE = 10  # times that nets go back which are trained against each other
EXAMPLES = "pytorch/examples"
# folder, arguments, times to go back
EXAMPLE_SCRIPTS: tuple[tuple[str, str, int], ...] = (
    ("mnist", "--batch-size 8 --test-batch-size 16 --no-accel", 5),
    ("mnist_rnn", "--batch-size 8 --test-batch-size 16", 5),
    ("mnist_forward_forward", "--epochs 3 --train_size 16 --test_size 16 --no_accel", 6),
    ("vae", "--batch-size 8 --no-accel", 5),
    ("dcgan", "--dataset mnist --dataroot . --batchSize 4 --ngf 8 --ndf 8 --nz 16 --workers 0", 15),
    ("regression", "", 5),
)
GANS: tuple[tuple[str, str], ...] = (
    ("gan", ""),
    ("dcgan", "--channels 1 --lr 0.00005"),
    ("wgan", ""),
    ("wgan_gp", ""),
    ("lsgan", "--channels 1"),
    ("cgan", ""),
    ("aae", ""),
    ("infogan", "--lr 0.00005"),
    ("acgan", "--lr 0.00005"),
)
TUTORIALS = "tutorials"
TUTORIAL_SCRIPTS: tuple[str, ...] = (
    "01-basics/linear_regression",
    "01-basics/logistic_regression",
    "01-basics/feedforward_neural_network",
    "02-intermediate/convolutional_neural_network",
    "02-intermediate/deep_residual_network",
    "02-intermediate/recurrent_neural_network",
    "02-intermediate/bidirectional_recurrent_neural_network",
    "03-advanced/generative_adversarial_network",
    "03-advanced/variational_autoencoder",
)
JOHNSON: tuple[str, ...] = ("autograd/two_layer_net_autograd", "autograd/two_layer_net_custom_function")
JOHNSON += tuple(f"nn/{each}" for each in ("two_layer_net_nn", "two_layer_net_module", "two_layer_net_optim"))
JOHNSON += ("nn/dynamic_net",)
POLICIES = ("REINFORCE", "actor_critic", "ppo", "ppo-lstm", "ppo-continuous")
# file of cleanrl/, arguments
AGENTS: tuple[tuple[str, str], ...] = (
    ("ppo", "--num-steps 16 --num-envs 2 --update-epochs 2"),
    ("ppo_continuous_action", "--num-steps 16 --num-minibatches 4 --update-epochs 2"),
    ("dqn", "--learning-starts 30 --total-timesteps 100 --batch-size 8 --train-frequency 2"),
    ("c51", "--learning-starts 30 --total-timesteps 100 --batch-size 8 --train-frequency 2"),
    ("ddpg_continuous_action", "--learning-starts 30 --total-timesteps 60 --batch-size 8"),
    ("td3_continuous_action", "--learning-starts 30 --total-timesteps 60 --batch-size 8"),
    ("sac_continuous_action", "--learning-starts 30 --total-timesteps 60 --batch-size 8"),
)


def sentences(count: int) -> str:
    """Lines of words that NumPy draws."""
    rng = np.random.default_rng(0)
    letters = np.array(list(string.ascii_lowercase[:12]))
    words = ["".join(rng.choice(letters, rng.integers(2, 7))) for _ in range(40)]
    return "".join(" ".join(rng.choice(words, 8)) + "\n" for _ in range(count))


def names(folder: Path) -> None:
    """A list of names."""
    text = dict.fromkeys(sentences(60).split())
    (folder / "names.txt").write_text("\n".join([*text, *(each + "a" for each in text)]) + "\n")


def text(folder: Path) -> None:
    """One text."""
    (folder / "input.txt").write_text(sentences(80))


def corpus(folder: Path) -> None:
    """A text for training, one for validation and one for tests."""
    (folder / "small").mkdir()
    for part in ("train", "valid", "test"):
        (folder / "small" / f"{part}.txt").write_text(sentences(40))


def tokens(folder: Path) -> None:
    """Tokens in binary files."""
    (folder / "data" / "small").mkdir(parents=True)
    for number, part in enumerate(("train", "val")):
        drawn = np.random.default_rng(number).integers(0, 40, 2000).astype(np.uint16)
        drawn.tofile(folder / "data" / "small" / f"{part}.bin")


def languages() -> Iterator[Program]:
    """Language models."""
    for kind in ("bigram", "mlp", "rnn", "gru", "bow", "transformer"):
        small = f"--type {kind} -n 0 --n-layer 2 --n-head 2 --n-embd 16 --n-embd2 16 -b 8"
        yield Program(f"makemore-{kind}", "karpathy/makemore", Script("makemore.py", small.split(), names))
    small = (
        "--n_layer=2 --n_head=2 --n_embd=32 --block_size=16 --batch_size=4 --gradient_accumulation_steps=1"
    )
    small += " --device=cpu --dtype=float32 --compile=False --eval_iters=1 --dataset=small --warmup_iters=0"
    yield Program("nanogpt-train", "karpathy/nanoGPT", Script("train.py", small.split(), tokens))
    small = "--trainer.batch_size=8 --trainer.num_workers=0 --trainer.device=cpu"
    yield Program("mingpt-adder", "karpathy/minGPT", Script("projects/adder/adder.py", small.split()))
    yield Program("bigram-lecture", "karpathy/ng-video-lecture", Script("bigram.py", (), text))
    for kind in ("LSTM", "Transformer"):
        small = f"--data small --model {kind} --emsize 16 --nhid 16 --nlayers 2 --nhead 2 --batch_size 4"
        script = Script("main.py", f"{small} --bptt 8 --dropout 0".split(), corpus)
        yield Program(f"words-main-{kind.lower()}", EXAMPLES, script, "word_language_model")


def programs() -> Iterator[Program]:
    """All of them."""
    yield from languages()
    for folder, arguments, most in EXAMPLE_SCRIPTS:
        script = Script("main.py", arguments.split(), most=most)
        yield Program(f"example-{folder.replace('_', '-')}", EXAMPLES, script, folder)
    for each in ("reinforce", "actor_critic"):
        script = Script(f"reinforcement_learning/{each}.py")
        yield Program(f"example-{each.replace('_', '-')}", EXAMPLES, script)
    gan = partial(Script, most=TWICE)
    for each, arguments in GANS:
        small = f"--batch_size 8 --n_epochs 2 --latent_dim 16 {arguments}"
        yield Program(
            f"gan-{each}",
            "eriklindernoren/PyTorch-GAN",
            gan(f"implementations/{each}/{each}.py", small.split()),
        )
    for each in TUTORIAL_SCRIPTS:
        path, deep = f"{TUTORIALS}/{each}/main.py", each.endswith("residual_network")
        script = Script(path, without=("matplotlib",), double=deep)
        yield Program(f"tutorial-{each.partition('/')[2]}", "yunjey/pytorch-tutorial", script)
    for each in JOHNSON:
        yield Program(f"johnson-{each.partition('/')[2]}", "jcjohnson/pytorch-examples", Script(f"{each}.py"))
    for each in POLICIES:
        yield Program(f"minimal-{each.lower()}", "seungeunrho/minimalRL", Script(f"{each}.py"))
    for each, arguments in AGENTS:
        yield Program(f"cleanrl-{each}", "vwxyzjn/cleanrl", Script(f"cleanrl/{each}.py", arguments.split()))
    yield Program(
        "neural-ode-demo",
        "rtqichen/torchdiffeq",
        Script("examples/ode_demo.py", ("--data_size", "40", "--batch_time", "5"), double=True),
    )
