"""Pages that paint give in a browser what their pipelines give in Python, for the same seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers

import webgrad as wg
from scripts.npm import FOLDER
from tests.documents import blocks_of
from tests.missing import need_package
from tests.onnx.tfjs import unet
from tests.pages import DrivenBrowser
from tests.web.test_models import called, opened
from webgrad.diffusion.autoencoders import AutoencoderKL, AutoencoderKLConfig
from webgrad.diffusion.prompts import Prompts
from webgrad.diffusion.text_encoders import CLIPText, CLIPTextConfig
from webgrad.web.painting import export_diffusion
from webgrad.web.server import serving

pytestmark = pytest.mark.web

TOLERANCE = 1e-3
# What the page's own module makes of options, without its elements.
PAINT = """async (options) => {
  const from = (name) => import(new URL(name, location.href).href);
  const [{ open }, { paint }] = [await from("./model.js"), await from("./painting.js")];
  const read = async (name) => (await fetch(name)).json();
  const facts = await read("page.json");
  const { makeTokenizer } = await from("./tokenizer.js");
  const encoders = facts.texts?.encoders ?? [];
  const made = encoders.map(async (each) => makeTokenizer(await read(each.tokenizer)));
  const tokenizers = await Promise.all(made);
  const model = await open();
  const layout = facts.layouts.find((each) => each.count === options.count);
  const shown = [];
  for await (const { step, pictures } of paint(model, facts, tokenizers, { ...options, layout }))
    shown.push([step, pictures && [...pictures.data], pictures && pictures.shape]);
  model.close();
  return shown;
}"""


def classes(**more: Any) -> wg.diffusion.Unconditional:
    """A small pipeline of two classes and none, whose sampler takes several steps of noise."""
    wg.random.seed(4)
    config = wg.diffusion.UNet2DConfig(
        sample_size=12,
        in_channels=1,
        out_channels=1,
        block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        norm_num_groups=4,
        **more,
    )
    labels = ["cat", "dog"] if more else []
    return wg.diffusion.Unconditional(wg.diffusion.UNet2D(config).eval(), wg.diffusion.FlowMatching(), labels)


def prompts(folder: Path) -> Prompts:
    """CLIP's kind of a tokenizer with a few merges."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = [("c", "a"), ("ca", "t</w>"), ("d", "o"), ("do", "g</w>"), ("a", "n</w>"), ("'", "s</w>")]
    tokens = [*letters, *(f"{each}</w>" for each in letters), *(left + right for left, right in merges)]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    folder.mkdir()
    text = json.dumps({token: number for number, token in enumerate(tokens)})
    (folder / "vocab.json").write_text(text, encoding="utf-8")
    lines = ["#version: 0.2", *map(" ".join, merges), ""]
    (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    return Prompts.from_folder(folder, 20)


def autoencoder() -> AutoencoderKL:
    """A small one, that halves pictures' sides."""
    config = AutoencoderKLConfig(
        block_out_channels=(8, 8),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
    )
    return AutoencoderKL(config).eval()


def texts(folder: Path, **more: Any) -> wg.diffusion.StableDiffusion:
    """A small pipeline of the class of Stable Diffusion."""
    wg.random.seed(5)
    tokens = prompts(folder)
    settings: Any = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 20,
        "vocab_size": tokens.end + 1,
        "eos_token_id": tokens.end,
    }
    encoder = CLIPText(CLIPTextConfig(**settings))
    config = wg.diffusion.UNet2DConditionConfig(
        sample_size=8,
        block_out_channels=(8, 16),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        layers_per_block=1,
        norm_num_groups=4,
        attention_head_dim=2,
        cross_attention_dim=16,
        **more,
    )
    network = wg.diffusion.UNet2DCondition(config).eval()
    scheduler = wg.diffusion.EulerAncestral(timestep_spacing="leading", steps_offset=1)
    pair = (tokens, encoder.eval())
    return wg.diffusion.StableDiffusion(network, autoencoder(), [pair], scheduler)


def check(found: list[Any], expected: list[Any]) -> None:
    """Each shown picture is the pipeline's, on the scale from -1 to 1."""
    assert [step for step, _, _ in found] == [each.step for each in expected]
    for (_, data, shape), preview in zip(found, expected, strict=True):
        if data is not None:
            values = preview.pipeline.decoded(preview.latents).numpy()
            np.testing.assert_allclose(np.reshape(data, shape), values, rtol=0, atol=TOLERANCE)


def test_classes_with_guidance(any_browser: DrivenBrowser, tmp_path: Path) -> None:
    pipe = classes(num_class_embeds=3)
    export_diffusion(pipe, tmp_path, counts=(3,))
    asked: Any = {"steps": 4, "seed": 2**40 + 7, "guidance": 2.5, "classes": [0, 1, 2]}
    found = called(any_browser, tmp_path, PAINT, {**asked, "count": 3, "every": 2})
    assert [data is None for _, data, _ in found] == [True, False, True, False]
    check(found, list(pipe.steps(3, **asked)))


