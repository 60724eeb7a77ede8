"""An export as one HTML file, which works from a disk without any server.

In: the files of an export by their names, and the name of its page. Out: the page with its styles, scripts
and data inside: modules become functions in the order of their imports, and every other file base64 in
<script> elements that browsers do not run. Large files are read and written a part at a time.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import webgrad as wg
from webgrad.errors import ArgumentError

__all__ = ["fold", "write_single_file"]

PART = 6 << 20  # bytes of a file in one element: a multiple of 3, so that parts need no filling
SCRIPTS = (".js", ".mjs")
LEFT_OUT = (".html", ".css", ".d.ts", *SCRIPTS)  # what is not data
# Where a folder's page fetches its model, a single file has it inside.
MODEL = """// The model of a single file: its plan and weights are in this page.
import { load } from "./runner.js";
import { readFile, readJson } from "./page_files.js";
const open = async (options = {}) => load({ plan: await readJson("plan.json"), file: readFile }, options);
export { open };
"""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)

IMPORT = re.compile(r'import \{ ([^{}]*) \} from "\./([^"]+)";')
EXPORT = re.compile(r"export \{ ([^{}]*) \};")
POLICY_ELEMENT = re.compile(r'(<meta http-equiv="Content-Security-Policy" content=")[^"]*(">)')
STYLE_ELEMENT = re.compile(r'<link rel="stylesheet" href="\./([^"]+)">')
SCRIPT_ELEMENT = re.compile(r'<script src="\./([^"]+)"></script>')
MODULE_ELEMENT = re.compile(r'<script type="module" src="\./([^"]+)"></script>\n?')
# What would end a script's element, or open a comment in it that swallows its end. In texts and expressions,
# the only places where scripts have these, \x3c is the same.
ENDING = re.compile(r"<(?=/script|script|!--)", re.IGNORECASE)


def fold(files: Mapping[str, bytes | Path], page: str = "index.html") -> Iterator[bytes]:
    """The one HTML file, in parts, of an export's files: each is its bytes, or the path where they are.

    >>> from webgrad.web.single_file import fold
    >>> files = {"index.html": b'<script src="./a.js"></script></body>', "a.js": b"alert(1)"}
    >>> b"".join(fold(files))
    b'<script>alert(1)</script></body>'
    """
    text = POLICY_ELEMENT.sub(rf"\g<1>{POLICY}\g<2>", _text(files, page, "the page"))
    text = STYLE_ELEMENT.sub(lambda found: _style(_text(files, found[1], page)), text)
    text = SCRIPT_ELEMENT.sub(
        lambda found: f"<script>{_harmless(_text(files, found[1], page))}</script>", text
    )
    entries = MODULE_ELEMENT.findall(text)
    before, end, after = MODULE_ELEMENT.sub("", text).rpartition("</body>")
    if not end:
        raise ArgumentError(f"{page} has no </body>, before which a single file's data is put")
    yield before.encode()
    if entries:
        for name in sorted(files):
            if not name.endswith(LEFT_OUT):
                yield from _data(name, files[name])
        sources = {"model.js": MODEL.encode()} if "model.js" in files else {}
        modules = _harmless(_modules({**files, **sources}, entries))
        yield f'<script type="module">\n{modules}</script>\n'.encode()
    yield (end + after).encode()


def write_single_file(files: Mapping[str, bytes | Path], path: Path, page: str = "index.html") -> None:
    """Write the one HTML file of an export's files, whole or not at all."""
    with wg.io.replacing(path) as temporary, temporary.open("wb") as out:
        out.writelines(fold(files, page))


def _text(files: Mapping[str, bytes | Path], name: str, asking: str) -> str:
    if name not in files:
        raise ArgumentError(
            f"{asking} needs {name}, which is not among the files: {', '.join(sorted(files))}"
        )
    given = files[name]
    return (given.read_bytes() if isinstance(given, Path) else given).decode()


def _style(text: str) -> str:
    return "<style>\n" + text.replace("</", "<\\/") + "</style>"


def _harmless(script: str) -> str:
    return ENDING.sub(r"\\x3c", script)


# Data


def _data(name: str, given: bytes | Path) -> Iterator[bytes]:
    """A file as elements of a part each; one that is empty has one."""
    begin = f'<script type="application/octet-stream;base64" data-name="{html.escape(name)}">'.encode()
    for part in _parts(given):
        yield begin
        yield base64.b64encode(part)
        yield b"</script>\n"


def _parts(given: bytes | Path) -> Iterator[bytes]:
    if isinstance(given, bytes):
        yield from (given[start : start + PART] for start in range(0, max(len(given), 1), PART))
        return
    with given.open("rb") as source:
        part = source.read(PART)
        yield part
        while part := source.read(PART):
            yield part


# Modules


def _modules(files: Mapping[str, bytes | Path], entries: Iterable[str]) -> str:
    """All modules as constants that hold their exports, each after those that it imports."""
    done: dict[str, str] = {}
    for entry in entries:
        _add_module(files, entry, done, ())
    return "".join(done.values())


def _add_module(
    files: Mapping[str, bytes | Path], name: str, done: dict[str, str], importers: tuple[str, ...]
) -> None:
    if name in done:
        return
    if name in importers:
        raise ArgumentError(f"modules import each other: {' → '.join((*importers, name))}")
    text = _text(files, name, importers[-1] if importers else "the page")
    for _, imported in IMPORT.findall(text):
        _add_module(files, imported, done, (*importers, name))
    done[name] = _wrapped(name, text)


def _wrapped(name: str, text: str) -> str:
    """A module as a function that is called at once; imports become constants, exports what it returns."""
    lines = [_import_or_line(line) for line in text.rstrip().split("\n")]
    if exported := EXPORT.fullmatch(lines[-1]):
        lines[-1] = f"return {{ {exported[1]} }};"
    for number, line in enumerate(lines, 1):
        if re.match(r"(import|export)\b(?!\()", line) or "import.meta" in line:
            raise ArgumentError(
                f"{name}, line {number}: {line.strip()!r} cannot be in a single file: imports are lines such "
                'as import { a, b } from "./other.js"; and exports one last line export { a, b };'
            )
    return f"const {_variable(name)} = (() => {{\n" + "\n".join(lines) + "\n})();\n"


def _import_or_line(line: str) -> str:
    found = IMPORT.fullmatch(line)
    return f"const {{ {found[1]} }} = {_variable(found[2])};" if found else line


def _variable(name: str) -> str:
    """A module's name as JavaScript's: no two names give the same."""
    return "module_" + re.sub(r"[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", name)
