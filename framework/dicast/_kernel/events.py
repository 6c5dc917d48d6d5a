"""Types of events that a run records, with their payloads. docs/reference/events.md is generated from this module.

An event is pseudonymous unless stated otherwise. A member with a question mark is optional.
"""

from __future__ import annotations

RUN_STARTED = "run.started"
"""A run starts; the properties that a reader of its events needs.

:param name: the pipeline's name.
:param file: the identity of the pipeline file and of the experiment in it; equal for two runs of the same.
:param fingerprints: digests of everything that can change a score, by section; ``data`` is the digest of the input.
:param setup: digests that must be equal to resume the run.
:param rubrics: the digests of the rubrics' texts, by id and version.
:param metrics: the metrics' labels.
:param on: the kinds of subjects that each metric judges, by label.
:param judges: the judges' labels.
:param inside?: the fingerprints of nested judges, by label (``turn.stages[0]``).
:param assumed?: the values that components assume for options that the file does not have, one sentence each.
:param task: the task's name, or null.
:param options?: the options of the task, the extractors, the metrics and the judges, by section and path: ``{SECTION: {counting, others?}}``; ``counting``
    ones can change a score. A value is JSON text; a long text and the value of an environment variable are digests.
:param prompts?: the texts of the task's prompts before a row fills them, ``{CRITERION: {ROLE: TEXT}}`` with the roles ``system`` and ``user``; the
    criterion is ``default`` for a task without criteria. The value of an environment variable may be a secret, so the text has the variable's name
    (``${NAME}``); a default or a variable of an experiment is filled in, and the value of an option that is a secret as ``***``. A ledger with
    ``content: digest`` has ``{CRITERION: {"digest": SHA256}}``.
:param extractors: the extractors' labels.
:param outputs: the places that the sinks write to: the ``path`` of each, or the digest of its options.
:param labels?: the labels of the file: ``metrics`` for all metrics together, each judge, each criterion of the task.
:param score_label?: the label of the run's score, or null.
:param followers?: the sinks that take the verdicts of later re-evaluations: ``{name, options, path}``.
:param counted: the labels whose verdicts decide if a subject is scored.
:param gated: the labels that the gate uses.
:param pass_at: the smallest passing score, by label; null if none is set, as for a raw label, and for all metrics together if each has to pass.
:param pass_rule?: when a subject passes all metrics together: ``metrics`` (``all`` or ``score``), ``combine``, ``threshold``, ``weights``, ``truths``.
:param raw?: the labels with a raw scale.
:param rollouts?: the number of outputs that the task makes for each subject, if it is not 1.
:param limit: the largest number of subjects to read, or null.
:param filter?: the rules that select the subjects, as the user wrote them after ``--filter``.
:param selected?: the subjects that ``--filter failing`` selected when the run started, ``{RULE: {KIND: [ID]}}``. A resumed run keeps them,
    even if the other run has changed since. Older versions did not record them.
:param set?: the values of ``--set``, for the command that resumes the run. A setting is its path alone if its value is a secret or an
    address with a user, and always in a ledger with ``content: digest``.
:param only?: the values of ``--only``.
:param expected?: the number of subjects that the source has, at most ``limit``, if the source counted them.
:param live: true if the source is live.
:param preview: true for a try on a few rows.
:param kind: the kind of the run: ``pipeline``, ``suite``, ``watch``, ``evaluate``, ``shard``, or ``tool`` for commands that start a run for their own
    purpose (``label``, ``doctor``, ``calibrate --judge-missing``, ``bisect``). ``last`` skips ``tool``. Older versions did not record it.
:param shard?: the part of the subjects that the run judges: ``{number, of, file, set, only, run?}``, with words of the command for ``dicast merge``, and the
    run whose executor started it.
:param shards?: the runs that a merged run was made of: ``{shard, run_id, ledger}``.
:param split?: the segments in which workers record the run's shards: ``{of, folder, ledger}`` with the number of shards, and the folder or the ledger.
:param suite: null, or ``{id, experiments}`` with the names of the suite's experiments in the order in which they run.
:param security_level?: the secrecy of the records, as the task declares it.
:param determinism_level?: the reproducibility of the records, as the task declares it.
"""

SINKS_ADDED = "sinks.added"
"""A resumed run has new sinks.

:param outputs: the places that they write to, as in ``run.started``.
"""

