"""Reasons in a comment: a provider that refused, an endpoint without a connection, a budget that allows no call."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dicast import read_ledger
from dicast.commands import RunCommand, command_of
from dicast.reading import run_document
from dicast.reporting import (
    ALL_METRICS,
    cap_lines,
    code,
    correction_place,
    gate_reasons,
    key_step,
    may_pass_again,
    raise_caps_text,
    reached_caps,
)

Document = Mapping[str, Any]

NO_BASELINE = "no baseline: add `baseline` to the gate to compare with one"

_REFUSED = ("refused_by_provider", "endpoint_unreachable")
"""Reasons for a stop after which the key, the address or the model may be wrong."""

STOPS = {
    "interrupted": "the run was interrupted, such as by a canceled job or a time limit",
    "refused_by_provider": "the endpoint of a model refused the calls",
    "endpoint_unreachable": "the endpoint of a model could not be reached",
    "unsupported_by_model": "a model does not support an option of the file, which the job's log names",
    "ledger_failed": "the ledger could not be written",
    "unfinished_shards": "not every shard ended",
}
"""Words for the reasons why a run did not end in order."""

_CALLS = {"judge_call_failed", "timeout"}
"""Kinds of failures that a later run may not have."""

_CALL_FAULT = re.compile(
    r"(?:[^:\s]+/[^:\s]+: )?(\S[^\n]*? at https?://[^\n]*?: (?:HTTP \d{3}\b|no connection to [^;\n]*|no reply within [\d.e+]+ s))"
)
"""The model, the address and the status in the message of a failed call; the provider's own text follows, and may quote a key."""

_TRANSIENT = re.compile(r": (HTTP (?:408|409|429|5\d\d)|no reply within [\d.e+]+ s)$")
"""Status, or wait, after which the same call may succeed later."""

_STATUS = re.compile(r": HTTP (\d{3})$")
"""The status at the end of a fault."""

_NO_ACCESS = ("401", "403")
"""Status of an endpoint that refuses the key."""

_CONNECTION_FIX = re.compile(r"; (start the server, or correct \w+)")
"""The next step in the message of a call without a connection."""

COMMAND = ("file", "name", "kind", "suite", "shard", "filter", "set", "only", "preview", "live")
"""Members of ``run.started`` with the command of the run."""

_SHARD = re.compile(r"shard (\d+/\d+) \(run (\w+) in ([^)]+)\)")
"""Number, run and ledger of a shard that did not end, in the data of a stop."""

_PROGRAM = ("dicast", "ci")

_QUERY = re.compile(r"\?[^\s:]*(?=[:\s]|$)")


def is_judged(done: Document) -> bool:
    """Return whether any label of the run of the document *done* has a score of any subject."""
    tallies = (*done["metrics"].values(), *done["judges"].values())
    return bool(done["scored"]) or any(tally["scored"] for tally in tallies)


def state_once(parts: Sequence[str], runs: int) -> list[str]:
    """Return *parts* of a comment on several *runs* with one sentence at the end about all runs without a baseline."""
    missing = parts.count(NO_BASELINE)
    if missing < 2:
        return [*parts]
    whose = "" if missing == runs else f"{missing:,} of {runs:,} experiments have "
    return [*(part for part in parts if part != NO_BASELINE), f"{whose}{NO_BASELINE}"]


def open_labels(done: Document) -> set[str]:
    """Return the labels of clauses without an answer in the gate of the document *done*; the only metric with all metrics together."""
    labels = {clause["on"] for clause in (done["gate"] or {}).get("clauses", ()) if clause["passed"] is None}
    metrics = [*done["metrics"]]
    return labels | ({*metrics} if len(metrics) == 1 and ALL_METRICS in labels else set())


def loss_lines(done: Document, ledger: Path | None) -> Iterator[str]:
    """Yield a line for each sink that lost events in the run of the document *done*, also at its end, which only the *ledger* records."""
    recorded = None
    if ledger is not None and (done["stopped"] or {}).get("reason") != "ledger_failed":
        recorded = read_ledger(ledger, lambda live: run_document(live, str(done["run_id"])))
    for label, sink in ((recorded or done).get("sinks") or {}).items():
        if sink["lost"]:
            error = code(str(sink.get("error") or "no message").replace(f"{Path.cwd().as_posix()}/", ""), 500)
            yield f"- the sink {code(label)} lost {sink['lost']:,} event{'s' * (sink['lost'] != 1)}: {error}"


