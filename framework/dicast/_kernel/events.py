"""Every type of event that a run records, with its payload. docs/reference/events.md is made of this module.

An event is pseudonymous where nothing else is said. A member with a question mark is left out where it has nothing to say.
"""

from __future__ import annotations

RUN_STARTED = "run.started"
"""A run begins; what a reader needs to make sense of its events.

:param name: the pipeline's name.
:param file: what says that two runs are of one pipeline file, and of one experiment in it.
:param fingerprints: digests of what can change a number, by section; ``data`` is that of the input.
:param setup: digests of what must be equal for the run to be resumed.
:param rubrics: the texts of the rubrics that this ledger has not had yet, by digest.
:param metrics: the metrics' labels.
:param on: the kinds of subjects that each metric judges, by label.
:param judges: the judges' labels.
:param inside?: of the judges inside these, the fingerprints that they would have alone, by label (``turn.stages[0]``).
:param assumed?: the values that components assume for options that the file does not have, one sentence each.
:param task: the task's name, or null.
:param extractors: the extractors' labels.
:param outputs: where the sinks write: the ``path`` of each, or the digest of its options.
:param labels?: the labels of the file: ``metrics`` for all metrics together, each judge's, each criterion of the task.
:param score_label?: the label of the run's score, or null.
:param followers?: the sinks that take the verdicts of later re-evaluations: ``{name, options, path}``.
:param counted: the labels with verdicts that decide whether a subject is scored.
:param gated: the labels that the gate looks at.
:param pass_at: the least score with which a subject passes, by label; null where none is set, as for a raw label, and for all metrics together where each has to pass.
:param pass_rule?: when a subject passes all metrics together: ``metrics`` (``all`` or ``score``), ``combine``, ``threshold``, ``weights``, ``truths``.
:param raw?: the labels whose values are on a scale of their own.
:param limit: the most subjects to read, or null.
:param live: whether the source goes on for as long as something happens.
:param preview: whether it is a try on a few rows.
:param kind: what started the run: ``pipeline``, ``suite``, ``watch``, ``evaluate``, or ``tool`` for commands that start one for their own
    purpose (``label``, ``doctor``, ``calibrate --judge-missing``, ``bisect``). ``last`` passes over ``tool``. Absent before it was recorded.
:param suite: null, or ``{id, experiments}`` with the names of the suite's experiments in the order in which they run.
:param security_level?: how secret the task says that its records are.
:param determinism_level?: how sure the task is that they come out the same again.
"""

SINKS_ADDED = "sinks.added"
"""A resumed run has sinks that it had not before.

:param outputs: where they write, as in ``run.started``.
"""

SOURCE_POSITION = "source.position"
"""A live source has read so far; the payload is the source's own."""

SUBJECT_READ = "subject.read"
"""A subject is about to be judged. User controlled.

:param digest: SHA-256 of the canonical JSON of its content.
:param content: ``{input, output, reference, context}``; null in the ledger where an earlier row has the same digest.
:param events?: where its trace events stand among those of its session, as ranges ``[start, stop]`` from 0.
:param trail?: how many events of its session came before it.
:param columns?: the columns of the data that became its parts, by name: the part (``input``), or ``[value]`` of a column that is no whole part.
:param from_run?: the run that had recorded it, where it is judged again from the ledger.
:param finish_reason?: why its output ended, where the data states it: the data's own word, or ``max_tokens`` or ``refusal`` of a turn.
:param failure?: ``{kind, message}`` of a record that failed where it was recorded; nothing is asked about it.
"""

EVAL_STARTED = "eval.started"
"""A verdict on a subject is begun.

:param eval_id: the verdict's id; the terminal event has it, too.
:param subject_kind: the subject's kind.
:param subject_id: the subject's id.
:param judge: the label: ``metrics``, or a judge's.
:param trigger: why it is judged: ``batch``, ``bus``, ``feedback_arrived`` …
:param rubric_id: the rubric that it is going to be judged by.
:param rubric_version: its version.
:param judge_kind_planned: the kind of judge that is going to be asked.
"""

