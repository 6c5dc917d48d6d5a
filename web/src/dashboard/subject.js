// One subject: its content, and every verdict on it with its reason, cost, and place in the ledger.
import { html, useState } from "../html.js";
import { Figure, milliseconds, Num, plain, score } from "../figures.js";
import { Conversation } from "../conversation.js";
import { Media, unseenOf, withoutMedia } from "../media.js";
import { Mark } from "../marks.js";
import { reasonOf } from "../reason.js";
import { address, useAnswer } from "./api.js";
import { LabelForm } from "./label_form.js";
import { Answer, Spent, when } from "./parts.js";
import { ofRun, ofSubject } from "./router.js";

/** The words of endpoints for an output that the limit or a filter ended. */
const CUT = /length|max_|limit|refus|filter|safety/i;

export const subjectAddress = (kind, id, run) => address(`/analytics/turns/${encodeURIComponent(id)}`, { subject_kind: kind, run });

export function Subject({ kind, id, live, mayLabel, query }) {
  const [labels, setLabels] = useState(0);
  const answer = useAnswer(subjectAddress(kind, id, query.run ?? null), live.tick + labels);
  const [blind, setBlind] = useState(query.blind === "1");
  return html`<${Answer} answer=${answer}>${({ data }) => html`<div class="top"><div><p class="small">${kind.replaceAll("_", " ")}${data.session_id === null ? "" : html` of session <code dir="auto">${data.session_id}</code>${data.parent_session_id === null ? "" : html`, part of <code dir="auto">${data.parent_session_id}</code>`}`}</p><h1 class="id" dir="auto">${id}</h1><p class="small">as run <a href=${ofRun(data.run_id)}><code>${data.run_id}</code></a> judged it${data.place ? html`, from <code dir="auto">${data.place}</code>` : ""}</p></div></div>
    <div class="story"><div class="what"><h2>Subject</h2><${Evidence} data=${data} id=${id} kind=${kind} blind=${blind} /></div>
    <div class="said-of"><h2>Verdicts</h2>
      ${mayLabel ? html`<${LabelForm} kind=${kind} id=${id} run=${data.run_id} blind=${blind} onBlind=${setBlind} onGiven=${() => { setBlind(false); setLabels(labels + 1); live.again(); }} />` : null}
      ${blind ? html`<p class="note">The verdicts are hidden until you give yours.</p>` : html`<${Verdicts} data=${data} at=${answer.at} eval_=${query.eval} />`}</div></div>`}</${Answer}>`;
}

/** The conversation where there is one, with the subject's other content; no judge labels where *blind*. */
export function Evidence({ data, id, kind, blind = true }) {
  const turns = data.conversation;
  const content = data.content ?? {};
  const inside = turns !== null && kind !== "workload";
  const unseen = blind ? [] : unseenOf((data.evaluations ?? []).flatMap((one) => [[one.judge, one.signals], ...(one.scores ?? []).map((score) => [score.metric, score.signals])]), withoutMedia(content)[1]);
  if (!inside && Object.keys(content).length === 0) return html`<p class="note">The ledger does not hold the content of this subject: its <code>content</code> is not stored, or the run did not read this subject.</p>`;
  return html`${inside && !data.made ? html`<${Conversation} turns=${turns} own=${kind === "session" ? null : id} follow=${isFar(turns, id)} />` : html`<${Material} name="Input" value=${content.input} unseen=${unseen} /><${Material} name=${data.made ? "Output (the task made it)" : "Output"} value=${content.output} unseen=${unseen} />`}
    ${CUT.test(data.finish_reason ?? "") ? html`<p class="warnings" dir="auto">The output is incomplete: <code>${data.finish_reason}</code></p>` : null}
    <${Material} name="Reference" value=${content.reference} unseen=${unseen} />
    <${Context} context=${content.context ?? {}} unseen=${unseen} />`;
}

