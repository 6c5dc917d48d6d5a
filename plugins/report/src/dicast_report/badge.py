"""Sink that draws a badge of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

import attrs

from dicast import DataError, Event, RunContext, nearest
from dicast.reporting import criteria, current_document, figure, gate_answer
from dicast.toolkit.atomic_file import AtomicFile, output_path
from dicast.toolkit.printable import one_line

from .markdown import ENDS

_COLORS = {"passed": "#1a7f37", "failed": "#cf222e", "undecided": "#7d5400", "none": "#424a53"}
"""Background colors that give white text a contrast of at least 4.5 to 1 (WCAG 2.1, 1.4.3)."""
_LONGEST = 60
_WIDE = 7.0
"""Width of a letter at 11 px, except the widest letters; ``textLength`` enforces it for any font."""


@attrs.frozen
class Badge:
    """A small SVG picture of the gate's answer, or of a label's mean, in the color of the gate's answer.

    Its title and its ``aria-label`` have the same words. It has neither script nor link, and loads nothing.

    :param path: the file to write; missing folders are created.
    :param on: the figure to show: ``gate`` (``passed``, ``failed``, ``undecided``, or ``no gate`` for a pipeline without one), ``score`` (the run's mean, or
        ``2 labels`` for a pipeline with several labels and none named for its score), or the label of a metric or judge, whose mean it shows. A criterion
        needs a clause of the gate or ``stats/score_stats`` for its mean.
    :param text: the text before the figure; the run's name by default.
    :param base_path: a folder that must contain *path*, links resolved; any by default.
    """

    name = "badge"
    wants = ("run.started", *ENDS)
    rewrites = True

    path: Path = attrs.field(converter=Path)
    on: str = "gate"
    text: str | None = None
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    @property
    def label_options(self) -> Mapping[str, Sequence[str]]:
        """Return the option that names the label to show; empty for the gate and the score."""
        return {} if self.on in ("gate", "score") else {"on": (self.on,)}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[BadgeFile]:
        """Create the file's folder and yield the writer. Paths are relative to the pipeline's folder.

        :raises ConfigError: when the file cannot be written, or is outside *base_path*.
        """
        file = partial(AtomicFile, output_path(run.base, self.path, self.base_path), run=run.run_id)
        file().discard()
        yield BadgeFile(file, self.on, self.text)


class BadgeFile:
    """Writer of the picture."""

    def __init__(self, file: Callable[[], AtomicFile], on: str, text: str | None) -> None:
        self._file, self._on, self._text = file, on, text
        self._drawn: str | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Read *events*; the last event of a run has its document.

        :raises DataError: when the run does not have the label to show.
        """
        for event in events:
            if event.type in ENDS:
                done = current_document(event.payload)
                title = self._text or str(done["name"])
                self._drawn = badge(title, badge_text(done, self._on), _COLORS[_color(done)])
        return sum(event.type in ENDS for event in events)

    def close(self) -> int:
        """Write the file. A run without an end leaves no file. May be repeated after an error."""
        if self._drawn is not None:
            with self._file() as file:
                file.write(self._drawn.encode())
                file.commit()
            self._drawn = None
        return 0


def _color(done: Mapping[str, Any]) -> str:
    return "undecided" if done["undecided"] else gate_answer(done["gate"])


def badge_text(done: Mapping[str, Any], on: str) -> str:
    """Return the text of *on* in the document *done*.

    :raises DataError: when the document has no such label.
    """
    if on == "gate" and done["gate"] is not None:
        return gate_answer(done["gate"])
    if on == "gate":
        return "undecided" if done["undecided"] else "no gate"
    score = done["score"]
    if on == "score" and score is None and len(done["labels"]) > 1:
        return f"{len(done['labels'])} labels"
    if on == "score" or (score is not None and on == score["label"]):
        return _mean(score or {})
    labels = {**done["metrics"], **done["labels"], **criteria(done)}
    if on not in labels:
        hint = nearest(on, ["gate", "score", *labels])
        suggestion = f", did you mean {hint!r}?" if hint else ""
        raise DataError(
            f"report/badge: on is {on!r}, but the run has only gate, score, {', '.join(labels)}{suggestion}"
        )
    return _mean(labels[on])


def _mean(figures: Mapping[str, Any]) -> str:
    scale = " (raw scale)" if figures.get("scale") == "raw" else ""
    return figure(figures.get("mean")) + scale


def badge(left: str, right: str, color: str) -> str:
    """Return the picture: *left* on gray, *right* on *color*."""
    left, right = (_cut(one_line(text)) for text in (left, right))
    words = escape(f"{left}: {right}", {'"': "&quot;"})
    first, second = (round(_letters(text) * _WIDE) for text in (left, right))
    width = first + second + 40
    texts = (
        f'<text x="{start}" y="14" textLength="{length}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
        for text, start, length in ((left, 10, first), (right, first + 30, second))
        if length
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{words}">',
            f"<title>{words}</title>",
            f'<rect width="{width}" height="20" rx="3" fill="#424a53"/>',
            f'<path d="M{first + 20} 0h{second + 17}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{second + 17}z" fill="{color}"/>',
            '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">',
            *texts,
            "</g>",
            "</svg>\n",
        )
    )


def _letters(text: str) -> int:
    """Return the width of *text* in letters. East Asian letters and emoji count twice."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _cut(text: str) -> str:
    text = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
