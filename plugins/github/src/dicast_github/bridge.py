"""Next steps of a comment on a gate whose baseline was judged in another way."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from dicast.commands import RunCommand
from dicast.reporting import code, gate_reasons

from .reasons import next_command

Document = Mapping[str, Any]

_BRIDGE = """To compare, judge the outputs of the main branch as this branch judges:

```bash
git worktree add ../main origin/main
# in ../main: make the same changes of rows and judges, and add the files that this branch adds; keep its outputs, prompts and tasks
mkdir -p {main_folder}
[ -e {main_file} ] || cp {file} {main_file}
(cd ../main; {run}; {save}){note}
cp {bridge} {folder}
git worktree remove --force ../main
```

Commit the file with `baseline: bridge.json` in the clause. After the merge, set the clause back: see "Changed rows or judges" in dicast's page "Compare with the main branch"."""
"""Part of a comment on a gate with a baseline that was judged in another way."""

_ADDRESS = '`base_url` differs: give the judge\'s server a fixed host and port in all jobs, or no run is comparable; see "No worse than a baseline" in dicast\'s page "Gate a run".'
"""Part of a comment on a gate with a baseline whose judge had another address."""

_OTHER = "The baseline {baseline} is a run of the pipeline {other}: correct `baseline` in the clause. A baseline of {name}: `{save}`, on the main branch, after a run of it."
"""Part of a comment on a gate that names the baseline of another pipeline."""

_OTHER_PIPELINE = re.compile(r"compared with (.+?) \(run \w+ of another pipeline, ([^)]+)\): ")
"""Baseline and its pipeline in a gate's reason."""


def difference_parts(done: Document, file: str) -> Iterator[str]:
    """Yield the next steps if a baseline of the gate in the document *done* was judged in another way, as parts of a comment.

    :param file: the pipeline file.
    """
    differences = [reason for reason in gate_reasons(done) if "the runs differ in" in reason]
    others = dict.fromkeys(match.groups() for text in differences if (match := _OTHER_PIPELINE.search(text)))
    name = str(done["name"])
    for baseline, other in others:
        save = shlex.join(["dicast", "baseline", "save", "NAME", name, "--file", "FILE.json"])
        yield _OTHER.format(baseline=code(baseline), other=code(other), name=code(name), save=save)
    differences = [reason for reason in differences if _OTHER_PIPELINE.search(reason) is None]
    if any("base_url: " in reason for reason in differences):
        yield _ADDRESS
    if differences:
        yield bridge_steps(done, file)


def bridge_steps(done: Document, file: str) -> str:
    """Return the commands that judge the main branch as the pipeline *file* and the options of the run of the document *done* do.

    The main branch may lack the file: the commands copy it to its place in the main branch, next to the main branch's data.
    """
    path = Path(os.path.relpath(file))
    started = done.get("started") or {}
    command = _ungated(next_command({**started, "filter": ()} if started else {}, file, ()), path.as_posix())
    hidden = "".join(f" --set {setting}" for setting in command.hidden)
    bridge = path.parent / "bridge.json"
    return _BRIDGE.format(
        main_folder=shlex.quote(f"../main/{path.parent.as_posix()}"),
        main_file=shlex.quote(f"../main/{path.as_posix()}"),
        file=shlex.quote(path.as_posix()),
        run=attrs.evolve(command, hidden=()).starting(),
        save=shlex.join(["dicast", "baseline", "save", "bridge", str(done["name"]), "--file", bridge.as_posix()]),
        note=f"  # with the same{hidden}" if hidden else "",
        bridge=shlex.quote(f"../main/{bridge.as_posix()}"),
        folder=shlex.quote(f"{path.parent.as_posix()}/"),
    )


def _ungated(command: RunCommand, file: str) -> RunCommand:
    """Return *command* as ``dicast run`` of *file* without a gate, for all rows and labels.

    A setting of the gate would be refused next to ``gate=null``, and no name refers to a run of some rows or labels.
    """
    paths = [setting.partition("=")[0].strip() for setting in (*command.settings, *command.hidden)]
    command = command.raising([path for path in paths if path.partition(".")[0] == "gate"])
    return attrs.evolve(
        command, file=file, settings=[*command.settings, "gate=null"], only=(), program=("dicast", "run")
    )
