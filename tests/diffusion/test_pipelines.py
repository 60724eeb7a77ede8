"""Pipelines: seeds repeat, nothing is captured twice, sizes are checked, folders lead to networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.diffusion.folder import load
from webgrad.diffusion.pipelines.pictures import as_bytes, as_hole, as_values

SMALL: dict[str, Any] = {
    "sample_size": 8,
    "block_out_channels": (8, 16),
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    "layers_per_block": 1,
    "norm_num_groups": 4,
}


def pipeline(**more: Any) -> wg.diffusion.Unconditional:
    wg.random.seed(0)
    config = wg.diffusion.UNet2DConfig(**SMALL, **more)
    return wg.diffusion.Unconditional(wg.diffusion.UNet2D(config).eval(), wg.diffusion.DDPM())


def written(folder: Path, model: wg.nn.Module) -> Path:
    """A folder of diffusers with this U-Net."""
    (folder / "unet").mkdir(parents=True)
    (folder / "scheduler").mkdir()
    index = {"_class_name": "DDPMPipeline", "unet": ["diffusers", "UNet2DModel"]}
    index["scheduler"] = ["diffusers", "DDPMScheduler"]
    (folder / "model_index.json").write_text(json.dumps(index))
    (folder / "unet" / "config.json").write_text(json.dumps({"_class_name": "UNet2DModel", **SMALL}))
    (folder / "scheduler" / "scheduler_config.json").write_text("{}")
    wg.io.save(folder / "unet" / "diffusion_pytorch_model.safetensors", model.state_dict())
    return folder


def test_seeds_repeat_and_steps_are_captured_once() -> None:
    pipe = pipeline()
    first = pipe(2, steps=3, seed=5)
    assert (pipe(2, steps=3, seed=5) == first).all()
    assert "1 captured" in repr(pipe._denoiser._step)
    assert (pipe(2, steps=3, seed=6) != first).any()
    assert first.shape == (2, 8, 8, 3)
    assert first.dtype == np.uint8


def test_steps_that_know_four_before_are_captured_once() -> None:
    pipe = pipeline().with_scheduler(wg.diffusion.PNDM())
    previews = list(pipe.steps(1, steps=6, seed=5))
    assert [each.step for each in previews] == [1, 2, 3, 4, 5, 6, 7]
    assert "1 captured" in repr(pipe._denoiser._step)


def test_a_folder_gives_the_pictures_of_its_network(tmp_path: Path) -> None:
    pipe = pipeline()
    found = load(written(tmp_path / "model", pipe.unet))
    assert (found(1, steps=2, seed=3) == pipe(1, steps=2, seed=3)).all()


def test_classes_are_asked_for_and_make_a_difference() -> None:
    pipe = pipeline(num_class_embeds=3)
    with pytest.raises(wg.ArgumentError, match="conditioned by classes"):
        pipe(1, steps=1)
    assert (pipe(1, steps=1, seed=0, classes=0) != pipe(1, steps=1, seed=0, classes=2)).any()


def test_gradients_are_as_they_were_while_previews_are_asked_for() -> None:
    previews = pipeline().steps(1, steps=2, seed=0)
    next(previews)
    assert wg.is_grad_enabled()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("model_index.json", "[]", "has no settings"),
        ("model_index.json", "{", "is no JSON"),
        ("model_index.json", '{"_class_name": "Other"}', "there is no pipeline Other"),
        ("model_index.json", '{"_class_name": "DDPMPipeline"}', "there is no part 'unet'"),
        ("unet/config.json", '{"block_out_channels": [8]}', "describes no UNet2DModel"),
        ("unet/config.json", '{"mid_block_type": null, "block_out_channels": [8, 16, 32, 64]}', "unet"),
        ("unet/diffusion_pytorch_model.safetensors", "", "diffusion_pytorch_model.safetensors"),
    ],
)
def test_a_damaged_folder_is_an_error_that_names_the_file(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    folder = written(tmp_path / "model", pipeline().unet)
    (folder / name).write_text(text)
    with pytest.raises(wg.ModelFileError, match=message):
        load(folder)


def test_weights_of_other_formats_are_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", pipeline().unet)
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(wg.ModelFileError, match=r"no \.safetensors file \(there is diffusion_\w+\.bin\)"):
        load(folder)


def test_pictures_are_bytes_and_values() -> None:
    picture = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 14
    values = as_values(picture)
    assert values.shape == (1, 3, 2, 3)
    assert (as_bytes(values)[0] == picture).all()
    assert as_values(picture[:, :, 0]).shape == (1, 3, 2, 3)
    with pytest.raises(wg.ShapeError, match="a picture is"):
        as_values(np.zeros((2, 3, 2)))


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.uint16, np.float32, np.float64])
def test_pictures_of_other_types_are_those_of_bytes(dtype: Any) -> None:
    picture = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 14
    given = picture.astype(dtype) / dtype(255 if dtype in (np.float32, np.float64) else 1)
    given = given.astype(dtype)
    np.testing.assert_allclose(as_values(given).numpy(), as_values(picture).numpy(), atol=1e-6)
    grey = as_values(given[:, :, :1]).numpy()
    assert (grey == as_values(given[:, :, 0]).numpy()).all()


def test_what_is_transparent_is_on_white() -> None:
    colours = np.full((1, 3, 3), 100, np.uint8)
    picture = np.concatenate([colours, [[[0], [51], [255]]]], axis=2).astype(np.uint8)
    assert as_bytes(as_values(picture))[0, 0].tolist() == [[255] * 3, [224] * 3, [100] * 3]


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (np.full((2, 2), 256), "a picture of int64 has values from 0 to 255, not 256 to 256"),
        (np.full((2, 2), -1), "from 0 to 255, not -1"),
        (np.full((2, 2), 200.0), "a picture of float64 has values from 0 to 1, not 200"),
        (np.full((2, 2), np.nan), "from 0 to 1, not nan"),
        (np.full((2, 2), 1j), "of numbers, not of complex128"),
        (np.asarray([["a"]]), "of numbers, not of <U1"),
    ],
)
def test_values_that_no_picture_has(picture: Any, message: str) -> None:
    with pytest.raises(wg.ArgumentError, match=message):
        as_values(picture)


HOLE = np.asarray([[0, 1, 1], [0, 0, 1]])


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("most", [1, 255])
def test_masks_of_all_types_are_holes(dtype: Any, most: int) -> None:
    mask = (HOLE * most).astype(dtype)
    for given in (mask, mask[:, :, None], np.stack([mask] * 3, axis=2)):
        assert (as_hole(given).numpy() == HOLE).all()
    assert not as_hole(mask * dtype(0)).numpy().any()


def test_masks_that_are_none() -> None:
    with pytest.raises(wg.ShapeError, match=r"a mask is .* not \(1, 2, 2, 3\)"):
        as_hole(np.zeros((1, 2, 2, 3)))
    with pytest.raises(wg.ArgumentError, match="a mask of float64 has values from 0 to 255, not nan"):
        as_hole(np.full((2, 2), np.nan))


def of_classes(known: int = 3, labels: Any = ("cat, tabby", "Ankle boot")) -> wg.diffusion.Unconditional:
    return wg.diffusion.Unconditional(
        pipeline(num_class_embeds=known).unet, wg.diffusion.FlowMatching(), labels
    )


def test_classes_have_names() -> None:
    pipe = of_classes()
    wanted = pipe(2, steps=2, seed=0, classes=[0, 1])
    assert (pipe(2, steps=2, seed=0, classes=["Tabby", "boot"]) == wanted).all()
    assert (pipe(2, steps=2, seed=0, classes=np.asarray([0, 1])) == wanted).all()
    assert (pipe(1, steps=2, seed=0, classes=np.int64(1)) == pipe(1, steps=2, seed=0, classes=1)).all()
    for number in (1.7, [1.7], True):
        with pytest.raises(wg.ArgumentError, match="a class is a number or a name, not"):
            pipe(1, classes=number)
    every: Any = (0, 1.0)
    for count in every:
        with pytest.raises(wg.ArgumentError, match="count is a whole number above 0"):
            pipe(count, classes=1)
    for name, message in (("dog", "no class has the name 'dog'"), ("a", "several classes have the name 'a'")):
        with pytest.raises(wg.ArgumentError, match=message):
            pipe(1, classes=name)
    with pytest.raises(wg.ArgumentError, match=r"classes 0 to 2, and it was asked for \[3\]"):
        pipe(1, classes=3)
    with pytest.raises(wg.ArgumentError, match="there are 1 pictures, and classes for 2"):
        pipe(1, classes=[0, 1])
    with pytest.raises(wg.ArgumentError, match="knows no classes"):
        pipeline()(1, classes=1)


def test_guidance_is_by_what_no_class_gives() -> None:
    pipe = of_classes()
    noise = wg.random.Generator(1).normal((1, 3, 8, 8))

    def velocity(number: int) -> Any:
        return pipe.unet(noise, 1000.0, wg.asarray([number])).numpy()

    [preview] = pipe.steps(1, steps=1, noise=noise, classes=1, guidance=3.0)
    wanted = noise.numpy() - (velocity(2) + 3.0 * (velocity(1) - velocity(2)))
    np.testing.assert_allclose(preview.latents.numpy(), wanted, atol=1e-5)
    assert (pipe(1, steps=2, seed=0) == pipe(1, steps=2, seed=0, classes=2)).all()
    with pytest.raises(wg.ArgumentError, match="knows what no class is"):
        of_classes(2)(1, classes=1, guidance=2.0)
    for net in (pipeline(), pipe):
        with pytest.raises(wg.ArgumentError, match="is for pictures of a class"):
            net(1, guidance=2.0)


def test_what_is_refused_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    class OfOnesOwn(wg.diffusion.DDIM):
        pass

    class Network(wg.diffusion.UNet2D):
        pass

    pipe = pipeline()
    mine = wg.diffusion.Unconditional(Network(pipe.unet.config), pipe.scheduler)
    for each, name in ((pipe.with_scheduler(OfOnesOwn()), "OfOnesOwn"), (mine, "Network")):
        with pytest.raises(wg.ArgumentError, match=f"that diffusers has, and {name} is none"):
            wg.diffusion.save(each, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_saved_folder_gives_the_same_pictures(tmp_path: Path) -> None:
    pipe = of_classes()
    wanted = pipe(2, steps=2, seed=0, classes=[0, 1], guidance=2.0)
    found = load(wg.diffusion.save(pipe, tmp_path / "model"))
    assert found.labels == pipe.labels
    assert found.scheduler == pipe.scheduler
    assert (found(2, steps=2, seed=0, classes=[0, 1], guidance=2.0) == wanted).all()
    (tmp_path / "model" / "unet" / "more.safetensors").write_bytes(b"")
    with pytest.raises(wg.ModelFileError, match="has other weights already"):
        wg.diffusion.save(pipe, tmp_path / "model")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(wg.ModelFileError, match="file"):
        wg.diffusion.save(pipe, tmp_path / "file")
    with pytest.raises(wg.ArgumentError, match="not UNet2D"):
        wg.diffusion.save(pipe.unet, tmp_path / "other")


@pytest.mark.parametrize("labels", [["cat"], {"0": 1}, {"-1": "cat"}, {"cat": "0"}, "cat"])
def test_damaged_names_of_classes_are_an_error_that_names_the_file(labels: Any, tmp_path: Path) -> None:
    folder = wg.diffusion.save(of_classes(), tmp_path / "model")
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps(index | {"id2label": labels}))
    with pytest.raises(wg.ModelFileError, match="model: id2label is no table"):
        load(folder)