EVAL_COMPLETED = "eval.completed"
"""A verdict: the members of :class:`~dicast.Verdict`. User controlled where it holds a rationale.

:param eval_id: as in ``eval.started``.
:param subject_kind: the subject's kind.
:param subject_id: the subject's id.
:param judge: the label.
:param score: in [0, 1]; null where the label's values are on a scale of their own.
:param raw?: the value of such a label; null where the proxies held the subject back.
:param confidence: in [0, 1].
:param basis: what the score rests on: ``human``, ``truth``, ``model``, ``heuristic`` or ``proxy``.
:param calibrated: whether the model was measured against labels.
:param tier: ``truth`` or ``proxy``.
:param truth_reason: why truth metrics ran: ``gate``, ``audit`` or null.
:param propensity: the probability with which the truth was looked at, or null.
:param scores: each metric's value in each rollout, with its weight, details, cost and signals.
:param skipped: the metrics that were not asked, each with its reason.
:param stratum?: the group of subjects, of those that are audited at rates of their own, that it is in.
:param spared?: what the gate kept from running, and what that might have cost.
:param signals: the evidence of the verdict.
:param judge_kind: the kind of judge that has answered.
:param judge_model: the model, or null.
:param models?: the models that answered, by the label of what asked them.
:param adapted?: the parameters that endpoints refused and that were left out or translated, by the label of the component that asked.
:param rubric_id: the rubric that it was judged by.
:param rubric_version: its version.
:param fingerprint: a digest of all that could change the number.
:param judge_cost_usd: what it cost, as decimal text; null when that is not known.
:param judge_cost_msat: likewise in thousandths of a satoshi.
:param judge_pricing_version: which price list the cost is of, or null.
:param judge_latency_ms: how long it took, in whole milliseconds.
:param parent_eval_id: the verdict on what the subject is a part of, or null.
"""

EVAL_FAILED = "eval.failed"
"""There is no verdict, and why. User controlled where it holds a reply.

:param eval_id: as in ``eval.started``.
:param subject_kind: the subject's kind.
:param subject_id: the subject's id.
:param judge: the label.
:param failure_mode: the kind of failure.
:param error_message: the reason in words.
:param reply?: the model's reply that was no verdict, where judges record it (``capture_rationale``).
:param finish_reason?: why the model's last text ended, in the endpoint's word, such as ``length``.
:param origin?: ``task`` if the task made no output, so that nothing was judged.
:param adapted?: as in ``eval.completed``.
:param rationale_scope?: ``ledger``: sinks get the reply only where they ask for content.
:param skipped?: the cap that left no room, where the subject was skipped.
:param throttled_reason?: the cap that left no room for a judge's call.
:param judge_cost_usd: what was spent all the same, as decimal text or null.
:param judge_cost_msat: likewise in thousandths of a satoshi.
:param judge_latency_ms: how long it took, in whole milliseconds.
"""

TASK_REPLIED = "task.replied"
"""A reply that a task bought, as soon as it is there. User controlled.

:param criterion: what was asked for.
:param request_digest: the digest of the request.
:param number: the reply's place among those to equal requests, from 0.
:param rollout: the rollout that it is for, from 0.
:param reply: the reply, with its tokens and cost.
"""

RECORD_COMPLETED = "record.completed"
"""The record of a row. User controlled.

:param row: the row as it was read.
:param response?: what the task answered.
:param responses?: likewise by criterion.
:param metrics: what the task measured and the extractors found.
:param retry?: how it was tried, where not the first try was the answer.
:param error?: what went wrong on the way.
:param timestamp?: when it was made.
:param security_level?: as in ``run.started``.
:param determinism_level?: as in ``run.started``.
"""

RECORD_FAILED = "record.failed"
"""A row has no record, and why. User controlled.

:param row: the row as it was read.
:param error: the reason in words.
:param failure_mode: the kind of failure.
:param timestamp: when that was.
:param retry?: how it was tried.
:param requests?: the figures of each request of the task that was made: ``prompt_tokens``, ``completion_tokens`` and ``cost`` in usd.
:param adapted?: the parameters that the endpoint of the task's model refused and that were left out or translated.
"""

SPEND_RESERVED = "spend.reserved"
"""Money is set aside for a call that is about to be made.

:param reservation_id: the reservation's id; what closes it has it, too.
:param scopes: what it counts in: the run, the day, the session.
:param amount: the most that the call may cost, as decimal text.
:param unit: ``usd`` or ``msat``.
:param lease_until: when it counts as lost unless it was closed.
:param eval_id: the verdict that it is for, or null.
:param outlives_run?: true where the reply comes in a batch: the reservation stays open until ``lease_until`` though the run's process has ended.
"""

