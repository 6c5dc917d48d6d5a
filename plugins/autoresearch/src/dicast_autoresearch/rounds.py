"""One round of the loop: a proposer changes files, the change is measured, and kept or undone."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Measurements, MetricLines, ProcessTree

from . import log as logs
from . import state
from .decision import Before, Decision, decide
from .entries import REASONS, Entries
from .git import Git, Place
from .guard import Guard
from .log import Experiment
from .measure import Measurement, measure, run_within
from .session import Session
from .snapshot import Snapshot, restore, take


@attrs.frozen
class Outcome:
    """What a round came to: its entry of the log, and the decision."""

    experiment: Experiment
    decision: Decision


@attrs.frozen
class ProposerFailure:
    """How a proposer failed: in words, its exit code if it ended by itself, and the last lines of its stderr."""

    said: str
    exit_code: int | None = None
    stderr: str = ""


_LAST_LINES = 10


class Rounds:
    """The rounds of one session in one repository."""

    def __init__(self, git: Git, session: Session) -> None:
        self.git, self.session = git, session
        self._guard, self._entries = Guard(git, session), Entries(git, session)
        self._tree = ProcessTree()

    @property
    def _env(self) -> Mapping[str, str]:
        """By which the processes of a round are found, when this one was killed."""
        return {"DICAST_AUTORESEARCH": self._tree.mark}

    def measured_scope(self) -> str:
        """A digest of what the scope holds now."""
        files = {path: entry.blob for path, entry in take(self.git).files.items() if self._guard.in_scope(path)}
        return sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()

    def refuse_changed_measure(self) -> None:
        """Refuse to measure with what was changed; see :meth:`Guard.refuse_changed_measure`."""
        self._guard.refuse_changed_measure()

    def log(self) -> logs.Log:
        """The log as it is now."""
        return self._entries.log()

    def refuse_dirty(self) -> None:
        """Refuse changes in the scope that are not committed; see :meth:`Guard.refuse_dirty`."""
        self._guard.refuse_dirty()

    def report(self, event: str) -> dict[str, Any]:
        """What hooks and proposers are told; see :meth:`Entries.report`."""
        return self._entries.report(event)

    def recover(self) -> str | None:
        """Undo, or end, what a killed process has left; say what was done."""
        pending = state.load(self.git.root)
        if pending is None:
            return None
        ProcessTree(pending.mark).end()  # a proposer outlives a loop that was killed
        self._guard.put_back(pending.own)
        now, entry = self.git.stand(), pending.entry
        said = "a round that was cut off is undone; its change is kept under refs/dicast/discarded"
        kept = entry is not None and now.commit != pending.stand.commit and self._is_kept(now.commit, pending.stand)
        try:
            if entry is not None and kept:
                if all(one.commit != now.commit for one in self.log().experiments):
                    self._entries.append(Experiment(**{**entry, "commit": now.commit}))
                said = f"the change of a round that was cut off had been kept: {now.commit[:7]}"
            else:
                self.git.go_back(pending.stand)
                self._undo(pending.before, "cut off")
        finally:
            state.clear(self.git.root)  # what cannot be brought back is said once, and is the user's from then on
        return said

    def _is_kept(self, commit: str, stand: Place) -> bool:
        return self.git.text("rev-parse", f"{commit}^") == stand.commit and "\n\nResult: " in self.git.text(
            "log", "-1", "--format=%B", commit
        )

    def baseline(self) -> Outcome:
        """Measure the tree as it is, and keep it as what changes are compared with.

        :raises ConfigError: when it cannot be measured.
        """
        before = take(self.git)
        stand = self.git.stand()
        state.save(self.git.root, state.Pending(before, stand, self._tree.mark))
        try:
            found = measure(self.session, self.git.root, self._env)
        except BaseException:
            self.recover()
            raise
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
        entry = self._entries.entry(found, "keep", decision, words, "baseline", stand.commit)
        self._entries.append(entry)
        state.clear(self.git.root)
        return Outcome(entry, decision)

    def propose(self, command: str) -> Outcome:
        """Let *command* change files, and keep or undo what it changed."""
        before, stand = take(self.git), self.git.stand()
        own = self._guard.own()
        state.save(self.git.root, state.Pending(before, stand, self._tree.mark, own))
        try:
            return self._round(command, before, stand, own)
        except BaseException:
            if self._is_there():
                self.recover()
            raise

    def _is_there(self) -> bool:
        """Whether the repository is."""
        return os.path.lexists(self.git.root / ".git")

    def _round(self, command: str, before: Snapshot, stand: Place, own: Mapping[Path, bytes | None]) -> Outcome:
        failed, proposed = self._run_proposer(command)
        if not self._is_there():
            raise ConfigError("the proposer removed the repository itself: restore it from a clone")
        self.git.go_back(stand)  # commits and branches are not the proposer's to make
        cheats = self._guard.put_back(own)
        change = take(self.git, before)
        changed = before.changed(change)
        refused = self._guard.refusal(before, change, changed, cheats)
        if failed is not None:
            refused = f"proposer_failed: {failed.said}" + (f"; {refused}" if refused and cheats else "")
        found = Measurement(asi=proposed.asi)
        decision = Decision("discard", refused.partition(":")[0]) if refused else None
        if decision is None:
            found, decision = self._measured(proposed)
            after = take(self.git, change)
            touched = self._guard.refusal(
                change, after, change.changed(after), self._guard.put_back(own), measuring=True
            )
            if touched:
                refused, decision = touched, Decision("discard", touched.partition(":")[0])
        words = self._entries.words(proposed, command)
        if decision.decision != "keep":
            return self._discard(before, change, changed, found, decision, words, refused, failed)
        mine = {path: entry for path, entry in change.files.items() if self._guard.in_scope(path)}
        others = {path: entry for path, entry in before.files.items() if not self._guard.in_scope(path)}
        wanted = attrs.evolve(change, files={**mine, **others})
        restore(self.git, wanted, take(self.git, change))
        return self._keep(changed, stand, found, decision, words)

    def _run_proposer(self, command: str) -> tuple[ProposerFailure | None, Measurements]:
        """Return how the proposer failed, None where it did not, and its ASI lines."""
        lines, errors = MetricLines(), MetricLines()
        try:
            data = json.dumps(self._entries.report("before")).encode()
            end = run_within(
                shlex.split(command),
                self.git.root,
                self.session.propose_timeout,
                lines.feed,
                data,
                self._env,
                errors.feed,
            )
        except OSError as error:
            raise ConfigError(f"the proposer {command!r} could not be started: {error.strerror or error}") from error
        asi = {**lines.result().asi, **errors.result().asi}
        found = attrs.evolve(lines.result(), asi=asi)
        if end is None:
            return ProposerFailure(f"it took longer than {self.session.propose_timeout:g} s"), found
        if not end.code:
            return None, found
        last = "\n".join(end.errors.decode(errors="replace").strip().splitlines()[-_LAST_LINES:])
        return ProposerFailure(end.how + (f": {last}" if last else ""), end.code, last), found

    def _measured(self, proposed: Measurements) -> tuple[Measurement, Decision]:
        """Measure the tree, again where noise cannot be told yet, and decide."""
        before = self._entries.log().before(self.session.validation)
        for _ in range(self.session.retries + 1):
            found = measure(self.session, self.git.root, self._env)
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

    def _keep(
        self, changed: list[str], stand: Place, found: Measurement, decision: Decision, words: Mapping[str, str]
    ) -> Outcome:
        entry = self._entries.entry(found, "keep", decision, words, words["description"], None)
        result = {"status": "keep", self.session.primary: entry.primary_metric, **entry.secondary_metrics}
        message = f"{words['description']}\n\nResult: {json.dumps(result)}\n"
        before = take(self.git)
        state.save(self.git.root, state.Pending(before, stand, self._tree.mark, entry=attrs.asdict(entry)))
        named = [path for path in changed if self._guard.in_scope(path)]
        entry = attrs.evolve(entry, commit=self.git.commit_scope(named, message, stand.commit))
        self._entries.append(entry)
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
        failed: ProposerFailure | None,
    ) -> Outcome:
        status = {"checks_failed": "checks_failed", "crash": "crash", "proposer_failed": "crash"}.get(
            decision.reason, "discard"
        )
        commit = self._keep_apart(change, changed, words["description"]) if changed else None
        why = refused.partition(": ")[2] or found.said
        reason = REASONS[decision.reason] + (f": {why}" if why else "")
        entry = self._entries.entry(
            found, status, decision, {"rollback_reason": reason, **words}, words["description"], commit
        )
        if failed is not None:
            entry = attrs.evolve(entry, exit_code=failed.exit_code, stderr=failed.stderr)
        # before the files go back: what was learned outlives a kill; from here on the log is no longer to be put back
        state.save(self.git.root, state.Pending(before, self.git.stand(), self._tree.mark))
        self._entries.append(entry)
        restore(self.git, before, take(self.git, change))
        state.clear(self.git.root)
        return Outcome(entry, decision)

    def _keep_apart(self, change: Snapshot, changed: Iterable[str], message: str) -> str:
        files: dict[str, tuple[int, str] | None] = {}
        for path in changed:
            entry = change.files.get(path)
            files[path] = (entry.mode, entry.blob) if entry is not None and entry.blob is not None else None
        return self.git.keep_discarded(self._entries.next_number(), files, f"{message}\n", self.git.stand().commit)

    def _undo(self, before: Snapshot, why: str | None) -> None:
        """Bring the tree back to *before*; what there was is kept apart where *why* says so."""
        now = take(self.git, before)
        changed = before.changed(now)
        if changed and why is not None:
            self._keep_apart(now, changed, why)
        restore(self.git, before, now)

    def settle(self, entry: Experiment) -> Experiment:
        """Commit or restore the scope, as the *entry* that a person decided says, and write it down; return it with its commit."""
        head = self.git.text("rev-parse", "HEAD")
        listed = self.git.run(
            "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *self._guard.specs()
        )
        changed = [os.fsdecode(line[3:]) for line in listed.split(b"\0") if len(line) > 3]
        if entry.status == "keep":
            result = {"status": "keep", self.session.primary: entry.primary_metric, **entry.secondary_metrics}
            message = f"{entry.description}\n\nResult: {json.dumps(result)}\n"
            commit = self.git.commit_scope(changed, message, head) if changed else head
            self._entries.append(entry := attrs.evolve(entry, commit=commit))
            return entry
        apart = self._keep_apart(take(self.git), changed, entry.description) if changed else None
        self._entries.append(entry := attrs.evolve(entry, discarded_ref=apart))
        self.git.restore_paths(changed, head)
        return entry
