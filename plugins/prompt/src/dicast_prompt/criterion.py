"""The templates of a criterion as options: inline, or in a file."""

from __future__ import annotations

import attrs

from dicast import ConfigError, InputPath
from dicast.toolkit.files import read_text


@attrs.frozen
class TemplateFile:
    """A template in a *file* of its own."""

    file: InputPath


def _text(given: str | TemplateFile | None) -> str | None:
    """The template's text: what a file holds belongs to the component, so that a changed file is another one."""
    if not isinstance(given, TemplateFile):
        return given
    try:
        text = read_text(given.file, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{given.file.name} is not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"cannot read {given.file.name}: {error.strerror or error}") from error
    _check(text, given.file.name)
    return text


def _check_template(owner: object, attribute: attrs.Attribute[str | None], text: str | None) -> None:
    if text is not None:
        _check(text, f"the template {attribute.name}")


def _check(text: str, place: str) -> None:
    if not text.strip():
        raise ConfigError(f"{place} is blank; leave it out, or say what is to be asked")
    # Jinja2 takes a while to import, and only tasks need it.
    from .template import Template

    Template.of(text, place)


def template() -> str | None:
    """Return a field for a template: text, or a file with the text; None by default."""
    template: str | None = attrs.field(
        default=None, converter=_text, validator=_check_template, metadata={"takes": str | TemplateFile | None}
    )
    return template


@attrs.frozen
class Criterion:
    """The templates of one criterion; a missing one is the task's."""

    system: str | None = template()
    user: str | None = template()