def reason_lines(done: Document, file: str, ledger: Path | None, *, is_fork: bool = False) -> Iterator[str]:
    """Yield the causes for a run that did not end or has subjects without a verdict, and the next step, as lines of a list; nothing for other runs.

    :param file: the pipeline file, for the next step.
    :param ledger: the ledger with the run, for the next step.
    :param is_fork: the job is of a pull request from a fork, where another key is no next step.
    """
    stopped = done["stopped"] or {}
    reason = stopped.get("reason")
    if (words := STOPS.get(str(reason))) is not None:
        yield f"- {words} (`{reason}`); scored before: {done['scored']:,} of {done['subjects']:,} subjects"
    if reason == "ledger_failed" and (error := str(stopped.get("error") or "")):
        yield f"- {code(error if ledger is None else error.replace(str(ledger), _shown_path(ledger)), 500)}"
    messages = [str(stopped.get("message") or "")] if reason in _REFUSED else []
    if not is_judged(done):
        messages += [failure.get("error_message") or "" for failure in done["failed_subjects"]]
    faults = dict.fromkeys(fault for message in messages if (fault := call_fault(message)) is not None)
    if "url" in stopped and not faults:
        address = _QUERY.sub("", stopped["url"])
        faults = {f"{stopped['model']} at {address}: no connection after {stopped['calls']:,} calls": None}
    first_fault = next(iter(faults), None)
    if first_fault:
        yield f"- {code(first_fault, 500)}"
    yield from (f"- {line}" for line in cap_lines(done))
    is_lasting = first_fault is not None and _TRANSIENT.search(first_fault) is None
    is_refused = is_lasting or reason in _REFUSED
    connection, status = _connection_fix(done, messages), _STATUS.search(first_fault or "")
    fix = _fix(done, is_refused=is_refused, connection=connection, status=status[1] if status else "")
    if names := stopped.get("empty_variables"):
        yield f"- empty in the environment when the calls were sent: {', '.join(map(code, names))}, in place of a secret"
    if fix is not None and not (is_fork and is_refused and not is_judged(done)):
        yield f"- next: {fix}{code(_command(done, file))}{_place(done, ledger)}"
        if is_judged(done) and (connection or (is_refused and _has_new_place(status))):
            change = f"after a correction of the address or the model {correction_place(stopped)}"
            start = next_command(done.get("started", {}), file, done.get("flags", ())).starting()
            yield f"- next: {change}, a new run: {code(start)}"
    yield from shard_steps(done, file)
    yield from _other_steps(done, file)
    yield from _rows_step(done)


def shard_steps(done: Document, file: str) -> Iterator[str]:
    """Yield the commands that continue each shard that did not end, in its own ledger."""
    shards = _SHARD.findall(str((done["stopped"] or {}).get("shards") or ""))
    for number, run_id, path in shards:
        command = shlex.join(["dicast", "run", file, "--shard", number, "--resume", run_id, "--ledger", path])
        yield f"- or continue shard {number} in its ledger: {code(command)}"
    if shards:
        yield "- then merge all shards again, into a new ledger"


def _other_steps(done: Document, file: str) -> Iterator[str]:
    """Yield the commands of new runs after an early stop whose rows are not compared, and after calls that had too little time."""
    command = next_command(done.get("started", {}), file, done.get("flags", ()))
    is_early = (done["stopped"] or {}).get("reason") == "early_stop"
    if is_early and any("stopped before its end: early_stop" in reason for reason in gate_reasons(done)):
        settings = [*command.raising([*_settings(command, "early_stop")]).settings, "early_stop=[]"]
        yield f"- next: to compare all rows, a run without the early stop: {code(attrs.evolve(command, settings=settings).starting())}"
    if is_judged(done) and _faults(done, "no reply within"):
        yield f"- next: with a higher `timeout` of the model in the file, a new run: {code(command.raising([*_settings(command, 'timeout')]).starting())}"


def _rows_step(done: Document) -> Iterator[str]:
    """Yield the next step after a gate without an answer because of too few pairs."""
    is_open = done["stopped"] is None and (done["gate"] or {"passed": True})["passed"] is None
    if is_open and any("needed to tell" in reason for reason in gate_reasons(done)):
        yield "- next: judge more rows, on the main branch too, and save its baseline again; or decide without an answer by `undecided: pass` or `undecided: fail` in the clause"


def _settings(command: RunCommand, name: str) -> Iterator[str]:
    """Yield the paths of the settings of *command* whose last part is *name*."""
    paths = (setting.partition("=")[0].strip() for setting in command.settings)
    return (path for path in paths if path.rpartition(".")[2] == name)


def _faults(done: Document, words: str) -> list[str]:
    """Return the part from *words* of the faults of the failed calls in the document *done* that have these words."""
    faults = (call_fault(failure.get("error_message") or "") or "" for failure in done["failed_subjects"])
    return [f"{words}{fault.partition(words)[2]}" for fault in faults if words in fault]