def test_noise_at_each_step(browser: DrivenBrowser, tmp_path: Path) -> None:
    pipe = classes().with_scheduler(wg.diffusion.DDPM())
    export_diffusion(pipe, tmp_path, counts=(2,), sizes=[(8, 16)])
    found = called(browser, tmp_path, PAINT, {"steps": 4, "seed": 5, "count": 2, "every": 1})
    check(found, list(pipe.steps(2, steps=4, seed=5, size=(8, 16))))


def test_what_several_steps_before_predicted(browser: DrivenBrowser, tmp_path: Path) -> None:
    pipe = classes().with_scheduler(wg.diffusion.PNDM())
    export_diffusion(pipe, tmp_path, counts=(1,))
    found = called(browser, tmp_path, PAINT, {"steps": 8, "seed": 5, "count": 1, "every": 3})
    check(found, list(pipe.steps(1, steps=8, seed=5)))


def test_classes_in_latents(browser: DrivenBrowser, tmp_path: Path) -> None:
    wg.random.seed(6)
    transformer = wg.diffusion.DiTTransformer(
        wg.diffusion.DiTTransformerConfig(
            num_attention_heads=2,
            attention_head_dim=8,
            in_channels=4,
            out_channels=8,
            num_layers=2,
            sample_size=8,
            num_embeds_ada_norm=3,
        )
    )
    pipe = wg.diffusion.ClassConditional(transformer.eval(), autoencoder(), labels={1: "boot"})
    export_diffusion(pipe, tmp_path, counts=(2,))
    asked: Any = {"steps": 2, "seed": 8, "guidance": 3.0, "classes": [1, 2]}
    found = called(browser, tmp_path, PAINT, {**asked, "count": 2, "every": 1})
    check(found, list(pipe.steps(2, **asked)))


def test_a_graph_of_tensorflow(browser: DrivenBrowser, tmp_path: Path) -> None:
    folder = unet(tmp_path / "model")
    (folder / "scheduler_config.json").write_text('{"_class_name": "DDIMScheduler"}')
    pipe = wg.diffusion.load(folder)
    export_diffusion(pipe, tmp_path / "page", counts=(2,))
    found = called(browser, tmp_path / "page", PAINT, {"steps": 4, "seed": 8, "count": 2, "every": 4})
    check(found, list(pipe.steps(2, steps=4, seed=8)))


def test_texts_with_guidance(any_browser: DrivenBrowser, tmp_path: Path) -> None:
    pipe = texts(tmp_path / "tokens", time_cond_proj_dim=8)
    export_diffusion(pipe, tmp_path / "page", counts=(2,))
    prompt, negative = "a CAT and\n an  dog's 12 é! <|endoftext|> 日本", "cat dog " * 20
    asked: Any = {"steps": 4, "seed": 3, "guidance": 5.0, "negative": negative}
    options = {**asked, "prompt": prompt, "count": 2, "every": 1}
    found = called(any_browser, tmp_path / "page", PAINT, options)
    check(found, list(pipe.steps([prompt, prompt], **asked)))


def test_texts_without_guidance(browser: DrivenBrowser, tmp_path: Path) -> None:
    pipe = texts(tmp_path / "tokens").with_scheduler(wg.diffusion.LCM())
    export_diffusion(pipe, tmp_path / "page", sizes=[(16, 32)])
    options = {
        "steps": 4,
        "seed": 3,
        "prompt": "dog",
        "negative": "",
        "guidance": None,
        "count": 1,
        "every": 9,
    }
    found = called(browser, tmp_path / "page", PAINT, options)
    assert [data is None for _, data, _ in found] == [True, True, True, False]
    check(found, list(pipe.steps("dog", steps=4, seed=3, guidance=1.0, size=(16, 32))))


SHOWN = """(() => { const shown = document.getElementById("painting");
const { data } = shown.getContext("2d").getImageData(0, 0, shown.width, shown.height);
return [shown.height, shown.width, [...data]]; })()"""


def painted(page: Any, **controls: Any) -> np.ndarray[Any, Any]:
    """The page's picture, in bytes, after its controls were set and it has painted."""
    for name, value in controls.items():
        page.evaluate(f"document.getElementById({name!r}).value = {json.dumps(str(value))}")
    page.click("#paint")
    page.wait_for("document.getElementById('stop').disabled && !document.getElementById('painting').hidden")
    height, width, data = page.evaluate(SHOWN)
    return np.asarray(data, np.uint8).reshape(height, width, 4)


