// One subject, opened: its verdicts, and its content.
import { html } from "../html.js";
import { at, Figure, milliseconds, Num, plain, score } from "../figures.js";
import { Conversation } from "../conversation.js";
import { Drawer } from "../drawer.js";
import { MANY, useFirst } from "./first_of.js";
import { Mark } from "../marks.js";
import { reasonOf } from "../reason.js";
import { listed, Media, unseenOf } from "../media.js";
import { Differences, Readable } from "../readable/readable.js";
import { visible } from "../readable/visible.js";

export function SubjectDrawer({ subject, report, onClose, onStep }) {
  const rows = subject.rows.map((row, number) => [row, report.runs[number]]).filter(([row]) => row !== null);
  const actions = html`<button class="quiet" type="button" onClick=${() => onStep(-1)} aria-label="Previous"><span aria-hidden="true">↑</span></button>
    <button class="quiet" type="button" onClick=${() => onStep(1)} aria-label="Next"><span aria-hidden="true">↓</span></button>`;
  const alike = rows.length > 1 && new Set(rows.map(([row]) => `${row.text("inputs")}\n${row.text("references")}`)).size === 1;
  return html`<${Drawer} title=${`${subject.kind.replaceAll("_", " ")} ${subject.id}`} onClose=${onClose} actions=${actions} key=${subject.key}>
    ${alike ? html`<${Given} row=${rows[0][0]} />` : null}
    <div class=${rows.length > 1 ? "side-by-side" : ""}>${rows.map(([row, run], number) => html`<div class="side">
      ${rows.length > 1 ? html`<h3 dir="auto">${run.title}</h3>` : null}<${OneRow} row=${row} shared=${alike} subject=${subject} against=${number === 0 ? (rows.length > 1 ? [] : null) : [rows[0][1].title, rows[0][0].text("outputs")]} /></div>`)}</div>
  </${Drawer}>`;
}

function OneRow({ row, shared, subject, against: other }) {
  const against = [["reference", row.text("references")], ...(other?.length ? [other] : []), ["baseline", row.text("old")]];
  const ended = row.ended;
  const turns = row.turns;
  const outside = turns === null || subject.kind === "workload";
  const unseen = unseenOf(signalsBy(ended), [INPUT, OUTPUT, REFERENCE, CONTEXT].flatMap((where) => row.media(where)));
  return html`<p class="lead"><${Mark} outcome=${row.outcome} /> ${row.score === null ? null : html`<span>score <strong><${Figure} value=${row.score} path=${`${row.path}.score`} form=${score} /></strong></span>`}
      ${row.was === null || row.was === undefined ? null : html`<span class="soft"> (baseline <${Figure} value=${row.was} form=${score} />)</span>`}</p>
    ${row.file === null ? null : html`<p class="small">From <code dir="auto">${row.file}</code></p>`}
    <${Parent} row=${row} />
    ${shared ? html`<${Material} name="Output" text=${row.text("outputs")} media=${row.media(OUTPUT)} unseen=${unseen} against=${against} />` : null}
    ${turns === null && other === null && row.text("old") !== null ? html`<${Against} row=${row} />` : null}
    <${Verdicts} ended=${ended} row=${row} />
    ${unseen.map(({ label, counts }) => html`<p class="note" dir="auto">${label} saw markers in place of ${listed(counts)}.</p>`)}
    ${turns === null ? null : html`<${Conversation} turns=${turns} own=${subject.kind === "session" ? null : subject.id} verdict=${verdictOf(row, subject)} turnsOf=${(session) => row.turnsOf(session)} />`}
    ${outside && !shared ? html`<${Given} row=${row} output unseen=${unseen} against=${against} />` : null}
    ${outside || shared ? null : html`<${Reference} row=${row} unseen=${unseen} />`}
    <${Record} record=${row.record} row=${row} />
    <${Material} name="Context" text=${row.text("contexts")} folded />
    <${Evidence} ended=${ended} row=${row} />`;
}

/** The baseline's output next to this one, with their differences marked. */
function Against({ row }) {
  return html`<section class="material"><h3>Next to the baseline</h3><div class="side-by-side">
    <div class="side readable"><h4>baseline</h4><div class="text" dir="auto">${visible(row.text("old"))}</div></div>
    <div class="side readable"><h4>this run</h4><${Differences} before=${row.text("old")} after=${row.text("outputs") ?? ""} against="baseline" /></div></div></section>`;
}

