"""Programs that make images: diffusion, autoencoders, adversarial nets, flows.

In: the programs' own classes. Out: rows of the table of programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tests.programs.program import STEPS, Model, Program, floats, inert, integers, loaded, trained

__all__ = ["programs"]


def ddpm() -> Model:
    """dome272's U-Net for diffusion, and his noise, as in his train()."""
    import torch

    inert("matplotlib", "PIL")
    model = loaded("modules").UNet(device="cpu")
    diffusion = loaded("ddpm").Diffusion(noise_steps=50, img_size=16, device="cpu")

    def compute(images: Any) -> Sequence[Any]:
        steps = diffusion.sample_timesteps(images.shape[0])
        noisy, noise = diffusion.noise_images(images, steps)
        output = model(noisy, steps)
        return output, torch.nn.functional.mse_loss(noise, output)

    return trained(model, compute, lambda seed: (floats(1, 3, 64, 64, seed=seed),), 0.001)


def lucidrains_unet(dimensions: int) -> Model:
    """lucidrains' U-Net and his GaussianDiffusion."""
    inert("ema_pytorch", "accelerate", "torchvision", "PIL")
    name = "denoising_diffusion_pytorch" + ("_1d" if dimensions == 1 else "")
    of = loaded(f"denoising_diffusion_pytorch.{name}")
    if dimensions == 1:
        unet = of.Unet1D(dim=8, dim_mults=(1, 2), channels=3, attn_dim_head=8, attn_heads=2)
        model = of.GaussianDiffusion1D(unet, seq_length=32, timesteps=20)
        return trained(model, lambda x: (model(x),), lambda seed: (floats(2, 3, 32, seed=seed),))
    unet = of.Unet(dim=8, dim_mults=(1, 2), attn_dim_head=8, attn_heads=2, flash_attn=False)
    model = of.GaussianDiffusion(unet, image_size=16, timesteps=20)
    return trained(model, lambda x: (model(x),), lambda seed: (floats(2, 3, 16, 16, seed=seed),))


def guided() -> Model:
    """OpenAI's U-Net of guided diffusion."""
    import torch

    model = loaded("guided_diffusion.unet").UNetModel(
        image_size=16,
        in_channels=3,
        model_channels=32,
        out_channels=3,
        num_res_blocks=1,
        attention_resolutions=(2,),
        channel_mult=(1, 2),
        num_classes=10,
        num_heads=2,
        use_scale_shift_norm=True,
        resblock_updown=True,
    )
    with torch.no_grad():  # what it starts with at zero would hide what comes before
        for each in model.parameters():
            if not each.any():
                each.copy_(floats(*each.shape, scale=0.02))

    def compute(x: Any, steps: Any, labels: Any, noise: Any) -> Sequence[Any]:
        output = model(x, steps, labels)
        return output, torch.nn.functional.mse_loss(output, noise)

    def batch(seed: int) -> Any:
        image = floats(2, 3, 16, 16, seed=seed)
        return (
            image,
            integers(100, 2, seed=seed),
            integers(10, 2, seed=seed),
            floats(2, 3, 16, 16, seed=seed + 9),
        )

    return trained(model, compute, batch, 0.001)


def autoencoder(file: str, kind: str, options: dict[str, Any]) -> Model:
    """An autoencoder of AntixK's, with its own loss."""
    inert("torchvision")
    model = getattr(loaded(f"models.{file}"), kind)(in_channels=3, **options)

    def compute(x: Any) -> Sequence[Any]:
        outputs = model(x)
        return outputs[0], model.loss_function(*outputs, M_N=0.01)["loss"]

    return trained(model, compute, lambda seed: (floats(4, 3, 64, 64, seed=seed),), 0.001)