def _connection_fix(done: Document, messages: Sequence[str]) -> str | None:
    """Return the next step after calls without a connection: of one of *messages*, or of each shown failure; None if another call failed."""
    fixes = [_CONNECTION_FIX.search(failure.get("error_message") or "") for failure in done["failed_subjects"]]
    matches = [_CONNECTION_FIX.search(message) for message in messages] + (fixes if all(fixes) else [])
    return next((match[1] for match in matches if match), None)


def _has_new_place(status: re.Match[str] | None) -> bool:
    """Return whether the address or the model may be wrong after a response with *status*: a run with another address is a new run."""
    return status is None or status[1] not in _NO_ACCESS


def _fix(done: Document, *, is_refused: bool, connection: str | None, status: str) -> str | None:
    """Return the change before the next run of *done*, with a comma and *then*; empty without a change, None without a next step.

    :param connection: the next step after calls without a connection.
    :param status: the status of the endpoint that refused the calls; empty if it is unknown.
    """
    stopped = done["stopped"] or {}
    place = f" {correction_place(stopped)}" if stopped.get("variables") else ""
    if connection and is_judged(done):
        return f"{connection.partition(', or correct')[0]}, then "
    if connection:
        return f"{connection}{place}, then "
    if is_refused and status in _NO_ACCESS:
        return f"{key_step(stopped) if stopped.get('empty_variables') else 'correct the key'}, then "
    if is_refused and is_judged(done):
        return "once the endpoint accepts the calls, "
    if is_refused:
        cause = "the address or the model" if status == "404" else "the key, the address or the model"
        return f"correct {cause}{place}, then "
    if caps := reached_caps(done):
        return f"{raise_caps_text(caps)}, then "
    if done["throttled"].keys() == {"no_estimate"} and (done["failures"] or done["unaffordable"]):
        return "give the component an estimate of its cost, as the message of the failure says, then "
    if done["failures"].keys() & _CALLS:
        return f"{_wait_words(done)}, then "
    if (done["stopped"] or {}).get("reason") == "ledger_failed":
        return "remove this cause, then "
    return "" if (done["stopped"] or {}).get("reason") in STOPS else None


def next_command(started: Document, file: str, flags: Sequence[str]) -> RunCommand:
    """Return the command ``dicast ci`` of the run with the members :data:`COMMAND` of *started*, as the job's log has it.

    :param file: the pipeline file, of a run that has not started.
    :param flags: the options that ``run.started`` does not record.
    """
    shown = [flag.replace(f"{Path.cwd().as_posix()}/", "") for flag in flags]
    if not started:
        return RunCommand(file, flags=shown, program=_PROGRAM)
    return command_of(started, *shown, program=_PROGRAM) or RunCommand(file, flags=shown, program=_PROGRAM)


def _wait_words(done: Document) -> str:
    """Return the next step after calls that may succeed later; for too many requests, the options with the limits."""
    if _faults(done, "HTTP 429"):
        return "wait, or lower requests_per_minute of the model or concurrency of the executor (HTTP 429)"
    if faults := _faults(done, "HTTP 5"):
        return f"wait until the endpoint answers without errors ({faults[0]})"
    if faults := _faults(done, "no reply within"):
        return f"wait until the endpoint answers in time{'' if is_judged(done) else ', or raise `timeout` of the model'} ({faults[0]})"
    return "wait until the endpoint answers"


def _command(done: Document, file: str) -> str:
    """Return the command that judges the missing subjects; of a run without a verdict, all subjects."""
    command = next_command(done.get("started", {}), file, done.get("flags", ())).raising(reached_caps(done))
    if not is_judged(done) or not command.is_resumable:
        return command.starting()
    is_retry = done["failures"] and may_pass_again(done)
    return (command.retrying if is_retry else command.resuming)(str(done["run_id"]))


def _place(done: Document, ledger: Path | None) -> str:
    """Return the place in which a resumed run needs the ledger."""
    return ledger_place(ledger) if is_judged(done) and ledger is not None else ""


def ledger_place(ledger: Path) -> str:
    """Return the words that name *ledger*, without a folder of the runner, for a command that resumes a run."""
    name = code(_shown_path(ledger))
    return f" with the ledger of this job, {name}. Without that ledger, leave out `--resume`; every subject is then judged again"


def _shown_path(ledger: Path) -> str:
    """Return the path of *ledger* from the working directory; its name if it is elsewhere."""
    path = ledger.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def call_fault(message: str) -> str | None:
    """Return the model, the address without a query, and the status in the *message* of a failed call; None without them."""
    match = _CALL_FAULT.match(message)
    return None if match is None else _QUERY.sub("", match[1])