/** The session that started the row's session, with a link if the page has it. */
function Parent({ row }) {
  if (row.parent === null) return null;
  const key = row.run.keyOf(row.parent);
  const name = html`<code dir="auto">${row.parent}</code>`;
  return html`<p class="parent small">Session <code dir="auto">${row.session}</code> is part of ${key === null ? name : html`<a href=${`#row=${encodeURIComponent(key)}`}>${name}</a>`}</p>`;
}

const [INPUT, OUTPUT, REFERENCE, CONTEXT] = [0, 1, 2, 3];

/** The media of a row, its input and reference, and on request its output. */
function Given({ row, output = false, unseen = [], against = [] }) {
  const media = row.media(CONTEXT);
  return html`${media.length ? html`<section class="material"><h3>Media</h3><${Media} items=${media} unseen=${unseen} /></section>` : null}
    <${Material} name="Input" text=${row.text("inputs")} media=${row.media(INPUT)} unseen=${unseen} />
    ${output ? html`<${Material} name="Output" text=${row.text("outputs")} media=${row.media(OUTPUT)} unseen=${unseen} against=${against} />` : null}
    <${Reference} row=${row} unseen=${unseen} />`;
}

function Reference({ row, unseen }) {
  return html`<${Material} name="Reference" text=${row.text("references")} media=${row.media(REFERENCE)} unseen=${unseen} />`;
}

/** In the conversation of a session: the verdicts on each of its turns, where the page has them. */
function verdictOf(row, subject) {
  return (id) => {
    const other = row.run.byTurn?.(id);
    if (!other || (id === subject.id && subject.kind === "turn")) return null;
    return html`<${Mark} outcome=${other.outcome} />${other.score === null ? null : html` <${Figure} value=${other.score} path=${`${other.path}.score`} form=${score} />`}`;
  };
}

/** Pairs of a label and its signals: of each verdict, and of each metric's score. */
const signalsBy = (ended) => Object.entries(ended).flatMap(([label, payload]) => [[label, payload.signals], ...(payload.scores ?? []).map((one) => [one.metric, one.signals])]);

function Material({ name, text, folded = false, media = null, unseen = [], against = [] }) {
  if (text === null || text === undefined || text === "") return null;
  if (folded) return html`<details class="material"><summary>${name}</summary><${Readable} text=${text} name=${name} /></details>`;
  return html`<section class="material"><${Readable} heading=${name} text=${text} name=${name} against=${against} /><${Media} items=${media} unseen=${unseen} text=${text} /></section>`;
}

const text = (value) => (typeof value === "string" ? value : value instanceof Num ? value.token : JSON.stringify(value, null, 2));

