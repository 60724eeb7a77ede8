"""Settings: parsing, precedence, messages, and the table in docs/configuration.md."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from webgrad import config
from webgrad.config import (
    LEVELS,
    OPTIONS,
    MemoryBudget,
    Settings,
    cache_path,
    config_path,
    load_settings,
    unknown_variables,
)
from webgrad.errors import ConfigError

EXAMPLES: dict[
    str, tuple[object, str, object]
] = {  # option → (TOML value as text, variable's text, both mean)
    "device": ('"webgpu:1"', "webgpu:1", "webgpu:1"),
    "disable_backends": ('["OpenGL", "dx12"]', "opengl, DX12", frozenset({"opengl", "dx12"})),
    "disable_devices": ('[1, "llvmpipe"]', "1,llvmpipe", ("1", "llvmpipe")),
    "debug": ('["ir", "wgsl"]', "wgsl,ir", frozenset({"ir", "wgsl"})),
    "dump": ('"texts"', "texts", Path("texts")),
    "checks": ("true", "1", True),
    "memory": ('"4GiB"', "4 GiB", MemoryBudget(bytes=4 * 2**30)),
    "in_flight": ("2", "2", 2),
    "queue": ("100", "100", 100),
    "encoder": ('"plain"', "plain", "plain"),
    "profile": ('"navi31"', "NAVI31", "navi31"),
    "immediates": ("false", "off", False),
    "disable_features": ('["f16"]', "f16", frozenset({"f16"})),
    "graph": ("500", "500", 500),
    "graph_memory": ('"1GiB"', "1GiB", MemoryBudget(bytes=1 << 30)),
    "fuse": ("false", "0", False),
    "tune": ("true", "1", True),
    "native": ("false", "0", False),
    "compile": ('"always"', "Always", "always"),
    "processor": ('"x86-64-v3"', "X86-64-V3", "x86-64-v3"),
    "native_cache": ('"1MiB"', "1048576", 1 << 20),
    "cache": ('"kept/here"', "kept/here", Path("kept/here")),
}
WRONG: dict[str, tuple[str, str]] = {  # option → (TOML value, variable's text)
    "device": ("3", "  "),
    "disable_backends": ('["vulcan"]', "vulcan"),
    "disable_devices": ("[true]", ""),
    "debug": ('["everything"]', "1"),
    "dump": ("7", " "),
    "checks": ('"maybe"', "7"),
    "memory": ('"many"', "120%"),
    "in_flight": ("0", "three"),
    "queue": ("true", "0"),
    "encoder": ('"quick"', "quick"),
    "profile": ('"voodoo2"', "8086"),
    "immediates": ("2", "2"),
    "disable_features": ('"f17"', "f17"),
    "graph": ("0", "many"),
    "graph_memory": ('"many"', "120%"),
    "fuse": ('"maybe"', "2"),
    "tune": ('"sometimes"', "2"),
    "native": ('"sometimes"', "2"),
    "compile": ('"never"', "1"),
    "processor": ('"8086"', "x86-64-v1"),
    "native_cache": ("false", "50%"),
    "cache": ("3", "  "),
}


def write(folder: Path, text: str) -> dict[str, str]:
    path = folder / "webgrad.toml"
    path.write_text(text, encoding="utf-8")
    return {"WEBGRAD_CONFIG": str(path)}


def test_every_option_is_a_field_and_every_field_an_option() -> None:
    fields = {field.name for field in dataclasses.fields(Settings)} - {"path", "sources"}
    assert fields == {option.name for option in OPTIONS} == set(EXAMPLES) == set(WRONG)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_is_read_from_the_file_and_from_its_variable(option: config.Option, tmp_path: Path) -> None:
    in_file, in_variable, meaning = EXAMPLES[option.name]
    environ = write(tmp_path, f"{option.name} = {in_file}\n")
    from_file = load_settings(environ)
    assert getattr(from_file, option.name) == meaning
    assert from_file.source(option.name) == f"{tmp_path / 'webgrad.toml'}:{option.name}"
    from_variable = load_settings({option.variable: in_variable}, home=tmp_path)
    assert getattr(from_variable, option.name) == meaning
    assert from_variable.source(option.name) == option.variable


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_a_wrong_value_names_its_place_and_what_is_allowed(option: config.Option, tmp_path: Path) -> None:
    in_file, in_variable = WRONG[option.name]
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path, f"{option.name} = {in_file}\n"))
    assert f"webgrad.toml:{option.name}: " in str(caught.value)
    assert option.allowed.replace("`", "") in str(caught.value)
    if in_variable:
        with pytest.raises(ConfigError, match=option.variable):
            load_settings({option.variable: in_variable}, home=tmp_path)


@pytest.mark.parametrize(("text", "size"), [("0", 0), (" 0 ", 0), ("1", 1), ("2kB", 2000), ("2 KiB", 2048)])
def test_sizes_may_be_nothing(text: str, size: int, tmp_path: Path) -> None:
    assert load_settings({"WEBGRAD_NATIVE_CACHE": text}, home=tmp_path).native_cache == size


def test_a_variable_goes_before_the_file_and_an_empty_one_does_not(tmp_path: Path) -> None:
    environ = write(tmp_path, 'device = "cpu"\nin_flight = 5\n')
    both = load_settings(environ | {"WEBGRAD_DEVICE": "webgpu", "WEBGRAD_IN_FLIGHT": ""})
    assert (both.device, both.source("device")) == ("webgpu", "WEBGRAD_DEVICE")
    assert both.in_flight == 5
    assert both.source("queue") == "default"


def test_without_a_file_everything_is_default(tmp_path: Path) -> None:
    assert load_settings({}, home=tmp_path) == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("devise = 'cpu'", "there is no such option; did you mean device?"),
        ("zzz = 1", "the options are cache, checks, compile, debug, "),
        ("device = ", "is not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_understood(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(write(tmp_path, text))


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"WEBGRAD_CONFIG names .*none.toml, and there is no such file"):
        load_settings({"WEBGRAD_CONFIG": str(tmp_path / "none.toml")})


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings({"WEBGRAD_CONFIG": str(tmp_path)})


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, "home/.config/webgrad/webgrad.toml"),
        ("linux", {"XDG_CONFIG_HOME": "xdg"}, "xdg/webgrad/webgrad.toml"),
        ("darwin", {"XDG_CONFIG_HOME": "xdg"}, "home/Library/Application Support/webgrad/webgrad.toml"),
        ("win32", {}, "home/AppData/Roaming/webgrad/webgrad.toml"),
        ("win32", {"APPDATA": "roaming"}, "roaming/webgrad/webgrad.toml"),
        ("linux", {"WEBGRAD_CONFIG": "own.toml"}, "own.toml"),
    ],
)
def test_where_the_file_is(platform: str, environ: dict[str, str], expected: str) -> None:
    assert config_path(environ, platform, Path("home")) == Path(expected)


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, "home/.cache/webgrad"),
        ("linux", {"XDG_CACHE_HOME": "xdg"}, "xdg/webgrad"),
        ("darwin", {"XDG_CACHE_HOME": "xdg"}, "home/Library/Caches/webgrad"),
        ("win32", {}, "home/AppData/Local/webgrad/Cache"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/webgrad/Cache"),
    ],
)
def test_where_the_cache_is(platform: str, environ: dict[str, str], expected: str) -> None:
    assert cache_path(environ, platform, Path("home")) == Path(expected)


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert cache_path({}, "linux") is None


def test_a_cache_in_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert load_settings({"WEBGRAD_CACHE": "~/kept"}, home=tmp_path).cache == tmp_path / "kept"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000", MemoryBudget(bytes=1000)),
        ("1.5k", MemoryBudget(bytes=1536)),
        ("2MB", MemoryBudget(bytes=2_000_000)),
        ("3 gib", MemoryBudget(bytes=3 * 2**30)),
        ("50%", MemoryBudget(fraction=0.5)),
    ],
)
def test_memory_budgets(text: str, expected: MemoryBudget) -> None:
    assert load_settings({"WEBGRAD_MEMORY": text}, home=Path("nowhere")).memory == expected


def test_a_budget_in_bytes() -> None:
    assert MemoryBudget(bytes=5).of(100) == 5
    assert MemoryBudget(fraction=0.25).of(100) == 25
    assert str(MemoryBudget(fraction=0.25)) == "25%"


@pytest.mark.parametrize("text", ["0", "-1", "1 parsec", "0%", "101%", "GiB", "1e3", "9" * 400])
def test_budgets_that_make_no_sense(text: str) -> None:
    with pytest.raises(ConfigError, match="WEBGRAD_MEMORY"):
        load_settings({"WEBGRAD_MEMORY": text}, home=Path("nowhere"))


def test_settings_are_kept_until_reload(clean_environment: pytest.MonkeyPatch) -> None:
    first = config.settings()
    clean_environment.setenv("WEBGRAD_CHECKS", "1")
    assert config.settings() is first
    assert config.reload().checks
    assert config.settings().checks


def test_debug_takes_levels_and_says_where_checks_are() -> None:
    assert load_settings({"WEBGRAD_DEBUG": "all"}, home=Path("nowhere")).debug == set(LEVELS)
    assert load_settings({"WEBGRAD_DEBUG": "Memory, tune"}, home=Path("nowhere")).debug == {"memory", "tune"}
    with pytest.raises(ConfigError) as caught:
        load_settings({"WEBGRAD_DEBUG": "1"}, home=Path("nowhere"))
    assert "schedule, ir, wgsl" in str(caught.value)
    assert "WEBGRAD_CHECKS" in str(caught.value)


def test_variables_that_mean_nothing_are_found() -> None:
    environ = {"WEBGRAD_DEVISE": "", "WEBGRAD_DEVICE": "", "HOME": "", "WEBGRAD_CONFIG": "", "WEBGRAD_QQ": ""}
    assert unknown_variables(environ) == (("WEBGRAD_DEVISE", "WEBGRAD_DEVICE"), ("WEBGRAD_QQ", ""))


def test_settings_are_hashable() -> None:
    assert hash(Settings()) == hash(Settings())