SOURCE_POSITION = "source.position"
"""The reading position of a live source; the source defines the payload."""

SUBJECT_READ = "subject.read"
"""A subject is about to be judged. User controlled.

:param digest: SHA-256 of the canonical JSON of its content.
:param place?: where its data come from, such as ``sessions/a.jsonl:12``; a path in the folder of the pipeline is relative to it.
:param content: ``{input, output, reference, context}``; null in the ledger if an earlier row has the same digest.
:param events?: the positions of its trace events in its session, as ranges ``[start, stop]`` from 0.
:param trail?: the number of events of its session before it.
:param columns?: the columns of the data that became its parts, by name: the part (``input``), or ``[value]`` of a column that is not a complete part.
:param from_run?: the run that recorded it, if it is judged again from the ledger.
:param weight?: the number of subjects that it represents in a sample, if that is not 1.
:param parent_id?: of a session, the session that started it, or its workload.
:param finish_reason?: why its output ended, if the data states it: the data's word, or ``max_tokens`` or ``refusal`` for a turn.
:param position?: in a shard, its place among the subjects of all shards, from 0.
:param failure?: ``{kind, message}`` of a record that was recorded as failed; it is not judged.
"""

EVAL_STARTED = "eval.started"
"""The evaluation of a subject starts.

:param eval_id: the verdict's id, also in the terminal event.
:param subject_kind: the subject's kind.
:param subject_id: the subject's id.
:param judge: the label: ``metrics``, or a judge's label.
:param trigger: why it is judged: ``batch``, ``bus``, ``feedback_arrived`` …
:param rubric_id: the planned rubric.
:param rubric_version: its version.
:param judge_kind_planned: the planned kind of judge.
"""

EVAL_COMPLETED = "eval.completed"
"""A verdict: the members of :class:`~dicast.Verdict`. User controlled if it holds a rationale.

:param eval_id: as in ``eval.started``.
:param subject_kind: the subject's kind.
:param subject_id: the subject's id.
:param judge: the label.
:param score: in [0, 1]; null for a label with a raw scale, and for a category of another tool (``signals.category``).
:param raw?: the value of a raw label; null if the proxies held the subject back.
:param confidence: in [0, 1].
:param basis: the basis of the score: ``human``, ``truth``, ``model``, ``heuristic``, ``proxy`` or, for a score of another tool, ``recorded``.
:param calibrated: true if the model was measured against labels.
:param tier: ``truth`` or ``proxy``.
:param truth_reason: why truth metrics ran: ``gate``, ``audit`` or null.
:param propensity: the probability with which the truth metrics ran, or null.
:param scores: each metric's value in each rollout, with its weight, details, cost and signals.
:param skipped: the metrics that did not run, each with its reason.
:param stratum?: the audit group of the subject, if groups have their own audit rates.
:param spared?: the metrics that did not run because of the gate, with their possible cost.
:param signals: the evidence of the verdict.
:param judge_kind: the kind of judge that answered; ``recorded`` for a score of another tool, with the label ``recorded/NAME``.
:param judge_model: the model, or null.
:param models?: the models that answered, by the label of the component that called them.
:param adapted?: the parameters that endpoints refused and that were left out or translated, by the label of the component that called.
:param rubric_id: the rubric.
:param rubric_version: its version.
:param fingerprint: a digest of everything that can change the score.
:param judge_cost_usd: the cost, as decimal text; null if unknown.
:param judge_cost_msat: the cost in thousandths of a satoshi.
:param judge_pricing_version: the price list of the cost, or null.
:param judge_latency_ms: the duration in whole milliseconds.
:param parent_eval_id: the verdict on the subject's parent, or null.
"""

EVAL_FAILED = "eval.failed"
"""An evaluation failed without a verdict. User controlled if it holds a reply.

:param eval_id: as in ``eval.started``.
:param subject_kind: the subject's kind.
:param subject_id: the subject's id.
:param judge: the label.
:param failure_mode: the kind of failure.
:param error_message: the reason in words.
:param reply?: the model's reply that was no verdict, if judges record it (``capture_rationale``).
:param finish_reason?: why the model's last text ended, in the endpoint's term, such as ``length``.
:param origin?: ``task`` if the task made no output, so that nothing was judged.
:param adapted?: as in ``eval.completed``.
:param rationale_scope?: ``ledger``: sinks get the reply only if they ask for content.
:param skipped?: the exhausted cap, if the subject was skipped.
:param throttled_reason?: the cap that prevented a judge's call.
:param judge_cost_usd: the amount spent despite the failure, as decimal text or null.
:param judge_cost_msat: the cost in thousandths of a satoshi.
:param judge_latency_ms: the duration in whole milliseconds.
"""

