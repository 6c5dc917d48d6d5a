"""promptfoo's assertions in code: named files, which stay in place, and a new file for expressions of the configuration."""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs

from .._kernel.values.errors import ConfigError
from ..toolkit.yaml.nodes import Place
from .configuration import Folders, read_text

_SUFFIXES = {".py": "python", ".js": "javascript", ".cjs": "javascript", ".mjs": "javascript"}
_ENDINGS = {"python": ".checks.py", "javascript": ".checks.cjs"}
_NEVER = (".ts", ".mts", ".cts", ".rb")
_MEMBERS = "prompt|test|provider|providerResponse|logProbs|config|metadata|trace"
_READS = re.compile(
    rf"\.\s*(?P<member>{_MEMBERS})\b(?!\s*\()|\[\s*['\"](?P<item>{_MEMBERS})['\"]|\.get\(\s*['\"](?P<get>{_MEMBERS})['\"]"
    rf"|\(\s*\w+\s*,\s*\{{[^{{}}]*\b(?P<part>{_MEMBERS})\b"
)
"""Members of promptfoo's context that rows do not have."""

_HEADS = {
    "python": "# Written by dicast init from {name}, a configuration of promptfoo: its assertions in Python.\n# Read it before you trust it.\nimport json\n",
    "javascript": (
        "// Written by dicast init from {name}, a configuration of promptfoo: its assertions in JavaScript.\n"
        "// Read it before you trust it.\n"
        "const shim = new Proxy(process, { get: (own, name) => (name === 'mainModule' ? { require } : Reflect.get(own, name)) });\n"
        "const compiled = (body) => (output, context) => new Function('output', 'context', 'process', body)(output, context, shim);\n"
    ),
}


@attrs.define
class CodeFiles:
    """The code of the configuration *name* for the pipeline *out*.

    *functions* has the name of the function for each expression, by language; *files* has the named files.
    """

    folders: Folders
    out: Path
    name: str
    functions: dict[str, dict[str, str]] = attrs.field(factory=lambda: {"python": {}, "javascript": {}})
    files: dict[str, None] = attrs.field(factory=dict)

    def language(self, source: str) -> str | None:
        """Return the language of the file that *source* names, ``other`` for a language that dicast cannot call, None for files without code."""
        return _SUFFIXES.get(Path(_parts(source)[0]).suffix) or (
            "other" if Path(_parts(source)[0]).suffix in _NEVER else None
        )

    def file(self, language: str, source: str, place: Place) -> dict[str, str]:
        """Return the options of a check for the function that ``file://PATH:FUNCTION`` names.

        :raises ConfigError: if dicast cannot call the file, or it reads data that rows do not have.
        """
        name, function = _parts(source)
        path = self.folders.path(name, place)
        if self.language(name) != language:
            raise ConfigError(f"{name} is no file of {language} that dicast can call")
        _check(read_text(path))
        target = os.path.relpath(path.absolute(), self.out.absolute().parent)
        self.files[target] = None
        function = function or ("get_assert" if language == "python" else "")
        return {"file": target, **({"function": function} if function else {})}

    def inline(self, language: str, source: str) -> dict[str, str]:
        """Return the options of a check for the expression or body *source*, which becomes a function.

        :raises ConfigError: if it is not code, or reads data that rows do not have.
        """
        _check(source)
        text = source.rstrip()
        functions = self.functions[language]
        if text not in functions:
            name = f"assert_{len(functions) + 1}"
            if language == "python":
                _compiled(_python(name, text))
            functions[text] = name
        return {"file": self._target(language).name, "function": functions[text]}

    def written(self) -> dict[Path, str]:
        """Return the texts of the new files with the functions of expressions, by path."""
        write = {"python": _python, "javascript": _javascript}
        texts = {}
        for language, functions in self.functions.items():
            if functions:
                parts = [write[language](name, text) for text, name in functions.items()]
                texts[self._target(language)] = "\n".join([_HEADS[language].replace("{name}", self.name), *parts])
        return texts

    def names(self) -> list[str]:
        """Return all files of code, relative to the pipeline."""
        generated = [self._target(language).name for language, functions in self.functions.items() if functions]
        return [*generated, *self.files]

    def _target(self, language: str) -> Path:
        return self.out.with_name(f"{self.out.name.partition('.')[0]}{_ENDINGS[language]}")


def _parts(source: str) -> tuple[str, str]:
    """Return the path and the function of ``file://PATH:FUNCTION``."""
    path, _, function = source.removeprefix("file://").partition(":")
    return path, function


def _check(text: str) -> None:
    """Check that the code *text* reads only data that rows have.

    :raises ConfigError: if it reads another part of promptfoo's context.
    """
    match = _READS.search(text)
    if match is not None:
        member = next(filter(None, match.groups()))
        raise ConfigError(f"its code reads {member} of promptfoo's context; rows have vars alone")


def _compiled(text: str) -> None:
    """Check that *text* is Python.

    :raises ConfigError: with the syntax error.
    """
    try:
        compile(text, "assertion", "exec")
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"it is not Python: {error}") from error


def _python(name: str, text: str) -> str:
    body = "\n".join(f"    {line}" for line in text.split("\n")) if "\n" in text else f"    return {text}"
    return f"\ndef {name}(output, context):\n{body}\n"


def _javascript(name: str, text: str) -> str:
    """Return an export that compiles its code when it is called, so that a syntax error fails only this function."""
    body = text if "\n" in text else _body(text)
    literal = re.sub(r"[\\`]|\$(?=\{)", r"\\\g<0>", body)
    return f"exports.{name} = compiled(`\n{literal}\n`);\n"


def _body(text: str) -> str:
    """Return the function body of an expression, which may follow declarations, as promptfoo makes it."""
    trimmed = re.sub(r";+\s*$", "", text.strip())
    if not re.match(r"(const|let|var)\s", trimmed):
        return f"return {trimmed}"
    end = _last_semicolon(trimmed)
    expression = trimmed[end + 1 :].strip()
    return f"{trimmed[: end + 1]} return {expression}" if end >= 0 and expression else trimmed


def _last_semicolon(code: str) -> int:
    """Return the index of the last semicolon outside of quotes, -1 without one."""
    last, quote, is_escaped = -1, "", False
    for place, letter in enumerate(code):
        if letter in "'\"`" and not is_escaped:
            quote = "" if quote == letter else quote or letter
        if letter == ";" and not quote:
            last = place
        is_escaped = letter == "\\" and not is_escaped
    return last
