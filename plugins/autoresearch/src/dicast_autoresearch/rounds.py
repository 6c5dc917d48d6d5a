"""Round of the loop: a proposer changes a checkout, the changed tree is measured, and kept as a commit of the loop's ref or discarded."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError
from dicast.toolkit.metric_lines import Measurements, MetricLines
from dicast.toolkit.process_tree import ProcessTree

from . import log as logs
from . import state
from .checkout import READY, Checkout, Workspace, new_folder, remove
from .decision import Before, Decision, decide
from .entries import REASONS, Entries
from .git import Change, Git
from .guard import Guard
from .links import Links
from .log import Experiment
from .measure import Measurement, measure
from .namespace import Namespace, find_namespace
from .refs import loop_ref
from .session import Session

_LAST_LINES = 10
_STATUSES = {"checks_failed": "checks_failed", "crash": "crash", "proposer_failed": "crash"}


@attrs.frozen
class Outcome:
    """The result of a round: its entry of the log, and the decision."""

    experiment: Experiment
    decision: Decision


@attrs.frozen
class ProposerFailure:
    """Failure of a proposer: a message, its exit code if it ended by itself, and the last lines of its stderr."""

    message: str
    exit_code: int | None = None
    stderr: str = ""


@attrs.frozen
class Proposal:
    """Change of a proposer: its *tree* on top of *base*, why it was *refused*, how the proposer *failed*, and its ASI lines."""

    base: str
    tree: str
    refused: str
    failed: ProposerFailure | None
    words: Mapping[str, str]
    asi: Mapping[str, object]


class Rounds:
    """The rounds of one session in one repository. Of the user's files, only the session's files are written."""

    def __init__(self, git: Git, session: Session) -> None:
        self.git, self.session = git, session
        self.guard, self.links = Guard(git, session), Links(git, session)
        self._entries = Entries(git, session)
        self._tree = ProcessTree()
        self._ref: str | None = None
        self._tip: str | None = None
        self._base: str | None = None

    @property
    def ref(self) -> str:
        """The ref of the kept experiments."""
        if self._ref is None:
            self._ref = loop_ref(self.git, self.session.name)
        return self._ref

    @cached_property
    def namespace(self) -> Namespace | None:
        """The namespace of the checkouts' commands."""
        return find_namespace(self.git)

    @property
    def base(self) -> str:
        """The parent commit of the next change: HEAD if it has all kept experiments, else the newest of them.

        It is determined once and then follows the loop only.
        """
        if self._base is None:
            self._tip, head = self.git.resolve(self.ref), self.git.head()
            self._base = head if self._tip is None or self.git.is_ancestor(self._tip, head) else self._tip
        return self._base

    def log(self) -> logs.Log:
        """Return the current log."""
        return self._entries.log()

    def report(self, event: str) -> dict[str, Any]:
        """Return the state that hooks read; see :meth:`Entries.report`."""
        return self._entries.report(event)

    def recover(self) -> str | None:
        """Finish the round of a killed process, and return a message about it; None if there is none.

        The user's files need no recovery. The round stays recorded until the recovery is complete.
        """
        pending = state.load(self.git.root)
        if pending is None:
            return None
        ProcessTree(pending.mark).end()
        folder = Path(pending.folder)
        if pending.entry is not None and self._is_kept(pending.entry["commit"]):
            commit = pending.entry["commit"]
            if all(experiment.commit != commit for experiment in self.log().experiments):
                self._entries.append(Experiment(**pending.entry))
            message = f"the change of an interrupted round was already kept: {commit[:7]}"
        else:
            message = "an interrupted round is undone" + self._rescue(folder, pending.base)
        remove(folder)
        state.clear(self.git.root)
        return message

    def _is_kept(self, commit: str) -> bool:
        tip = self.git.resolve(self.ref)
        return tip is not None and self.git.is_ancestor(commit, tip)

    def _rescue(self, folder: Path, base: str) -> str:
        """Keep the change of a proposer whose round was interrupted, and return a text about it."""
        place = folder / "proposal"
        work = next((path for path in place.iterdir() if path.is_dir()), None) if place.is_dir() else None
        if work is None or not (place / READY).is_file():
            return ""
        links = dict.fromkeys([*self.links.of_session(), *self.git.untracked()], work)
        try:
            tree = Checkout(self.git, None, work, place / "index", links, {}).tree()
            if tree == self.git.tree_of(base):
                return ""
            self.git.keep_discarded(self._entries.next_number(), tree, "cut off", base)
        except ConfigError as error:
            message = (
                f"the change of an interrupted round cannot be kept, delete {folder} to continue without it: {error}"
            )
            raise ConfigError(message) from error
        return "; its change is kept under refs/dicast/discarded"

    def _workspace(self) -> Workspace:
        """Return a new workspace, recorded as a round under way."""
        base = self.base
        folder = new_folder()
        try:
            state.save(self.git.root, state.Pending(self._tree.mark, str(folder), base))
        except ConfigError:
            remove(folder)
            raise
        return Workspace(self.git, self.namespace, folder, {"DICAST_AUTORESEARCH": self._tree.mark})

    def baseline(self) -> Outcome:
        """Measure the committed tree as the baseline of changes.

        :raises ConfigError: if it cannot be measured.
        """
        try:
            measurement = self.measure_once(self.base)
        except BaseException:
            self.recover()
            raise
        decision = decide(measurement.measured(self.session), Before(), self.session.policy)
        if measurement.failure or decision.decision != "keep":
            why = REASONS[measurement.failure or decision.reason] + (
                f": {measurement.said}" if measurement.said else ""
            )
            if left := self.links.left_out():
                why += f". Not in the checkout, --link PATH adds them: {', '.join(left[:10])}"
            raise ConfigError(f"the baseline cannot be measured: {why}")
        words = {
            "hypothesis": "the baseline",
            "learned": "reference for changes",
            "next_action_hint": "change it",
        }
        entry = self._entries.entry(measurement, "keep", decision, words, "baseline", self.base)
        self._move(self.base)
        self._entries.append(entry)
        return Outcome(entry, decision)

    def measure_once(self, commit: str) -> Measurement:
        """Measure *commit* in a fresh checkout."""
        workspace = self._workspace()
        measurement = measure(self.session, workspace.checkout("measured", commit, self.links.paths()))
        workspace.remove()
        state.clear(self.git.root)
        return measurement

    def propose(self, command: str) -> Outcome:
        """Let *command* change a checkout, measure the changed tree, and keep or discard it."""
        try:
            workspace = self._workspace()
            outcome = self._round(workspace, command)
            workspace.remove()
            state.clear(self.git.root)
        except BaseException:
            self.recover()
            raise
        return outcome

    def _round(self, workspace: Workspace, command: str) -> Outcome:
        proposal = self._propose(workspace, command)
        measurement, refused = Measurement(asi=proposal.asi), proposal.refused
        if refused:
            decision = Decision("discard", refused.partition(":")[0])
        else:
            commit = self.git.commit(proposal.tree, proposal.words["description"], proposal.base)
            measurement, decision, refused = self._measured(workspace, commit, proposal)
        if decision.decision == "keep":
            return self._keep(workspace, proposal, measurement, decision)
        return self._discard(proposal, measurement, decision, refused)

    def _propose(self, workspace: Workspace, command: str) -> Proposal:
        base, links = self.base, {**self.links.paths(command), **self.links.of_session()}
        work = workspace.checkout("proposal", base, links)
        failed, proposed = self._run_proposer(work, command)
        tree, refused = self._changed(work, base)
        if failed is not None:
            refused = f"proposer_failed: {failed.message}" + (f"; {refused}" if refused.startswith("cheating") else "")
        return Proposal(base, tree, refused, failed, self._entries.words(proposed, command), proposed.asi)

    def _changed(self, work: Checkout, base: str) -> tuple[str, str]:
        """Return the tree of a proposer's checkout, and why it is refused."""
        before = self.git.tree_of(base)
        if not work.folder.is_dir():
            return before, "out_of_scope: the whole checkout was removed"
        try:
            tree = work.tree()
        except ConfigError as error:
            return before, f"out_of_scope: git cannot read the change: {error}"
        return tree, self.guard.refusal(self.git.changes(before, tree), work.folder)

    def _run_proposer(self, work: Checkout, command: str) -> tuple[ProposerFailure | None, Measurements]:
        """Return how the proposer failed, None if it did not, and its ASI lines."""
        lines, errors = MetricLines(), MetricLines()
        data = json.dumps(self._entries.report("before", work.seen)).encode()
        try:
            end = work.run(shlex.split(command), self.session.propose_timeout, lines.feed, data, errors.feed)
        except OSError as error:
            raise ConfigError(f"the proposer {command!r} could not be started: {error.strerror or error}") from error
        asi = {**lines.result().asi, **errors.result().asi}
        measurements = attrs.evolve(lines.result(), asi=asi)
        if end is None:
            return ProposerFailure(f"it took longer than {self.session.propose_timeout:g} s"), measurements
        if not end.code:
            return None, measurements
        last = "\n".join(end.errors.decode(errors="replace").strip().splitlines()[-_LAST_LINES:])
        return ProposerFailure(end.how + (f": {last}" if last else ""), end.code, last), measurements

    def _measured(self, workspace: Workspace, commit: str, proposal: Proposal) -> tuple[Measurement, Decision, str]:
        """Measure *commit*, again while noise is unknown; return the measurement, the decision, and why it does not count."""
        before = self._entries.log().before(self.session.validation)
        for number in range(self.session.retries + 1):
            checkout = workspace.checkout(f"measured-{number}", commit, self.links.paths())
            measurement = measure(self.session, checkout)
            measurement = attrs.evolve(measurement, asi={**measurement.asi, **proposal.asi})
            if refused := self._touched(checkout, proposal.tree):
                return measurement, Decision("discard", refused.partition(":")[0]), refused
            if measurement.failure == "crash":
                return measurement, Decision("discard", "crash"), ""
            run = measurement.measured(self.session)
            decision = decide(run, before, self.session.policy)
            if decision.decision != "retry":
                return measurement, decision, ""
            if run.value is not None:
                before = attrs.evolve(before, values=[*before.values, run.value])
        return measurement, attrs.evolve(decision, decision="discard"), ""

    def _touched(self, checkout: Checkout, tree: str) -> str:
        """Return why a measurement does not count: it changed measuring files, or tracked files outside the scope."""
        if not checkout.folder.is_dir():
            return "out_of_scope: the whole checkout was removed"
        try:
            changes: list[Change] = self.git.changes(tree, checkout.tree())
        except ConfigError as error:
            return f"out_of_scope: git cannot read the change: {error}"
        return self.guard.refusal(changes, checkout.folder, measuring=True)

    def _keep(self, workspace: Workspace, proposal: Proposal, measurement: Measurement, decision: Decision) -> Outcome:
        words = proposal.words
        entry = self._entries.entry(measurement, "keep", decision, words, words["description"])
        commit = self.git.commit(proposal.tree, self._message(entry), proposal.base)
        entry = attrs.evolve(entry, commit=commit)
        pending = state.Pending(self._tree.mark, str(workspace.folder), proposal.base, attrs.asdict(entry))
        state.save(self.git.root, pending)
        self._move(commit)
        self._entries.append(entry)
        return Outcome(entry, decision)

    def _message(self, entry: Experiment) -> str:
        result = {"status": "keep", self.session.primary: entry.primary_metric, **entry.secondary_metrics}
        return f"{entry.description}\n\nResult: {json.dumps(result)}\n"

    def _move(self, commit: str) -> None:
        """Set the loop's ref to *commit*, unless it was moved by another process."""
        ref = self.ref
        self.git.move(ref, commit, self._tip)
        self._tip = self._base = commit

    def _discard(self, proposal: Proposal, measurement: Measurement, decision: Decision, refused: str) -> Outcome:
        words, discarded_ref = proposal.words, None
        if proposal.tree != self.git.tree_of(proposal.base):
            number = self._entries.next_number()
            discarded_ref = self.git.keep_discarded(number, proposal.tree, words["description"], proposal.base)
        why = refused.partition(": ")[2] or measurement.said
        reason = REASONS[decision.reason] + (f": {why}" if why else "")
        status = _STATUSES.get(decision.reason, "discard")
        words = {"rollback_reason": reason, **words}
        entry = self._entries.entry(measurement, status, decision, words, words["description"], discarded_ref)
        if proposal.failed is not None:
            entry = attrs.evolve(entry, exit_code=proposal.failed.exit_code, stderr=proposal.failed.stderr)
        self._entries.append(entry)
        return Outcome(entry, decision)

    def working_tree(self) -> str:
        """Return the tree of :attr:`base` with the scope from the user's working tree."""
        return self.git.working_tree(self.base, self.guard.specs())

    def measure_tree(self, tree: str) -> Measurement:
        """Measure *tree* in a fresh checkout."""
        commit = self.base if tree == self.git.tree_of(self.base) else self.git.commit(tree, "measured", self.base)
        try:
            return self.measure_once(commit)
        except BaseException:
            self.recover()
            raise

    def settle(self, entry: Experiment, tree: str, base: str) -> Experiment:
        """Keep or discard the *tree* measured on top of *base*, according to *entry*; return the entry of the log with its commit."""
        is_same = tree == self.git.tree_of(base)
        if entry.status == "keep":
            if base != self.base:
                raise ConfigError("Cannot keep: HEAD has moved; measure it again with dicast autoresearch run")
            commit = base if is_same else self.git.commit(tree, self._message(entry), base)
            self._move(commit)
            entry = attrs.evolve(entry, commit=commit)
        elif not is_same:
            discarded_ref = self.git.keep_discarded(entry.experiment, tree, entry.description, base)
            entry = attrs.evolve(entry, discarded_ref=discarded_ref)
        self._entries.append(entry)
        return entry
