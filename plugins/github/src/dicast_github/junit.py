"""The JUnit reports of a suite's experiments as one report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from dicast import ConfigError, Problem
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.files import open_file

BEGINS = b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites'
"""First bytes of a report: no other file is replaced by it."""

MARK = "<!-- dicast ci: {name} -->"
"""Last line of a report, with the pipeline file: a report on another file does not replace it."""

_LONGEST_MARK = 4096
"""Number of last bytes of a report in which its mark is looked for."""

_COUNTS = ("tests", "failures", "errors", "skipped")


def mark_of(name: str) -> str:
    """Return the mark of the reports on the pipeline file *name*."""
    return MARK.format(name=name.replace("--", "- -"))


def refuse_other_pipeline(path: Path, mark: str) -> None:
    """Refuse to replace the report at *path* if it ends with another *mark*: the report on another pipeline.

    :raises ConfigError: if it does, or if the file has other content than a report.
    """
    AtomicFile(path, replaces=BEGINS).discard()
    if not path.is_file():
        return
    with open_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _LONGEST_MARK))
        last = file.read().decode(errors="replace").rstrip().rpartition("\n")[2]
    if last.startswith(MARK.partition("{")[0]) and last != mark:
        message = f"cannot write {path}: it has the report {last!r:.200}, and this report is {mark!r:.200}; give --junit another path, or remove the file"
        raise ConfigError(Problem(message, path="--junit", value=str(path)))


def merge_reports(reports: Sequence[Path], path: Path, mark: str) -> None:
    """Write the *reports* of ``junit/xml`` as one report to the file at *path*, with the *mark* at its end. A single report is copied.

    Each suite has the name of its experiment before its own. Memory is needed for the largest suite.

    :raises OSError: if the file cannot be written.
    :raises ConfigError: if the file has other content than a report.
    """
    with AtomicFile(path, replaces=BEGINS) as file:
        for piece in _merged(reports) if len(reports) > 1 else _copied(reports[0]):
            file.write(piece)
        file.write(f"{mark}\n".encode())
        file.commit()


def write_skipped(path: Path, name: str, reason: str, mark: str) -> None:
    """Write the report of a run that judged nothing to the file at *path*, with the *mark* at its end: one skipped case with the *reason*.

    :raises OSError: if the file cannot be written.
    :raises ConfigError: if the file has other content than a report.
    """
    counts = {"tests": "1", "failures": "0", "errors": "0", "skipped": "1", "time": "0"}
    suites = ET.Element("testsuites", {"name": name, **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": "run", **counts})
    case = ET.SubElement(suite, "testcase", name="the run is disabled", classname=name, time="0")
    ET.SubElement(case, "skipped", message=reason)
    with AtomicFile(path, replaces=BEGINS) as file:
        file.write(b'<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites) + f"\n{mark}\n".encode())
        file.commit()


def _copied(report: Path) -> Iterator[bytes]:
    with open_file(report) as file:
        while piece := file.read(1 << 20):
            yield piece


def _merged(reports: Sequence[Path]) -> Iterator[bytes]:
    roots = [_root(report) for report in reports]
    suites = ET.Element("testsuites", name=roots[0].get("name", "").rpartition("/")[0])
    for count in _COUNTS:
        suites.set(count, str(sum(int(root.get(count, 0)) for root in roots)))
    suites.set("time", str(round(sum(float(root.get("time", 0)) for root in roots), 3)))
    begin, end = (
        b'<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, short_empty_elements=False),
        b"</testsuites>",
    )
    yield begin.removesuffix(end) + b"\n"
    for report, root in zip(reports, roots, strict=True):
        experiment = root.get("name", "").rpartition("/")[2]
        with open_file(report) as file:
            for _, element in ET.iterparse(file):  # noqa: S314  # this process wrote the report
                if element.tag == "testsuite":
                    element.set("name", f"{experiment}: {element.get('name', '')}")
                    yield ET.tostring(element, encoding="utf-8", xml_declaration=False)
                    element.clear()
    yield end + b"\n"


def _root(report: Path) -> ET.Element:
    """Return the root of *report*, which has its attributes alone."""
    with open_file(report) as file:
        root: ET.Element = next(ET.iterparse(file, events=("start",)))[1]  # noqa: S314  # as above
        return root