TASK_REPLIED = "task.replied"
"""A reply that a task paid for, recorded as soon as it arrives. User controlled.

:param criterion: the requested criterion.
:param request_digest: the digest of the request.
:param number: the reply's index among the replies to equal requests, from 0.
:param rollout: the rollout, from 0.
:param reply: the reply, with its tokens and cost.
"""

RECORD_COMPLETED = "record.completed"
"""The record of a row, which is the whole payload. User controlled.

:param row: the row as it was read.
:param response?: the task's response.
:param responses?: the task's responses, by criterion.
:param metrics: the measurements of the task and of the extractors.
:param retry?: the attempts, if the first attempt was not the answer.
:param error?: an error before the answer.
:param timestamp?: the time of the record.
:param security_level?: as in ``run.started``.
:param determinism_level?: as in ``run.started``.
"""

RECORD_FAILED = "record.failed"
"""A row failed without a record. User controlled.

:param row: the row as it was read.
:param error: the reason in words.
:param failure_mode: the kind of failure.
:param timestamp: the time of the failure.
:param retry?: the attempts.
:param requests?: the figures of each request of the task: ``prompt_tokens``, ``completion_tokens`` and ``cost`` in usd.
:param adapted?: the parameters that the endpoint of the task's model refused and that were left out or translated.
"""

SPEND_RESERVED = "spend.reserved"
"""Money is reserved for a call before it is made.

:param reservation_id: the reservation's id, also in the event that closes it.
:param scopes: the budgets that it counts in: the run, the day, the session; in a shard, also its share of the day.
:param amount: the largest cost of the call, as decimal text.
:param unit: ``usd`` or ``msat``.
:param lease_until: the time from which it counts as lost unless it was closed.
:param eval_id: the verdict that the call is for, or null.
:param outlives_run?: true if the reply comes in a batch: the reservation stays open until ``lease_until`` even after the run's process has ended.
"""

SPEND_SETTLED = "spend.settled"
"""A call was paid for, even if it cost nothing. User controlled if the reply holds a rationale.

:param reservation_id: the reservation that it closes, or null if none was needed.
:param amount: the cost, as decimal text; null if unknown.
:param unit: ``usd`` or ``msat``.
:param pricing_version: the price list of the amount, or null.
:param eval_id: the verdict that the call was for, or null.
:param overrun: true if it cost more than was reserved.
:param judge: the label of the verdict.
:param metric: the label of the called component.
:param rollout: the rollout, from 0.
:param calls: the number of model calls.
:param model: the model that answered, or null.
:param tokens: the number of tokens of the calls, or null.
:param reply: the paid answer, so that it is not paid for again; null if there is none to keep.
:param batch_items?: the ids of the paid items of batches.
"""

SPEND_RELEASED = "spend.released"
"""A reservation is closed: its call was not made, or cost nothing.

:param reservation_id: the reservation.
"""

SPEND_LOST = "spend.lost"
"""A call ended without a known result: its reservation counts as spent.

:param reservation_id: the reservation.
:param amount: the reserved amount, as decimal text.
:param unit: ``usd`` or ``msat``.
"""

BUDGET_THROTTLED = "budget.throttled"
"""A call was not made because of a cap.

:param reason: the cap's name, such as ``run_cap``.
:param scope: the budget that the cap belongs to.
:param limit: the cap, as decimal text.
:param projected: the projected cost of the call, as decimal text.
:param unit: ``usd`` or ``msat``.
:param spent?: the amount that all runs in the ledger spent in the scope before the call, as decimal text; with open reservations if the spent
    amounts alone leave enough for the call. Only if the ledger states it.
:param cap?: the cap of the file, as decimal text, if the limit is the share of a shard or of a worker.
"""

BATCH_INTENDED = "batch.intended"
"""A chat model is about to send calls as one batch; recorded before the first request.

:param key: the random key of the batch, which is in the batch's metadata and starts the id of each item.
:param model: the called model.
:param endpoint: the address without a password or a query.
:param identity: the digest of everything that affects a reply except the request.
:param calls: for each item, in order, ``[digest, nonces]``: the digest of the request, and the random words in it.
:param again: true if its calls were in another batch that returned no reply for them.
:param until: the latest time at which the endpoint ends the batch.
"""