/** Whether the judged turn or call is so far down in its conversation that the page scrolls to it. */
const isFar = (turns, id) => turns.findIndex((turn) => turn.id === id || turn.messages.some((one) => one.id === id)) > 3;

const written = (value) => (typeof value === "string" ? value : value instanceof Num ? value.token : JSON.stringify(value, (_, each) => (each instanceof Num ? each.value : each), 2));

function Material({ name, value, unseen }) {
  if (value === null || value === undefined || value === "") return null;
  const [plain, media] = withoutMedia(value);
  return html`<section class="material"><h3>${name}</h3><div class="text" dir="auto">${written(plain)}</div><${Media} items=${media} unseen=${unseen} text=${written(plain)} /></section>`;
}

/** The context, folded, with its media before it. */
function Context({ context, unseen }) {
  if (!Object.keys(context).length) return null;
  const [plain, media] = withoutMedia(context);
  return html`${media.length ? html`<section class="material"><h3>Media</h3><${Media} items=${media} unseen=${unseen} /></section>` : null}
    <details class="material"><summary>Context</summary><pre dir="auto" tabindex="0">${written(plain)}</pre></details>`;
}

function Verdicts({ data, at, eval_ }) {
  const verdicts = data.evaluations.map((one, number) => [one, number]).reverse();
  return html`${verdicts.length + data.failures.length === 0 ? html`<p class="empty">No judge has judged this subject yet.</p>` : null}
    ${verdicts.map(([one, number]) => html`<${Verdict} one=${one} shown=${data} at=${(path) => at(`data.evaluations[${number}].${path}`)} chosen=${eval_ === String(one.chain.seq)} only=${verdicts.length === 1} key=${one.eval_id} />`)}
    ${data.failures.map((one, number) => html`<article class="card"><h3><span dir="auto">${one.judge}</span> <${Mark} outcome="none" word="failed" /></h3><p dir="auto">${one.origin === "task" ? "no output of the task: " : null}<code>${one.failure_mode}</code> ${one.error_message}</p>${one.finish_reason ? html`<p class="small" dir="auto">the last reply ended with <code>${one.finish_reason}</code></p>` : null}${one.reply ? html`<details><summary>The reply</summary><pre dir="auto" tabindex="0">${one.reply}</pre></details>` : null}<${Other} one=${one} shown=${data} /><${Chain} chain=${one.chain} at=${(path) => at(`data.failures[${number}].${path}`)} run=${one.run_id} /></article>`)}`;
}

/** One verdict: its score, reason, basis, cost, and place in the ledger. */
function Verdict({ one, shown, at, chosen, only }) {
  return html`<article class=${chosen ? "card chosen" : "card"} aria-current=${chosen ? "true" : undefined}>
    <header class="verdict-head"><h3 dir="auto">${one.judge}</h3><span class="soft">${one.judge_kind}${one.judge_model === null ? "" : html`, <span dir="auto">${one.judge_model}</span>`} · ${when(one.created_at)}</span></header>
    <p class="head"><span class="big"><${Figure} value=${one.score} path=${at("score")} form=${score} /></span> <span class="soft">confidence <${Figure} value=${one.confidence} path=${at("confidence")} form=${score} />${one.calibrated ? ", calibrated" : ""} · <${Spent} usd=${one.judge_cost_usd} msat=${one.judge_cost_msat} at=${(unit) => at(`judge_cost_${unit}`)} /> · <${Figure} value=${one.judge_latency_ms} path=${at("judge_latency_ms")} form=${milliseconds} /></span></p>
    <${Other} one=${one} shown=${shown} />
    <${Why} signals=${one.signals} />
    <${Scores} scores=${one.scores} at=${at} />
    <details open=${chosen || only}><summary>Signals</summary><${Tree} value=${one.signals} at=${at} path="signals" /></details>
    <details><summary>Provenance</summary><dl class="facts wide">
      <${Fact} name="rubric" value=${one.rubric_id === null ? null : `${one.rubric_id} ${one.rubric_version ?? ""}`} /><${Fact} name="basis" value=${one.basis} /><${Fact} name="tier" value=${one.tier} /><${Fact} name="pricing" value=${one.judge_pricing_version} />
      <${Fact} name="fingerprint of the judge" value=${one.fingerprint} code /><${Fact} name="verdict" value=${one.eval_id} code /><${Fact} name="based on the verdict" value=${one.parent_eval_id} code /></dl></details>
    <${Chain} chain=${one.chain} at=${at} run=${one.run_id} open=${chosen} /></article>`;
}