def star_gan() -> Model:
    """StarGAN's two nets, one step of each, with the gradient penalty of its solver."""
    import torch

    of = loaded("model")
    maker, judge = of.Generator(8, 2, 1), of.Discriminator(32, 8, 2, 3)
    makes = torch.optim.SGD(maker.parameters(), lr=0.001)
    judges = torch.optim.SGD(judge.parameters(), lr=0.001)

    def penalty(x: Any) -> Any:
        scores, _ = judge(x)
        (slope,) = torch.autograd.grad(
            outputs=scores,
            inputs=x,
            grad_outputs=torch.ones(scores.size()),
            retain_graph=True,
            create_graph=True,
            only_inputs=True,
        )
        norm = torch.sqrt(torch.sum(slope.view(slope.size(0), -1) ** 2, dim=1))
        return torch.mean((norm - 1) ** 2)

    def step(x: Any, labels: Any, share: Any) -> Sequence[Any]:
        real, classes = judge(x)
        made = maker(x, labels)
        false, _ = judge(made.detach())
        between = (share * x.data + (1 - share) * made.data).requires_grad_(True)
        loss = false.mean() - real.mean() + 10 * penalty(between)
        loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(classes, labels)
        judges.zero_grad()
        loss.backward()
        judges.step()
        scores, _ = judge(maker(x, labels))
        second = -scores.mean()
        makes.zero_grad()
        second.backward()
        makes.step()
        return made, loss, second

    batches = [
        (
            floats(2, 3, 32, 32, seed=seed),
            integers(2, 2, 2, seed=seed).float(),
            integers(9, 2, 1, 1, 1, seed=seed) / 9,
        )
        for seed in range(STEPS)
    ]
    return Model({"maker": maker, "judge": judge}, step, batches)


def flow(kind: str) -> Model:
    """A masked autoregressive flow, or RealNVP, of kamenbliznashki's."""
    inert("matplotlib", "torchvision", "data")
    of = loaded("maf")
    model = getattr(of, kind)(n_blocks=2, input_size=6, hidden_size=16, n_hidden=1)

    def compute(x: Any) -> Sequence[Any]:
        log = model.log_prob(x, None)
        return log, -log.mean(0)

    return trained(model, compute, lambda seed: (floats(16, 6, seed=seed),), 0.001)


def neural_autoregressive() -> Model:
    """Block neural autoregressive flow."""
    inert("matplotlib")
    model = loaded("bnaf").BNAF(2, 1, 16)

    def compute(x: Any) -> Sequence[Any]:
        output, log = model(x)
        return output, -(model.base_dist.log_prob(output) + log).sum(1).mean()

    return trained(model, compute, lambda seed: (floats(16, 2, seed=seed),))


def glow() -> Model:
    """Glow: invertible convolutions, on the images of its preprocessing."""
    inert("matplotlib", "torchvision", "tensorboardX", "datasets")
    model = loaded("glow").Glow(16, 2, 2, input_dims=(3, 16, 16))

    def compute(x: Any) -> Sequence[Any]:
        log = model.log_prob(x, bits_per_pixel=True)
        return log, log.mean(0)

    return trained(model, compute, lambda seed: (floats(4, 3, 16, 16, seed=seed, scale=0.1),), 0.001)


def programs() -> Iterator[Program]:
    """All of them."""
    yield Program("ddpm", "dome272/Diffusion-Models-pytorch", ddpm)
    yield Program(
        "denoising-diffusion", "lucidrains/denoising-diffusion-pytorch", partial(lucidrains_unet, 2)
    )
    yield Program(
        "denoising-diffusion-1d", "lucidrains/denoising-diffusion-pytorch", partial(lucidrains_unet, 1)
    )
    yield Program("guided-diffusion", "openai/guided-diffusion", guided)
    small: dict[str, Any] = {"latent_dim": 8, "hidden_dims": [8, 16, 16, 16, 512]}
    for name, kind, options in (
        ("vanilla_vae", "VanillaVAE", small),
        ("beta_vae", "BetaVAE", small),
        ("wae_mmd", "WAE_MMD", small),
        (
            "vq_vae",
            "VQVAE",
            {"embedding_dim": 8, "num_embeddings": 16, "hidden_dims": [8, 16], "img_size": 64},
        ),
        ("iwae", "IWAE", small),
    ):
        yield Program(f"vae-{name}", "AntixK/PyTorch-VAE", partial(autoencoder, name, kind, options))
    yield Program("stargan", "yunjey/stargan", star_gan)
    for kind in ("MAF", "RealNVP"):
        yield Program(f"flow-{kind.lower()}", "kamenbliznashki/normalizing_flows", partial(flow, kind))
    yield Program("flow-bnaf", "kamenbliznashki/normalizing_flows", neural_autoregressive)
    yield Program("flow-glow", "kamenbliznashki/normalizing_flows", glow)