SPEND_SETTLED = "spend.settled"
"""A call was paid for; also one that cost nothing. User controlled where the reply holds a rationale.

:param reservation_id: the reservation that it closes, or null where none was needed.
:param amount: what it cost, as decimal text; null when that is not known.
:param unit: ``usd`` or ``msat``.
:param pricing_version: which price list the amount is of, or null.
:param eval_id: the verdict that it was for, or null.
:param overrun: whether it cost more than was reserved.
:param judge: the label of the verdict.
:param metric: the label of what was asked.
:param rollout: the rollout, from 0.
:param calls: how many calls of models it was.
:param model: the model that answered, or null.
:param tokens: how many tokens the calls took, or null.
:param reply: the answer that was bought, so that it is not bought again; null where it is none to keep.
:param batch_items?: the ids of the items of batches that were paid.
"""

SPEND_RELEASED = "spend.released"
"""A reservation is closed: its call was not made, or cost nothing.

:param reservation_id: the reservation.
"""

SPEND_LOST = "spend.lost"
"""A call ended unheard: what was reserved for it counts as spent.

:param reservation_id: the reservation.
:param amount: what was reserved, as decimal text.
:param unit: ``usd`` or ``msat``.
"""

BUDGET_THROTTLED = "budget.throttled"
"""A call was not made: a cap leaves no room for it.

:param reason: the cap's name, such as ``run_cap``.
:param scope: what it counts in.
:param limit: the cap, as decimal text.
:param projected: what the call may have cost, as decimal text.
:param unit: ``usd`` or ``msat``.
"""

BATCH_INTENDED = "batch.intended"
"""A chat model is about to send calls as one batch; recorded before the first request.

:param key: the random key of the batch: it is in the batch's metadata, and begins the id of each item.
:param model: the model that is asked.
:param endpoint: the address without a password or a query.
:param identity: the digest of everything that decides a reply beside the request.
:param calls: for each item, in order, ``[digest, nonces]``: the digest of the request, and the random words in it.
:param again: whether its calls were in another batch that returned no reply for them.
:param until: when the endpoint ends the batch at the latest.
"""

BATCH_CREATED = "batch.created"
"""The endpoint has accepted a batch.

:param key: the batch, as in ``batch.intended``.
:param batch_id: the endpoint's id of it.
"""

BATCH_ENDED = "batch.ended"
"""A batch came back, or will never come back.

:param key: the batch, as in ``batch.intended``.
:param batch_id: the endpoint's id of it; null where it was never created.
:param status: the endpoint's word: ``completed``, ``expired``, ``cancelled``, ``failed`` …; ``not_created`` where the endpoint has no such batch.
:param replied: the number of items with a reply.
:param failed: the number of items without one.
"""

BATCH_EVENTS = (BATCH_INTENDED, BATCH_CREATED, BATCH_ENDED)

AGGREGATE_COMPLETED = "aggregate.completed"
"""What the run's records come to.

:param label: the aggregate's label.
:param name: its name.
:param result: what it found.
"""

COMPARISON_COMPLETED = "comparison.completed"
"""How the run compares with its baseline.

:param label: the comparison's label.
:param name: its name.
:param baseline: the id of the baseline's run.
:param result: what it found.
"""

RUN_STOPPED = "run.stopped"
"""A run ended before its end, and can be resumed; the payload is the run's document.

:param reason: why.
"""

RUN_COMPLETED = "run.completed"
"""A run came to its end; the payload is the run's document, as ``dicast run --json`` prints it.

:param reason?: why it needed no further subject.
"""

PLAN_MADE = "plan.made"
"""What a run of a pipeline is going to take was said, before it was bought; the event belongs to no run.

:param file: of which pipeline file, as in ``run.started``.
:param setup: digests of what the plan is about, as in ``run.started``.
:param plan: the document of ``dicast plan --json``.
"""

BASELINE_SAVED = "baseline.saved"
"""A run is given a name, by which later runs are compared with it; the event stands behind those of the run.

:param name: the name; a later event with the same moves it to another run.
"""

BASELINE_REMOVED = "baseline.removed"
"""A run's name is taken away; the run stays.

:param name: the name.
"""

VERDICT_ENDS = (EVAL_COMPLETED, EVAL_FAILED)

RECORD_ENDS = (RECORD_COMPLETED, RECORD_FAILED)

RESERVED_AREAS = (
    *("run.", "subject.", "eval.", "record.", "aggregate.", "comparison."),
    *("spend.", "budget.", "task.", "source.", "sinks.", "baseline.", "plan.", "batch."),
)
"""How the types begin of events that only a run records; a trace's own events of such a type are recorded as ``trace.TYPE``."""
