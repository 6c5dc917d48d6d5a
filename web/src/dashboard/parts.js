// Small parts that several views share.
import { html } from "../html.js";
import { Figure, score } from "../figures.js";
import { Id } from "../id.js";
import { Mark } from "../marks.js";
import { address } from "./api.js";
import { ofRun, ofSubject } from "./router.js";

export const day = (time) => (time ? time.slice(0, 10) : "");
export const when = (time) => (time ? `${time.slice(0, 10)} ${time.slice(11, 16)}` : "–");
export const clock = (time) => (time ? time.slice(11, 19) : "");

/** Runs that a command started for a purpose of its own: labels of people, the questions of `dicast doctor`. */
export const TOOL = "tool";

/** The name of a label for a reader: all metrics together have the name of the only metric of a file. */
export const nameOf = (run, label) => (label === "metrics" && run.only_metric ? run.only_metric : label);

/** The score of a listed run; of a run whose file has several labels, the mean of each, the gate's label first and in bold. A label opens its trend. */
export function RunScore({ run, at }) {
  const isFirst = (label) => label === (run.gate_label ?? run.score_label);
  const labels = Object.entries(run.labels ?? {}).sort(([one], [other]) => isFirst(other) - isFirst(one));
  if (labels.length < 2) return html`<${Figure} value=${run.score} path=${at("score")} form=${score} />`;
  return html`<span class="by-label">${labels.map(([label, one]) => html`<span class=${isFirst(label) ? "strong" : ""}><a href=${ofRun(run.run_id, { label })} dir="auto">${nameOf(run, label)}</a> <${Figure} value=${one.mean} path=${at(`labels[${JSON.stringify(label)}].mean`)} form=${score} /></span> `)}</span>`;
}

const STATES = { running: ["open", "running"], waiting: ["open", "waits for a batch"], stopped: ["none", "stopped"], dead: ["none", "dead"] };
const GATE = { passed: ["pass", "passed"], failed: ["fail", "failed"], undecided: ["none", "undecided"] };
/** Whether the mark of the gate says the state of a run. */
export const isStateShown = (run) => run.state in STATES && run.gate === null;

export function Gate({ run }) {
  if (isStateShown(run)) return html`<${Mark} outcome=${STATES[run.state][0]} word=${STATES[run.state][1]} />`;
  const [outcome, word] = GATE[run.gate] ?? ["open", "no gate"];
  return html`<${Mark} outcome=${outcome} word=${word} />`;
}

/** An amount with two decimals or more: six, or as many as three significant digits need. Below 0.000001 it has a power of ten. */
function amount(text) {
  const value = Number(text);
  if (value !== 0 && Math.abs(value) < 0.000001) return value.toExponential(2);
  const [, , places = ""] = /^(.*?)(?:\.(\d*))?$/.exec(String(text));
  const needed = value === 0 ? 6 : Math.max(6, 2 - Math.floor(Math.log10(Math.abs(value))));
  const most = Math.min(needed, Math.max(2, places.length));
  return value.toLocaleString("en", { minimumFractionDigits: value === 0 ? 0 : 2, maximumFractionDigits: most });
}

/** Money; its token is the amount as the API wrote it. */
export function Usd({ value, path, none }) {
  return html`<${Figure} value=${value} path=${path} form=${(text) => `$${amount(text)}`} none=${none ?? "not known"} />`;
}

/** The settled cost of a run, and at most how much its open and lost reservations can add. `at` gives the place of a figure. */
export function Cost({ of, at }) {
  const { usd, msat } = of.unsettled;
  const isSettled = Number(usd) === 0 && Number(msat) === 0;
  return html`<${Spent} usd=${of.cost.usd} msat=${of.cost.msat} at=${(unit) => at(`cost.${unit}`)} />${isSettled ? null : html` <${Unsettled} usd=${usd} msat=${msat} at=${(unit) => at(`unsettled.${unit}`)} />`}`;
}

/** At most how much open and lost reservations can add to a settled cost. */
export function Unsettled({ usd, msat, at }) {
  return html`<span class="soft">at most <${Spent} usd=${usd} msat=${msat} at=${at} /> not settled</span>`;
}

/** The cost in both units, which are never added; the second unit is shown where its amount is not zero. `at` gives the place of each. */
export function Spent({ usd, msat = null, at, none }) {
  const other = msat !== null && msat !== undefined && Number(msat) !== 0;
  if (other && Number(usd) === 0 && usd !== null) return html`<${Msat} value=${msat} path=${at("msat")} />`;
  return html`<${Usd} value=${usd} path=${at("usd")} none=${none} />${other ? html` + <${Msat} value=${msat} path=${at("msat")} />` : null}`;
}

function Msat({ value, path }) {
  return html`<${Figure} value=${value} path=${path} form=${(text) => Number(text).toLocaleString("en")} unit=" msat" />`;
}

export function Problem({ error }) {
  return html`<p class="warnings" role="alert" dir="auto">${error.message}</p>`;
}

/** An answer on the page: its error, words while it loads, which name `what` is read, or the result of `children` for the document. An answer that is a whole page has a `heading` until its document is there. Figures of an earlier choice are marked until the answer to the new choice is there. */
export function Answer({ answer, children, none = null, what = "", heading = null }) {
  const head = heading === null ? null : html`<h1 class="id" dir="auto">${heading}</h1>`;
  if (answer.error) return none ? none(answer.error) : html`${head}<${Problem} error=${answer.error} />`;
  if (!answer.document) return html`${head}<p class="empty" role="status">Reading ${what ? `${what} ` : ""}…</p>`;
  return html`<div class=${answer.fresh === false ? "answer earlier" : "answer"} aria-busy=${answer.fresh === false ? "true" : undefined}>${answer.fresh === false ? html`<p class="hidden" role="status">The figures of the earlier choice remain until the new ones are read.</p>` : null}${children(answer.document)}</div>`;
}

export function Tile({ title, id, wide = false, children, more = null }) {
  return html`<section class=${wide ? "tile wide" : "tile"} aria-labelledby=${id}><header class="tile-head"><h2 id=${id}>${title}</h2>${more}</header>${children}</section>`;
}

/** A table of figures by label that a narrow window shows as one block a label. `heads` are `[word, class]` of the columns after the label's; `rows` are `[label, cells]`. */
export function ByLabel({ title, heads, rows, className = "list" }) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${title}><table class=${`${className} stacked`} role="table"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">label</th>${heads.map(([word, kind]) => html`<th scope="col" role="columnheader" class=${kind}>${word}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map(([label, cells]) => html`<tr role="row"><th scope="row" role="rowheader" dir="auto">${label}</th>${cells.map((cell, number) => html`<td role="cell" class=${heads[number][1]} data-head=${heads[number][0]} dir="auto"><span>${cell}</span></td>`)}</tr>`)}</tbody></table></div>`;
}

/** A verdict or a failure on one line, which opens its subject. Its number is that of the row in its run. */
export function Line({ row }) {
  const path = `${address(`/runs/${encodeURIComponent(row.run_id)}/rows`, { seq: String(row.seq) })}#data[0].score`;
  return html`<a class="line" href=${ofSubject(row.subject_kind, row.subject_id, { run: row.run_id, eval: String(row.seq) })}>
    <span class="line-score">${row.failed ? html`<${Mark} outcome="none" />` : html`<${Figure} value=${row.score} path=${path} form=${score} />`}</span>
    <${Id} id=${row.subject_id} className="line-id" /><span class="soft line-by" dir="auto">${row.judge}</span><span class="soft line-at">${clock(row.created_at)}</span></a>`;
}
