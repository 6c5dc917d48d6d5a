// One subject of a run: its content, the verdicts of that run, the other runs, and the subjects before and after it in the list.
import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { Figure, plain, score } from "../figures.js";
import { Mark } from "../marks.js";
import { address, useAnswer } from "./api.js";
import { Evidence, textOf } from "./evidence.js";
import { useKeys } from "./keys.js";
import { LabelForm } from "./label_form.js";
import { isFromCompare, listAddress, listOf, listPlace, originOf } from "./list.js";
import { Answer, when } from "./parts.js";
import { ofRun, ofSubject, replacePlace } from "./router.js";
import { Differences, Text } from "../readable/readable.js";
import { useNarrow } from "../rows/narrow.js";
import { useTitle } from "./title.js";
import { Verdicts } from "./verdicts.js";

export const subjectAddress = (kind, id, run) => address(`/analytics/turns/${encodeURIComponent(id)}`, { subject_kind: kind, run });

export function Subject({ kind, id, live, mayLabel, query }) {
  const [labels, setLabels] = useState(0);
  const answer = useAnswer(subjectAddress(kind, id, query.run ?? null), live.tick + labels);
  const around = useAnswer(answer.document ? listAddress(answer.document.data.run_id, "neighbors", query, { kind, subject: id }) : null);
  const place = around.fresh ? around.document : null;
  const targets = targetsOf(place, answer.document?.data.run_id ?? null, query);
  useSteps(targets);
  const [blind, setBlind] = useState(query.blind === "1");
  const run = answer.document?.data.runs.find((one) => one.run_id === answer.document.data.run_id);
  const list = answer.document?.data.run_id ?? query.run ?? null;
  useKeys({ escape: list && (() => { location.hash = listPlace(list, query); }) }); // also while the subject is read
  useTitle(`${id} · ${kind.replaceAll("_", " ")}${run ? ` in ${run.name}` : ""}`);
  const form = (data) => (mayLabel ? html`<${LabelForm} kind=${kind} id=${id} run=${data.run_id} blind=${blind} onBlind=${setBlind} onGiven=${() => { setBlind(false); setLabels(labels + 1); live.again(); }} />` : null);
  const [isCompared, setCompared] = useState(false); // whether both outputs are next to each other
  return html`<${Answer} answer=${answer} heading=${id}>${({ data }) => html`<${Head} data=${data} kind=${kind} id=${id} query=${query} around=${around} targets=${targets} />
    ${query.baseline && query.baseline !== data.run_id ? html`<${Against} data=${data} kind=${kind} id=${id} baseline=${query.baseline} tick=${live.tick} onShown=${setCompared} />` : null}
    <div class="story"><div class="what"><h2 class="hidden">Content</h2><${Evidence} data=${data} id=${id} kind=${kind} blind=${blind} isOutputShown=${isCompared} />${isShort(data) ? form(data) : null}</div>
    <div class="said-of"><h2>Verdicts${blind || !place?.outcome ? null : html` <${OfList} place=${place} label=${query.label} />`}</h2>
      ${isShort(data) ? null : form(data)}
      ${blind ? html`<p class="note">The verdicts are hidden until you give yours.</p>` : html`<${Verdicts} data=${data} at=${answer.at} chosen=${query.eval} labels=${place?.labels} lineAt=${(number, name) => around.at(`labels[${number}].${name}`)} />`}</div></div>`}</${Answer}>`;
}

const SHORT = 1200; // characters of a content that leaves room below it

/** Whether the content of a subject is shorter than its verdicts. */
const isShort = (data) => data.conversation === null && JSON.stringify(data.content ?? {}).length < SHORT;

function Head({ data, kind, id, query, around, targets }) {
  const session = data.session_id !== null && kind !== "session" ? html` of session <code dir="auto">${data.session_id}</code>` : null;
  const parent = data.parent_session_id === null ? null : html`, part of <code dir="auto">${data.parent_session_id}</code>`;
  return html`<div class="top"><div><p class="small">${kind.replaceAll("_", " ")}${session}${parent}${data.place ? html`, from <code dir="auto">${data.place}</code>` : ""}</p><h1 class="id" dir="auto">${id}</h1></div>
      <${Steps} targets=${targets} answer=${around} /></div>
    <div class="picks"><${Switcher} data=${data} kind=${kind} id=${id} query=${query} /><a href=${ofRun(data.run_id, listOf(query))}>all subjects of this run</a>${isFromCompare(query) ? html`<a href=${listPlace(data.run_id, query)}>back to Compare</a>` : null}</div>`;
}

/** The outcome that the list shows, with its label; without a chosen label, with the deciding labels that have this outcome. */
function OfList({ place, label }) {
  const own = place.labels.find((one) => one.label === label);
  const outcome = own?.outcome ?? place.outcome;
  const names = own ? [own.label] : place.labels.filter((one) => one.decides && one.outcome === outcome).map((one) => one.label);
  const words = names.length === 0 ? "" : own || place.labels.length === 1 ? names[0] : names.length === place.labels.length ? "all labels" : `(by ${names.join(", ")})`;
  return html`<${Mark} outcome=${outcome} /> <span class="soft small" dir="auto">${words}</span>`;
}

