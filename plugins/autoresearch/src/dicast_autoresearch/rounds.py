"""One round of the loop: a proposer changes files, the change is measured, and kept or undone."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import attrs

from dicast import ConfigError, Measurements

from . import log as logs
from . import state
from .decision import Before, Decision, confidence, decide
from .git import Git, Place
from .log import LOG, Experiment
from .measure import Measurement, measure, run_lines
from .session import FOLDER, Session
from .snapshot import Snapshot, restore, take

REASONS = {
    "no_change": "nothing was changed",
    "cheating": "what measures was changed",
    "out_of_scope": "files outside the scope were changed",
    "proposer_failed": "the proposer failed",
    "checks_failed": "the checks failed",
    "crash": "the command failed",
    "metric_missing": "the primary metric was not printed",
    "metric_invalid": "the primary metric is no finite number",
    "not_better_than_best": "no better than the best kept value",
    "below_min_delta": "the improvement is below min_delta",
    "below_min_relative_delta": "the improvement is below min_relative_delta",
    "insufficient_noise_evidence": "too few values to tell noise from an improvement",
    "below_confidence": "the improvement is within the noise",
    "within_noise": "the improvement is within the noise",
    "validation_dropped": "the validation metric fell",
    "validation_missing": "the validation metric was not printed",
}
_REPORTED = 8_192


@attrs.frozen
class Outcome:
    """What a round came to: its entry of the log, and the decision."""

    experiment: Experiment
    decision: Decision


class Rounds:
    """The rounds of one session in one repository."""

    def __init__(self, git: Git, session: Session) -> None:
        self.git, self.session = git, session
        self._log = git.root / LOG

    def log(self) -> logs.Log:
        """The log as it is now."""
        return logs.read(self._log)

    def recover(self) -> str | None:
        """Undo, or end, what a killed process has left; say what was done."""
        pending = state.load(self.git.root)
        if pending is None:
            return None
        now, entry = self.git.stand(), pending.entry
        said = "a round that was cut off is undone; its change is kept under refs/dicast/discarded"
        kept = entry is not None and now.commit != pending.stand.commit and self._is_kept(now.commit, pending.stand)
        if entry is not None and kept:
            self._append(Experiment(**{**entry, "commit": now.commit}))
            said = f"the change of a round that was cut off had been kept: {now.commit[:7]}"
        else:
            self.git.go_back(pending.stand)
            self._undo(pending.before, "cut off")
        state.clear(self.git.root)
        return said

    def _is_kept(self, commit: str, stand: Place) -> bool:
        return self.git.text("rev-parse", f"{commit}^") == stand.commit and "\n\nResult: " in self.git.text(
            "log", "-1", "--format=%B", commit
        )

    def refuse_dirty(self) -> None:
        """Refuse changes in the scope that are not committed: they are nobody's experiment.

        :raises ConfigError: naming them.
        """
        found = self.git.run("status", "--porcelain", "-z", "--untracked-files=all", "--", *self._specs()).split(b"\0")
        names = [os.fsdecode(line[3:]) for line in found if len(line) > 3]
        if names:
            raise ConfigError(
                f"the scope has changes that are not committed: {', '.join(names[:10])}; commit or stash them first"
            )

    def _specs(self) -> list[str]:
        return [f":(top,literal){path}" for path in self.session.scope]

    def baseline(self) -> Outcome:
        """Measure the tree as it is, and keep it as what changes are compared with.

        :raises ConfigError: when it cannot be measured.
        """
        before = take(self.git)
        stand = self.git.stand()
        state.save(self.git.root, state.Pending(before, stand))
        found = measure(self.session, self.git.root)
        self._undo(before, None)
        decision = decide(found.measured(self.session), Before(), self.session.policy)
        if found.failure or decision.decision != "keep":
            state.clear(self.git.root)
            why = REASONS[found.failure or decision.reason] + (f": {found.said}" if found.said else "")
            raise ConfigError(f"the baseline cannot be measured: {why}")
        words = {
            "hypothesis": "the baseline",
            "learned": "what changes are compared with",
            "next_action_hint": "change it",
        }
        entry = self.entry(found, "keep", decision, words, "baseline", stand.commit)
        self._append(entry)
        state.clear(self.git.root)
        return Outcome(entry, decision)

    def propose(self, command: str) -> Outcome:
        """Let *command* change files, and keep or undo what it changed."""
        before, stand = take(self.git), self.git.stand()
        own = self._own()
        state.save(self.git.root, state.Pending(before, stand))
        try:
            return self._round(command, before, stand, own)
        except BaseException:
            self.git.go_back(stand)
            self._put_back(own)
            self._undo(before, "cut off")
            state.clear(self.git.root)
            raise

    def _round(self, command: str, before: Snapshot, stand: Place, own: Mapping[str, bytes]) -> Outcome:
        said, proposed = self._run_proposer(command)
        if not self.git.path("HEAD").exists():
            raise ConfigError("the proposer removed the repository itself: restore it from a clone")
        self.git.go_back(stand)  # commits and branches are not the proposer's to make
        cheats = self._put_back(own)
        change = take(self.git, before)
        changed = before.changed(change)
        refused = self._refusal(before, change, changed, cheats) or (said and f"proposer_failed: {said}")
        found = Measurement(asi=proposed.asi)
        decision = Decision("discard", refused.partition(":")[0]) if refused else None
        if decision is None:
            found, decision = self._measured(proposed)
            after = take(self.git, change)
            touched = self._refusal(change, after, change.changed(after), self._put_back(own), measuring=True)
            if touched:
                refused, decision = touched, Decision("discard", touched.partition(":")[0])
        words = self._words(proposed, command)
        if decision.decision != "keep":
            return self._discard(before, change, changed, found, decision, words, refused)
        mine = {path: entry for path, entry in change.files.items() if self.in_scope(path)}
        others = {path: entry for path, entry in before.files.items() if not self.in_scope(path)}
        wanted = attrs.evolve(change, files={**mine, **others})
        restore(self.git, wanted, take(self.git, change))
        return self._keep(changed, stand, found, decision, words)

    def _run_proposer(self, command: str) -> tuple[str, Measurements]:
        """Why the proposer failed, nothing where it did not, and its ASI lines."""
        try:
            data = json.dumps(self.report("before")).encode()
            end, found = run_lines(shlex.split(command), self.git.root, self.session.propose_timeout, data)
        except OSError as error:
            raise ConfigError(f"the proposer {command!r} could not be started: {error.strerror or error}") from error
        if end is None:
            return f"it took longer than {self.session.propose_timeout:g} s", found
        return (f"{end.how}" if end.code else ""), found

    def _own(self) -> dict[str, bytes]:
        """The session's own files, which nobody else may change."""
        folder = self.git.root / FOLDER
        paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "state.json"]
        return {str(path): path.read_bytes() for path in [*paths, self._log] if path.is_file()}

    def _put_back(self, own: Mapping[str, bytes]) -> list[str]:
        """Restore the session's own files; the names of those that were changed."""
        changed = []
        for name, data in own.items():
            path = Path(name)
            if not path.is_file() or path.read_bytes() != data:
                changed.append(str(path.relative_to(self.git.root)))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return changed

    def _refusal(
        self, before: Snapshot, after: Snapshot, changed: list[str], cheats: list[str], *, measuring: bool = False
    ) -> str:
        """Why a change is not even measured, nothing where it may be: what measures, or what is outside the scope, was changed."""
        nested = [path for path in changed if path in before.nested or path in after.nested]
        if nested:
            raise ConfigError(f"repositories inside this one were changed, look at them yourself: {', '.join(nested)}")
        guarded = {PurePosixPath(os.path.normpath(word)) for word in self.session.protected()}
        cheats = [*cheats, *(path for path in changed if PurePosixPath(path) in guarded)]
        if cheats:
            return f"cheating: {', '.join(cheats)}"
        outside = [path for path in changed if not self.in_scope(path)]
        if measuring:  # it may write what is new; all of it is undone
            outside = [path for path in outside if path in before.files]
        ignored = self._ignored(outside)
        outside = [path for path in outside if path not in ignored]
        if outside:
            return f"out_of_scope: {', '.join(outside[:20])}"
        if not measuring and not any(self.in_scope(path) for path in changed):
            return "no_change: the proposer changed no file in the scope"
        return ""

    def in_scope(self, path: str) -> bool:
        """Whether a change may touch *path*."""
        mine = PurePosixPath(path)
        return any(mine.is_relative_to(os.path.normpath(scope)) for scope in self.session.scope)

    def _ignored(self, paths: list[str]) -> set[str]:
        if not paths:
            return set()
        data = b"".join(os.fsencode(path) + b"\0" for path in paths)
        try:
            found = self.git.run("check-ignore", "-z", "--stdin", data=data)
        except ConfigError:  # its way to say that there are none
            return set()
        return {os.fsdecode(name) for name in found.split(b"\0") if name}

    def _measured(self, proposed: Measurements) -> tuple[Measurement, Decision]:
        """Measure the tree, again where noise cannot be told yet, and decide."""
        before = self.log().before(self.session.validation)
        for _ in range(self.session.retries + 1):
            found = measure(self.session, self.git.root)
            found = attrs.evolve(found, asi={**found.asi, **proposed.asi})
            if found.failure == "crash":
                return found, Decision("discard", "crash")
            run = found.measured(self.session)
            decision = decide(run, before, self.session.policy)
            if decision.decision != "retry":
                return found, decision
            if run.value is not None:
                before = attrs.evolve(before, values=[*before.values, run.value])
        return found, attrs.evolve(decision, decision="discard")

    def _words(self, proposed: Measurements, command: str) -> dict[str, str]:
        asi = proposed.asi
        given = {name: str(asi[name]) for name in (*logs.ASI, "description") if asi.get(name) is not None}
        return {"hypothesis": "(the proposer named none)", "description": given.get("hypothesis", command), **given}

    def _keep(
        self, changed: list[str], stand: Place, found: Measurement, decision: Decision, words: Mapping[str, str]
    ) -> Outcome:
        entry = self.entry(found, "keep", decision, words, words["description"], None)
        result = {"status": "keep", self.session.primary: entry.primary_metric, **entry.secondary_metrics}
        message = f"{words['description']}\n\nResult: {json.dumps(result)}\n"
        before = take(self.git)
        state.save(self.git.root, state.Pending(before, stand, attrs.asdict(entry)))
        named = [path for path in changed if self.in_scope(path)]
        entry = attrs.evolve(entry, commit=self.git.commit_scope(named, message, stand.commit))
        self._append(entry)
        state.clear(self.git.root)
        return Outcome(entry, decision)

    def _discard(
        self,
        before: Snapshot,
        change: Snapshot,
        changed: list[str],
        found: Measurement,
        decision: Decision,
        words: Mapping[str, str],
        refused: str,
    ) -> Outcome:
        status = decision.reason if decision.reason in {"checks_failed", "crash"} else "discard"
        commit = self._keep_apart(change, changed, words["description"]) if changed else None
        why = refused.partition(": ")[2] or found.said
        reason = REASONS[decision.reason] + (f": {why}" if why else "")
        entry = self.entry(found, status, decision, {"rollback_reason": reason, **words}, words["description"], commit)
        self._append(entry)  # before the files go back: what was learned outlives a kill
        restore(self.git, before, take(self.git, change))
        state.clear(self.git.root)
        return Outcome(entry, decision)

    def _keep_apart(self, change: Snapshot, changed: Iterable[str], message: str) -> str:
        files: dict[str, tuple[int, str] | None] = {}
        for path in changed:
            entry = change.files.get(path)
            files[path] = (entry.mode, entry.blob) if entry is not None and entry.blob is not None else None
        number = max((one.experiment for one in self.log().experiments), default=-1) + 1
        return self.git.keep_discarded(number, files, f"{message}\n", self.git.stand().commit)

    def _undo(self, before: Snapshot, why: str | None) -> None:
        """Bring the tree back to *before*; what there was is kept apart where *why* says so."""
        now = take(self.git, before)
        changed = before.changed(now)
        if changed and why is not None:
            self._keep_apart(now, changed, why)
        restore(self.git, before, now)

    def entry(
        self,
        found: Measurement,
        status: str,
        decision: Decision,
        words: Mapping[str, str],
        description: str,
        commit: str | None = None,
    ) -> Experiment:
        """The entry of the log for what was *found*."""
        log = self.log()
        before = log.before()
        value = found.metrics.get(self.session.primary)
        values = [*before.values, *([] if value is None else [value])]
        kept = [*before.kept, *([value] if status == "keep" and value is not None else [])]
        cost: dict[str, object] = {"seconds": round(found.seconds, 3)}
        if "cost_usd" in found.metrics:
            cost["usd"] = found.metrics["cost_usd"]
        return Experiment(
            experiment=max((one.experiment for one in log.experiments), default=-1) + 1,
            status=status,
            hypothesis=words.get("hypothesis", ""),
            primary_metric=value,
            secondary_metrics=found.secondary(self.session),
            commit=commit,
            description=description,
            learned=words.get("learned") or self._learned(value, status, decision),
            rollback_reason=None if status == "keep" else words.get("rollback_reason") or REASONS[decision.reason],
            next_action_hint=words.get("next_action_hint", "") or "(none was given)",
            timestamp=logs.now(),
            segment=log.segment,
            confidence=confidence(values, kept, self.session.direction),
            cost=cost,
            reason=decision.reason,
            asi=dict(found.asi),
        )

    def _learned(self, value: float | None, status: str, decision: Decision) -> str:
        if value is None:
            return f"{self.session.primary} was not measured: {REASONS.get(decision.reason, decision.reason)}"
        by = "" if decision.delta is None else f", {decision.delta:+g} against the best kept"
        return f"{self.session.primary} {value:g}{by}: {status}"

    def _append(self, entry: Experiment) -> None:
        logs.append(self._log, entry)

    def settle(self, entry: Experiment) -> Experiment:
        """Commit or restore the scope, as the *entry* that a person decided says, and write it down; return it with its commit."""
        head = self.git.text("rev-parse", "HEAD")
        listed = self.git.run(
            "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *self._specs()
        )
        changed = [os.fsdecode(line[3:]) for line in listed.split(b"\0") if len(line) > 3]
        if entry.status == "keep":
            result = {"status": "keep", self.session.primary: entry.primary_metric, **entry.secondary_metrics}
            message = f"{entry.description}\n\nResult: {json.dumps(result)}\n"
            commit = self.git.commit_scope(changed, message, head) if changed else head
            self._append(entry := attrs.evolve(entry, commit=commit))
            return entry
        apart = self._keep_apart(take(self.git), changed, entry.description) if changed else None
        self._append(entry := attrs.evolve(entry, commit=apart))
        self.git.restore_paths(changed, head)
        return entry

    def report(self, event: str) -> dict[str, Any]:
        """What hooks and proposers are told on stdin."""
        log = self.log()
        before = log.before()
        last = log.current[-1] if log.current else None
        return {
            "event": event,
            "cwd": str(self.git.root),
            "next_run": max((one.experiment for one in log.experiments), default=-1) + 1,
            "last_run": None if last is None else attrs.asdict(last),
            "session": {
                "metric_name": self.session.primary,
                "metric_unit": logs.unit_of(self.session.primary),
                "direction": self.session.direction,
                "baseline_metric": before.values[0] if before.values else None,
                "best_metric": before.best(self.session.direction),
                "run_count": len(log.current),
                "goal": self.session.goal,
                "scope": list(self.session.scope),
            },
        }
