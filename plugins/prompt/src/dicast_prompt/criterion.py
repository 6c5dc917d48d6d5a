"""Templates of a criterion as options: inline, or in a file."""

from __future__ import annotations

import attrs

from dicast import ConfigError, InputPath
from dicast.toolkit.files import read_text


@attrs.frozen
class TemplateFile:
    """A template in its own *file*."""

    file: InputPath


def _text(source: str | TemplateFile | None) -> str | None:
    """Return the template's text. A file's content belongs to the component, so that a changed file changes its fingerprint."""
    if not isinstance(source, TemplateFile):
        return source
    try:
        text = read_text(source.file, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source.file.name} is not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"cannot read {source.file.name}: {error.strerror or error}") from error
    _check(text, source.file.name)
    return text


def _check_template(owner: object, attribute: attrs.Attribute[str | None], text: str | None) -> None:
    if text is not None:
        _check(text, f"the template {attribute.name}")


def _check(text: str, place: str) -> None:
    if not text.strip():
        raise ConfigError(f"{place} is blank; leave it out, or say what is to be asked")
    # Importing Jinja2 is slow, and only tasks need it.
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
    """Templates of one criterion; a missing template is the task's."""

    system: str | None = template()
    user: str | None = template()
