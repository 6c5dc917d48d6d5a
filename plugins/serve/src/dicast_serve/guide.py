"""Guidelines for people who label: a Markdown file, and the objectives and the evidence of the judges of a pipeline file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Ledger, PipelineJudges, Query, pipeline_judges
from dicast.toolkit.files import read_text

Guideline = Mapping[str, str]
"""A text in Markdown with its ``title`` and ``text``."""


@attrs.frozen
class Guide:
    """The guidelines in the file *path*, and the *judges* of a pipeline file. Both are optional."""

    path: Path | None = None
    judges: PipelineJudges | None = None

    @classmethod
    def of(cls, path: Path | None, pipeline: Path | None) -> Guide:
        """Return the guide from a Markdown file and a pipeline file.

        :raises ConfigError: if a file cannot be read, or the pipeline file is wrong.
        """
        guide = cls(path, None if pipeline is None else pipeline_judges(pipeline))
        list(guide.guidelines(None, ()))  # a missing file is refused before the server listens
        return guide

    def guidelines(self, label: str | None, kinds: tuple[str, ...]) -> Iterator[Guideline]:
        """Yield the guidelines: the file, then the objective of each judge, or of the judge *label*, for subjects of *kinds*.

        :raises ConfigError: if the file cannot be read.
        """
        if self.path is not None:
            yield {"title": self.path.name, "text": _text(self.path)}
        titles = set()
        for name, component in self._components(label):
            for kind in kinds:
                title, text = _objective(name, component, kind)
                if text and title not in titles:
                    titles.add(title)
                    yield {"title": title, "text": text}

    def components(self, kind: str, label: str | None) -> list[object]:
        """Return the judges of subjects of *kind*, or the judge *label*, nested judges included."""
        judges = (component for _, component in self._components(label))
        return [judge for judge in judges if kind in (getattr(judge, "accepts", ()) or (kind,))]

    def is_of(self, ledger: Ledger, run_id: str) -> bool | None:
        """Return whether the judges of the pipeline file are the run's; None without a pipeline file."""
        if self.judges is None:
            return None
        started = next((entry.event for entry in ledger.read(Query(run_id, ("run.started",)))), None)
        recorded: Any = {} if started is None else started.payload.get("fingerprints") or {}
        current = self.judges.fingerprints
        return all(recorded.get(name) == current[name] for name in current if name.startswith("judges["))

    def _components(self, label: str | None) -> Iterator[tuple[str, object]]:
        slots = () if self.judges is None else self.judges.judges
        is_judge = any(label == slot.label for slot in slots)  # a label of metrics has no evidence of its own
        for slot in slots:
            if slot.label == label or not is_judge:
                yield slot.label, slot.component
                yield from ((nested.label, nested.component) for nested in slot.inside.values())


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(f"--guidelines: {path} cannot be read ({why})") from error


def _objective(name: str, component: Any, kind: str) -> tuple[str, str]:
    """Return the title and the text of a judge's objective: its rubric, its criteria, and its hard constraints."""
    rubric_for = getattr(component, "rubric_for", None)
    rubric = None if rubric_for is None else rubric_for(kind)
    if rubric is None:
        return name, ""
    lists = (("Criteria", "criteria"), ("Conditions that must hold", "hard_constraints"))
    parts = [rubric.text or ""]
    parts += [
        f"**{title}**\n\n" + "\n".join(f"- {item}" for item in items)
        for title, option in lists
        if (items := getattr(component, option, ()))
    ]
    return f"{name}: rubric {rubric.id} {rubric.version}", "\n\n".join(part for part in parts if part).strip()
