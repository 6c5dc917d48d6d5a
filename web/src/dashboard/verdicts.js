// The verdicts of a run on a subject, with those of people on the same output: score, reason, cost, and place in the ledger.
import { html } from "../html.js";
import { Figure, milliseconds, Num, plain, score } from "../figures.js";
import { Mark } from "../marks.js";
import { reasonOf } from "../reason.js";
import { written } from "./evidence.js";
import { Spent, when } from "./parts.js";
import { ofRun, ofSubject } from "./router.js";

/** `labels` are the labels of the run that judged the subject, each with its outcome and its line `pass_at`; `lineAt(number, name)` is the place of one. */
export function Verdicts({ data, at, chosen, labels = [], lineAt }) {
  const isShown = (one) => one.run_id === data.run_id || chosen === String(one.chain.seq) || isOfPeople(one, data);
  const verdicts = data.evaluations.map((one, number) => [one, number]).filter(([one]) => isShown(one)).reverse();
  const failures = data.failures.map((one, number) => [one, number]).filter(([one]) => isShown(one));
  const lineOf = (label) => labels.map((found, number) => ({ found, path: lineAt(number, "pass_at") })).find(({ found }) => found.label === label) ?? null;
  const others = new Set([...data.evaluations, ...data.failures].filter((one) => !isShown(one)).map((one) => one.run_id)).size;
  return html`${verdicts.length + failures.length === 0 ? html`<p class="empty">No judge of this run has judged this subject yet.</p>` : null}
    ${failures.map(([one, number]) => html`<${Failure} one=${one} shown=${data} at=${(path) => at(`data.failures[${number}].${path}`)} key=${`failure ${one.chain.seq}`} />`)}
    ${verdicts.map(([one, number]) => html`<${Verdict} one=${one} shown=${data} at=${(path) => at(`data.evaluations[${number}].${path}`)} chosen=${chosen === String(one.chain.seq)} only=${verdicts.length === 1} line=${one.run_id === data.run_id ? lineOf(one.judge) : null} lineOf=${one.run_id === data.run_id ? lineOf : () => null} key=${one.eval_id} />`)}
    ${others ? html`<p class="note">${plain(others)} other ${others === 1 ? "run has" : "runs have"} verdicts on this subject: choose ${others === 1 ? "it" : "one"} in <em>run</em> above.</p>` : null}`;
}

/** Whether a verdict was given by a person or another tool's run on the shown output. */
function isOfPeople(one, data) {
  const run = data.runs.find((each) => each.run_id === one.run_id);
  return run?.kind === "tool" && (one.output_digest === null || data.output_digest === null || one.output_digest === data.output_digest);
}

function Failure({ one, shown, at }) {
  return html`<article class="card"><h3><span dir="auto">${one.judge}</span> <${Mark} outcome="none" /></h3><p dir="auto">${one.origin === "task" ? "no output of the task: " : null}<code>${one.failure_mode}</code> ${one.error_message}</p>${one.finish_reason ? html`<p class="small" dir="auto">the last reply ended with <code>${one.finish_reason}</code></p>` : null}${one.reply ? html`<details><summary>The reply</summary><pre dir="auto" tabindex="0">${one.reply}</pre></details>` : null}<${Other} one=${one} shown=${shown} /><${Chain} chain=${one.chain} at=${at} run=${one.run_id} /></article>`;
}

/** One verdict: its score, reason, basis, cost, and place in the ledger. */
function Verdict({ one, shown, at, chosen, only, line, lineOf }) {
  return html`<article class=${chosen ? "card chosen" : "card"} aria-current=${chosen ? "true" : undefined}>
    <header class="verdict-head"><h3 dir="auto"><${Name} one=${one} /></h3><span class="soft">${one.judge_kind}${one.judge_model === null ? "" : html`, <span dir="auto">${one.judge_model}</span>`} · ${when(one.created_at)}</span></header>
    <p class="head"><span class="big"><${Figure} value=${one.score} path=${at("score")} form=${score} /></span> <${Line} line=${line} /> ${one.retracted ? html`<span class="mark none">taken back</span> ` : null}<span class="soft">confidence <${Figure} value=${one.confidence} path=${at("confidence")} form=${score} />${one.calibrated ? ", calibrated" : ""} · <${Spent} usd=${one.judge_cost_usd} msat=${one.judge_cost_msat} at=${(unit) => at(`judge_cost_${unit}`)} /> · <${Figure} value=${one.judge_latency_ms} path=${at("judge_latency_ms")} form=${milliseconds} /></span></p>
    <${Other} one=${one} shown=${shown} />
    <${Why} signals=${one.signals} />
    <${Scores} scores=${one.scores} at=${at} lineOf=${lineOf} />
    <div class="folds"><details open=${chosen || only}><summary>Signals</summary><${Tree} value=${one.signals} at=${at} path="signals" /></details>
    <details><summary>Provenance</summary><dl class="facts wide">
      <${Fact} name="rubric" value=${one.rubric_id === null ? null : `${one.rubric_id} ${one.rubric_version ?? ""}`} /><${Fact} name="basis" value=${one.basis} /><${Fact} name="tier" value=${one.tier} /><${Fact} name="pricing" value=${one.judge_pricing_version} />
      <${Fact} name="fingerprint of the judge" value=${one.fingerprint} code /><${Fact} name="verdict" value=${one.eval_id} code /><${Fact} name="based on the verdict" value=${one.parent_eval_id} code /></dl></details>
    <${Chain} chain=${one.chain} at=${at} run=${one.run_id} open=${chosen} /></div></article>`;
}

/** The judge of a verdict; a label of a person bears the person's name, also where `dicast label` recorded it as the judge `human`. */
function Name({ one }) {
  const person = one.signals?.labeller ? written(one.signals.labeller) : null;
  if (person !== null && one.judge === "human") return person;
  return html`${one.judge}${person === null ? null : html` <span class="soft">by ${person}</span>`}`;
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

function Scores({ scores, at, lineOf }) {
  if (!scores?.length) return null;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Scores"><table><thead><tr><th scope="col">metric</th><th scope="col" class="num">value</th><th scope="col">outcome</th><th scope="col">basis</th><th scope="col">why</th></tr></thead><tbody>${scores.map((one, number) => html`<tr><th scope="row" dir="auto">${one.metric}</th><td class="num"><${Figure} value=${one.value} path=${at(`scores[${number}].value`)} form=${score} /></td><td><${Line} line=${lineOf(one.metric)} /></td><td>${one.basis ?? one.tier}</td><td dir="auto">${reasonOf(one, written)}</td></tr>`)}</tbody></table></div>`;
}

/** Whether a value passes, and the line that it is compared with. */
function Line({ line }) {
  if (line === null) return null;
  const { found, path } = line;
  return html`<${Mark} outcome=${found.outcome} />${found.pass_at === null ? null : html` <span class="soft">line <${Figure} value=${found.pass_at} path=${path} form=${plain} /></span>`}`;
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