@pytest.mark.parametrize("single_file", [False, True])
def test_the_page_paints(any_browser: DrivenBrowser, tmp_path: Path, single_file: bool) -> None:
    pipe = classes(num_class_embeds=3)
    shown = export_diffusion(pipe, tmp_path, counts=(1, 3), name="Pets", single_file=single_file)
    wanted = pipe(3, classes=[0, 1, 0], guidance=3.0, steps=4, seed=9)
    sheet = np.zeros((24, 24), np.uint8)
    sheet[:12, :12], sheet[:12, 12:], sheet[12:, :12] = wanted[:, :, :, 0]
    with serving(tmp_path) as address:
        page = opened(any_browser, shown.as_uri() if single_file else address)
        assert page.text("h1") == "Pets"
        found = painted(page, layout=1, steps=4, guidance=3, seed=9)
        assert np.abs(found[:, :, 0].astype(int) - sheet).max() <= 1
        assert (found[:, :, 0] == found[:, :, 2]).all()
        label = page.evaluate(
            "document.getElementById('painting').ariaLabel ?? painting.getAttribute('aria-label')"
        )
        assert label == "3 pictures, class: each in turn, seed 9"
        assert page.text("#working").startswith("4 steps · seed 9")
        alone = painted(page, **{"layout": 0, "class": 1})
        assert alone.shape == (12, 12, 4)
        assert page.evaluate("document.getElementById('seed').value") != "9"
        assert page.errors() == []


def test_stop_leaves_what_there_is(browser: DrivenBrowser, tmp_path: Path) -> None:
    export_diffusion(classes(), tmp_path, counts=(1,))
    with serving(tmp_path) as address:
        page = opened(browser, address)
        page.evaluate("document.getElementById('steps').value = '50'")
        page.evaluate("document.getElementById('every').value = '100000'")
        page.click("#paint")
        page.wait_for("document.getElementById('working').textContent.startsWith('step 2')")
        page.press("Escape")
        page.wait_for("document.getElementById('stop').disabled")
        assert page.text("#working").startswith("stopped after step ")
        assert not page.evaluate("document.getElementById('painting').hidden")
        assert page.evaluate(
            "!document.getElementById('paint').disabled && !document.getElementById('save').disabled"
        )
        assert page.errors() == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_nothing_keeps_anybody_out(
    browser: Any, tmp_path: Path, width: int, dark: bool, pytestconfig: pytest.Config
) -> None:
    """axe-core's rules, before and after something is painted."""
    need_package(pytestconfig, "axe-core")
    export_diffusion(classes(num_class_embeds=3), tmp_path, counts=(1, 4))
    with serving(tmp_path) as address:
        page = browser.page(width, 800, dark=dark)
        page.open(address)
        page.wait_for("document.body.dataset.state === 'ready'")
        page.evaluate((FOLDER / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8") + ";1")
        for act in (lambda: None, lambda: painted(page, steps=2)):
            act()
            faults = page.evaluate("axe.run().then(({ violations }) => violations.map(({ id }) => id))")
            assert faults == []
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_loop_of_the_documentation(browser: DrivenBrowser, tmp_path: Path) -> None:
    """docs/browser.md: painting in a page of one's own."""
    _, block = (each for each in blocks_of("docs/browser.md") if each.language == "js")
    pipe = classes(num_class_embeds=11)
    pipe = wg.diffusion.Unconditional(pipe.unet, pipe.scheduler, [f"class {at}" for at in range(10)])
    export_diffusion(pipe, tmp_path, counts=(1,))
    (tmp_path / "mine.js").write_text(
        f"console.log = (...words) => told.push(words);\n{block.text}told.push(0);"
    )
    text = "<!doctype html><script>const told = [];</script><script type=module src=mine.js></script>"
    (tmp_path / "mine.html").write_text(text, encoding="utf-8")
    with serving(tmp_path) as address:
        page = browser.page()
        page.open(f"{address}mine.html")
        page.wait_for("told.at(-1) === 0")
        assert page.evaluate("told") == [[5, 12], [10, 12], [15, 12], 0]


def test_what_has_no_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wg.ArgumentError, match="there is no page for a UNet2D, only for Unconditional"):
        export_diffusion(classes().unet, tmp_path)
    with pytest.raises(wg.ArgumentError, match="knows what no class is"):
        export_diffusion(classes(), tmp_path, guidance=2.0)
    with pytest.raises(
        wg.ArgumentError, match="no page for networks that fill holes of pictures, which take 9"
    ):
        export_diffusion(texts(tmp_path / "tokens", in_channels=9), tmp_path)
    for much in (0.5, float("nan"), float("inf"), 1001.0):
        with pytest.raises(wg.ArgumentError, match=f"guidance is a number from 1 to 1000, not {much}"):
            export_diffusion(classes(num_class_embeds=3), tmp_path, guidance=much)
    with pytest.raises(wg.ArgumentError, match="class_embed_type='timestep'"):
        export_diffusion(classes(class_embed_type="timestep"), tmp_path)
