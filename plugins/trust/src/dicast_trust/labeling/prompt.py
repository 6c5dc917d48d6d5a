"""Prompt that asks a person at a terminal for labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs
import click

from dicast.toolkit.gold import GoldLabel

from ..labels.choosing import Judged

KEYS = "y pass  n fail  t tie  = score  s skip  u undo  q quit  ? help"
HELP = (
    "y or 1: good (score 1)",
    "n or 0: not good (score 0)",
    "t: a tie, or half good (score 0.5)",
    "=: type a score from 0 to 1, and Enter",
    "s: skip the subject, for example if it cannot be decided",
    "u: undo: ask about the previous subject again; a label is recorded once the next label is typed",
    "q, Ctrl-C or Ctrl-D: quit; the labels so far are recorded",
)
_SCORES = {"y": 1.0, "1": 1.0, "n": 0.0, "0": 0.0, "t": 0.5}
_ENDS = ("q", "\x03", "\x04")


@attrs.frozen
class Prompt:
    """Prompt that shows subjects one after the other, and asks for the label of each.

    :param show: returns the lines to show of a subject.
    :param key: reads one key; :param line: shows a prompt and reads a line; :param say: prints a line.
    :param enough: called after each label with all labels so far; returns a message, which is printed, if they suffice.
    """

    labeller: str
    show: Callable[[Judged], Iterator[str]]
    key: Callable[[], str] = click.getchar
    line: Callable[[str], str] = input
    say: Callable[[str], object] = click.echo
    enough: Callable[[Sequence[tuple[Judged, GoldLabel]]], str | None] = lambda _: None

    def labels(self, subjects: Sequence[Judged]) -> Iterator[tuple[Judged, GoldLabel]]:
        """Ask about *subjects* in order. Yield each label once the next one is typed: until then it can be undone."""
        labels: list[tuple[Judged, GoldLabel]] = []
        at, last = 0, None
        while at < len(subjects):
            answer = self._ask(subjects[at], f"{len(labels) + (last is not None) + 1} of {len(subjects)}")
            if answer is None:
                break
            if answer == "u":
                at, last = (at, None) if last is None else (subjects.index(last[0]), None)
                continue
            if last is not None and answer != "s":
                labels.append(last)
                yield last
                last = None
            if isinstance(answer, float):
                last = subjects[at], self._label(subjects[at], answer)
                if (message := self.enough([*labels, last])) is not None:
                    self.say(message)
                    break
            at += 1
        if last is not None:
            yield last

    def _label(self, judged: Judged, score: float) -> GoldLabel:
        subject = judged.subject
        return GoldLabel(subject.id, score, subject.kind, self.labeller, output_digest=judged.output_digest)

    def _ask(self, subject: Judged, place: str) -> float | str | None:
        """Return a score, ``s`` or ``u``, or None at the end."""
        self.say("")
        for text in self.show(subject):
            self.say(text)
        self.say("")
        self.say(f"[{place}]  {KEYS}")
        while True:
            try:
                pressed = self.key()
                score = self._score() if pressed == "=" else _SCORES.get(pressed.lower())
            except (KeyboardInterrupt, EOFError):
                return None
            if score is not None:
                return score
            if pressed.lower() in ("s", "u"):
                return pressed.lower()
            if pressed.lower() in _ENDS:
                return None
            for text in HELP:
                self.say(text)

    def _score(self) -> float | None:
        typed = self.line("score from 0 to 1: ")
        try:
            score = float(typed)
        except ValueError:
            score = -1.0
        if 0 <= score <= 1:
            return score
        self.say(f"{typed!r} is not a number from 0 to 1")
        return None