/** Says that a verdict is about another output than the page shows, with the way to that output. */
function Other({ one, shown }) {
  if (one.output_digest === null || shown.output_digest === null || one.output_digest === shown.output_digest) return null;
  const id = shown.subject_id ?? shown[`${shown.subject_kind}_id`];
  return html`<p class="note">This verdict is about another output, that of run <a href=${ofSubject(shown.subject_kind, id, { run: one.run_id, eval: String(one.chain.seq) })}><code>${one.run_id}</code></a>.</p>`;
}

function Why({ signals }) {
  const text = signals?.rationale_redacted ?? signals?.reason;
  const against = signals?.flags_negative ?? [];
  return html`${text ? html`<blockquote dir="auto">${written(text)}</blockquote>` : null}
    ${Array.isArray(against) && against.length ? html`<p class="flags">${against.map((flag) => html`<span class="flag" dir="auto">${written(flag).replaceAll("_", " ")}</span>`)}</p>` : null}`;
}

function Scores({ scores, at }) {
  if (!scores?.length) return null;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Scores"><table><thead><tr><th scope="col">metric</th><th scope="col" class="num">value</th><th scope="col">basis</th><th scope="col">why</th></tr></thead><tbody>${scores.map((one, number) => html`<tr><th scope="row" dir="auto">${one.metric}</th><td class="num"><${Figure} value=${one.value} path=${at(`scores[${number}].value`)} form=${score} /></td><td>${one.basis ?? one.tier}</td><td dir="auto">${reasonOf(one, written)}</td></tr>`)}</tbody></table></div>`;
}

function Fact({ name, value, code = false }) {
  return value === null || value === undefined ? null : html`<div><dt>${name}</dt><dd dir="auto">${code ? html`<code>${value}</code>` : value}</dd></div>`;
}

/** Its place in the chain, and the command that checks it. */
function Chain({ chain, at, run, open = false }) {
  return html`<details open=${open}><summary>Place in the ledger: row <${Figure} value=${chain.seq} path=${at("chain.seq")} /></summary><dl class="facts wide">
      <div><dt>run</dt><dd><a href=${ofRun(run)}><code>${run}</code></a></dd></div><${Fact} name="digest" value=${chain.digest} code /><${Fact} name="digest of the row before" value=${chain.prev} code /></dl>
    <p class="small">This checks every row, and that this one is among them:</p><pre class="command" tabindex="0">dicast ledger verify --head ${chain.digest}</pre></details>`;
}

function Tree({ value, at, path }) {
  const entries = Object.entries(value ?? {});
  if (entries.length === 0) return html`<p class="soft">none</p>`;
  return html`<dl class="facts wide">${entries.map(([key, each]) => html`<div><dt dir="auto">${key.replaceAll("_", " ")}</dt><dd dir="auto"><${Leaf} value=${each} at=${at} path=${`${path}[${JSON.stringify(key)}]`} /></dd></div>`)}</dl>`;
}

function Leaf({ value, at, path }) {
  if (value instanceof Num) return html`<${Figure} value=${value} path=${at(path)} form=${plain} />`;
  if (Array.isArray(value)) return value.length ? value.map((each, number) => html`${number ? ", " : ""}<${Leaf} value=${each} at=${at} path=${`${path}[${number}]`} />`) : "none";
  if (value !== null && typeof value === "object") return html`<${Tree} value=${value} at=${at} path=${path} />`;
  return value === null ? "–" : String(value);
}