BATCH_CREATED = "batch.created"
"""The endpoint has accepted a batch.

:param key: the batch, as in ``batch.intended``.
:param batch_id: the endpoint's id of the batch.
"""

BATCH_ENDED = "batch.ended"
"""A batch was completed, or never will be.

:param key: the batch, as in ``batch.intended``.
:param batch_id: the endpoint's id of the batch; null if it was never created.
:param status: the endpoint's status: ``completed``, ``expired``, ``cancelled``, ``failed`` …; ``not_created`` if the endpoint has no such batch.
:param replied: the number of items with a reply.
:param failed: the number of items without a reply.
"""

BATCH_EVENTS = (BATCH_INTENDED, BATCH_CREATED, BATCH_ENDED)

AGGREGATE_COMPLETED = "aggregate.completed"
"""The result of an aggregate over the run's records.

:param label: the aggregate's label.
:param name: its name.
:param result: its result.
"""

COMPARISON_COMPLETED = "comparison.completed"
"""The result of a comparison of the run with its baseline.

:param label: the comparison's label.
:param name: its name.
:param baseline: the id of the baseline's run.
:param result: its result.
"""

SHARD_COMMITTED = "shard.committed"
"""The worker of a shard has ended, and its events are in its segment.

:param number: the number of the shard.
:param of: the number of shards.
:param place: the ledger of the segment.
:param run_id: the id of the shard's run in this ledger.
:param subjects: the number of subjects in the segment.
:param is_complete: true if every subject of the shard was reached.
:param reason: the reason why the shard is not complete, or null.
:param head: ``{seq, digest}`` of the segment.
"""

SHARD_MERGING = "shard.merging"
"""The events of the segments follow, in the order of the source.

:param segments: the rows of each segment: ``{number, after, until}``.
:param streams: true if the segments are read one after the other, which a continued transfer repeats.
"""

SHARD_ROOTED = "shard.rooted"
"""The heads of the shards whose events are in the ledger of the run, and the root of their Merkle tree (RFC 6962), which is the head of the run over its shards.

:param shards: for each shard ``{number, run_id, count, head, place}``: its number, its run in the ledger at *place*, the number of its subjects, and ``{seq, digest}`` of its last event.
:param root: the root of the tree over ``[number, run_id, count, seq, digest]`` of each shard.
"""

SHARD_MERGED = "shard.merged"
"""The events of the segments are in the ledger of the run, and no worker continues a segment.

:param is_complete: false if the run continues without its segments.
"""

RUN_STOPPED = "run.stopped"
"""A run stopped early and can be resumed; the payload is the run's document.

:param reason: the reason for the stop.
"""

RUN_COMPLETED = "run.completed"
"""A run was completed; the payload is the run's document, as ``dicast run --json`` prints it.

:param reason?: the reason for an early stop.
"""

PLAN_MADE = "plan.made"
"""The cost and effort of a run were planned before it started; the event belongs to no run.

:param file: the identity of the pipeline file, as in ``run.started``.
:param setup: the digests of the planned run, as in ``run.started``.
:param plan: the document of ``dicast plan --json``.
"""

BASELINE_SAVED = "baseline.saved"
"""A run was saved as a baseline under a name; the event follows the events of the run.

:param name: the name; a later event with the same name moves it to another run.
"""

BASELINE_REMOVED = "baseline.removed"
"""A baseline's name was removed; the run stays.

:param name: the name.
"""

CONTENT_ERASED = "content.erased"
"""Judged texts were removed from the ledger; their digests and all verdicts stay. The event belongs to no run.

:param digests: the digests of the removed contents.
:param reason: the reason, as the user gave it.
"""

VERDICT_ENDS = (EVAL_COMPLETED, EVAL_FAILED)

RECORD_ENDS = (RECORD_COMPLETED, RECORD_FAILED)

RESERVED_AREAS = (
    *("run.", "subject.", "eval.", "record.", "aggregate.", "comparison."),
    *("spend.", "budget.", "task.", "source.", "sinks.", "baseline.", "plan.", "batch.", "content.", "shard."),
)
"""Prefixes of event types that only a run records; a trace's event of such a type is recorded as ``trace.TYPE``."""