/** The value of each metric and judge, with its reason. */
function Verdicts({ ended, row }) {
  const all = Object.entries(ended).flatMap(([label, payload]) => ("failure_mode" in payload ? [failed(label, payload)] : valuesOf(label, payload, row)));
  if (all.length > MANY) all.sort((one, other) => (one.rank ?? 0) - (other.rank ?? 0)); // the lowest first
  const [lines, more] = useFirst(all, "verdicts");
  if (!lines.length) return null;
  const reasons = lines.some((line) => line.reason !== "");
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Verdicts"><table class="verdicts"><thead><tr><th scope="col">label</th><th scope="col" class="num">value</th><th scope="col">basis</th>
    ${reasons ? html`<th scope="col">reason</th>` : null}</tr></thead><tbody>${lines.map((line) => html`<tr><th scope="row" dir="auto">${line.label}</th><td class="num">${line.value}</td><td>${line.basis}</td>
    ${reasons ? html`<td class="reason" dir="auto">${line.reason}</td>` : null}</tr>`)}</tbody></table></div>${more}`;
}

function failed(label, payload) {
  return { label, value: html`<${Mark} outcome="none" />`, basis: "–", reason: html`${payload.origin === "task" ? "no output of the task: " : null}<code>${payload.failure_mode}</code> ${payload.error_message}` };
}

function valuesOf(label, payload, row) {
  const scores = payload.scores ?? [];
  const lines = scores.map((one, number) => ({
    label: one.metric + (Number(one.rollout ?? 0) ? ` (rollout ${Number(one.rollout) + 1})` : ""),
    value: html`<${Figure} value=${one.value} path=${at(`${row.path}.verdicts`, label, "scores", number, "value")} form=${score} />`,
    rank: Number(one.value),
    basis: one.basis ?? one.tier,
    reason: reasonOf(one, text),
  }));
  const unscored = [...(payload.skipped ?? []).map((one) => ({ label: one.metric, value: "–", basis: "–", reason: `skipped: ${one.reason}` })),
    ...(payload.spared ?? []).map((one) => ({ label: one.metric, value: "–", basis: "–", reason: "skipped: the gate of the proxies did not pass" }))];
  if (label === "metrics" && scores.length) return [...lines, ...unscored];
  const rationale = payload.signals?.rationale_redacted ?? payload.signals?.rationale;
  const flags = payload.signals?.flags_negative;
  const reason = rationale ? text(rationale) : Array.isArray(flags) && flags.length ? flags.map(text).join(", ") : facts(payload.signals);
  return [{ label, value: html`<${Figure} value=${payload.score} path=${at(`${row.path}.verdicts`, label, "score")} form=${score} />`, basis: payload.basis ?? payload.tier, reason }, ...lines, ...unscored];
}

/** Signals that are a number or a word, where a judge gave no reason. */
const facts = (signals) => Object.entries(signals ?? {}).filter(([, value]) => value instanceof Num || (typeof value === "string" && value.length < 60))
  .map(([key, value]) => `${key.replaceAll("_", " ")} ${value instanceof Num ? plain(value) : value}`).join(", ");

/** The task's output for the row, and its measurements. */
function Record({ record, row }) {
  if (record === null) return null;
  const responses = record.responses ? Object.entries(record.responses) : record.response ? [["response", record.response]] : [];
  return html`${responses.length > 1 ? responses.map(([name, response]) => html`<${Material} name=${name} text=${text(response?.content ?? "")} />`) : null}
    ${record.error ? html`<p class="warnings" dir="auto">${text(record.error)}</p>` : null}
    <${Tree} name="measured" found=${record.metrics} path=${`${row.path}.record.metrics`} />`;
}

function Evidence({ ended, row }) {
  return html`${Object.entries(ended).map(([label, payload]) => {
    const { scores, skipped, spared, ...facts } = payload;
    return html`<details class="evidence"><summary>Evidence of <span dir="auto">${label}</span></summary><dl class="facts wide">
      ${Object.entries(facts).filter(([, value]) => value !== null).map(([key, value]) => html`<div><dt dir="auto">${key.replaceAll("_", " ")}</dt><dd dir="auto">${leaf(value, at(`${row.path}.verdicts`, label, key), key)}</dd></div>`)}
      ${(scores ?? []).filter((one) => Object.keys(one.signals ?? {}).length).slice(0, MANY).map((one) => html`<div><dt dir="auto">${one.metric}</dt><dd dir="auto">${text(one.signals)}</dd></div>`)}
    </dl></details>`;
  })}`;
}

function Tree({ name, found, path }) {
  if (!found || !Object.keys(found).length) return null;
  return html`<details class="evidence"><summary>${name}</summary><dl class="facts wide">${Object.entries(found).map(([key, value]) =>
    html`<div><dt dir="auto">${key}</dt><dd dir="auto">${leaf(value, at(path, key), key)}</dd></div>`)}</dl></details>`;
}

function leaf(value, path, key) {
  if (value instanceof Num) return html`<${Figure} value=${value} path=${path} form=${key.endsWith("latency_ms") ? milliseconds : undefined} />`;
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    const entries = Object.entries(value);
    return html`${entries.length > MANY ? `${plain(entries.length)}, of which the first: ` : null}<dl class="facts">${entries.slice(0, MANY).map(([inner, deep]) => html`<div><dt dir="auto">${inner.replaceAll("_", " ")}</dt><dd dir="auto">${leaf(deep, at(path, inner), inner)}</dd></div>`)}</dl>`;
  }
  if (Array.isArray(value)) return value.map((each, number) => html`${number ? ", " : ""}${leaf(each, at(path, number), key)}`);
  return value === null ? "–" : String(value);
}