/** The runs with this subject: another one is shown in its place. */
function Switcher({ data, kind, id, query }) {
  const runs = data.runs.filter((run) => run.kind !== "tool" || run.run_id === data.run_id);
  const move = (event) => {
    location.hash = ofSubject(kind, id, { ...listOf(query), run: event.currentTarget.value });
  };
  const same = (run) => (run.run_id === data.run_id || run.output_digest === null || data.output_digest === null ? "" : run.output_digest === data.output_digest ? " · same output" : " · another output");
  return html`<label class="pick">run <select value=${data.run_id} onChange=${move}>${runs.map((run) => html`<option value=${run.run_id}>${run.name} · ${when(run.started_at)} · ${run.run_id.slice(-6)}${same(run)}</option>`)}</select></label>`;
}

/** The addresses of the subjects before and after one in its list; null until they are read. */
function targetsOf(found, run, query) {
  if (found === null || run === null) return null;
  const to = (subject) => subject && ofSubject(subject.subject_kind, subject.subject_id, { ...originOf(query), run });
  return { previous: to(found.previous), next: to(found.next) };
}

const steps = { waiting: 0, isStepping: false }; // keys that wait for the neighbors of the next subject, down minus up; whether the page moves by a key

/** The keys j and k move in the list, one subject a key, also while a subject is read. */
function useSteps(targets) {
  const isLeft = useRef(false);
  const move = (down) => {
    const place = down ? targets.next : targets.previous;
    steps.waiting = place ? steps.waiting - Math.sign(steps.waiting) : 0;
    if (!place) return;
    steps.isStepping = true;
    isLeft.current = true;
    replacePlace(place); // the browser's back returns to the list
  };
  useLayoutEffect(() => {
    if (!steps.isStepping) steps.waiting = 0;
    steps.isStepping = false;
  }, []);
  const press = (down) => {
    steps.waiting += down;
    if (targets !== null && !isLeft.current) move(down > 0);
  };
  useKeys({ j: () => press(1), k: () => press(-1) }, true);
  useLayoutEffect(() => {
    if (targets !== null && steps.waiting !== 0 && !isLeft.current) move(steps.waiting > 0);
  }, [targets?.previous, targets?.next, targets === null]);
}

/** The place of the subject in the list, with the subjects before and after it; also by the keys k and j. */
function Steps({ targets, answer }) {
  const found = answer.fresh ? answer.document : null;
  const { previous = null, next = null } = targets ?? {};
  if (answer.error) return null;
  const link = (place, word, key, sign) => (place ? html`<a class="action" href=${place} aria-keyshortcuts=${key} title=${`${word} (${key})`}><span aria-hidden="true">${sign}</span> ${word}</a>` : html`<span class="action off">${word}</span>`);
  return html`<nav class="steps" aria-label="List">${link(previous, "previous", "k", "↑")}${link(next, "next", "j", "↓")}
    <span class="soft" role="status">${found === null ? "" : found.place === null ? "not in the list" : html`<${Figure} value=${found.place} path=${answer.at("place")} form=${plain} /> of <${Figure} value=${found.matched} path=${answer.at("matched")} form=${plain} />`}</span></nav>`;
}

/** The outputs of the baseline and of this run, with their differences marked. */
function Against({ data, kind, id, baseline, tick, onShown }) {
  const answer = useAnswer(subjectAddress(kind, id, baseline), tick);
  const narrow = useNarrow();
  const isShown = [answer.document?.data, data].every((one) => textOf(one?.content?.output) !== null);
  useLayoutEffect(() => onShown(isShown), [isShown]);
  if (answer.error) return html`<p class="note">The baseline <code>${baseline}</code> has not judged this subject.</p>`;
  if (answer.document === null) return html`<section class="against waiting"><h2>Next to the baseline</h2><p class="empty" role="status">Reading …</p></section>`;
  const older = answer.document.data;
  const [before, after] = [textOf(older.content?.output), textOf(data.content?.output)];
  if (before === null || after === null) return html`<p class="note">The ledger does not hold both outputs: their differences cannot be shown.</p>`;
  return html`<section class="against" aria-labelledby="against"><h2 id="against">Next to the baseline</h2><div class="side-by-side">
    <div class="side readable"><h3>Baseline <a href=${ofSubject(kind, id, { run: older.run_id })}><code>${older.run_id.slice(-6)}</code></a> <${Scores} data=${older} /></h3>${narrow ? html`<details><summary>Its output as it is</summary><${Text} text=${before} name="Output of the baseline" /></details>` : html`<${Text} text=${before} name="Output of the baseline" />`}</div>
    <div class="side readable"><h3>This run <${Scores} data=${data} /></h3><${Differences} before=${before} after=${after} against="baseline" /></div></div></section>`;
}

/** The verdicts of a run in short. */
function Scores({ data }) {
  const own = data.evaluations.filter((one) => one.run_id === data.run_id);
  const failed = data.failures.filter((one) => one.run_id === data.run_id);
  return html`<span class="soft">${own.map((one) => html`<span dir="auto">${one.judge}</span> ${one.score === null ? "–" : score(one.score)} `)}${failed.map((one) => html`<span dir="auto">${one.judge}</span> <${Mark} outcome="none" /> `)}</span>`;
}
