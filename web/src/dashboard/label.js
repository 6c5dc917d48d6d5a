// Subjects of a run one after the other, for a person's verdict; blind unless that is switched off.
import { html, useEffect, useState } from "../html.js";
import { Figure } from "../figures.js";
import { address, useAnswer } from "./api.js";
import { LabelForm } from "./label_form.js";
import { Answer, TOOL, when } from "./parts.js";
import { alter, ofSubject } from "./router.js";
import { Evidence } from "./evidence.js";
import { subjectAddress } from "./subject.js";

export function Label({ mayLabel, query, live }) {
  const runs = useAnswer(address("/runs", { limit: 100, without_kind: TOOL }), 0);
  if (!mayLabel) return html`<h1>Label</h1><p class="lead">This token may read and not label. Start <code>dicast serve</code> with <code>--label-token-file FILE</code>, and open the address with the token of that file.</p>`;
  const listed = runs.document?.data ?? [];
  const run = listed.find((one) => one.run_id === query.run) ?? listed[0];
  return html`<div class="top"><h1>Label</h1>${run ? html`<label class="pick">run <select value=${run.run_id} onChange=${(event) => alter({ run: event.currentTarget.value, cursor: "" })}>${listed.map((one) => html`<option value=${one.run_id}>${one.name} · ${when(one.started_at)}</option>`)}</select></label>` : null}</div>
    <${Answer} answer=${runs}>${() => (run ? html`<${Queue} run=${run.run_id} cursor=${query.cursor ?? null} live=${live} key=${run.run_id} />` : html`<p class="empty">There is no run with subjects to label.</p>`)}</${Answer}>`;
}

const FEW = 100;

/** A hundred rows at a time, of which each subject comes once. */
function Queue({ run, cursor, live }) {
  const rows = useAnswer(address(`/runs/${encodeURIComponent(run)}/rows`, { limit: FEW, cursor }), 0);
  const [step, setStep] = useState(0);
  const [blind, setBlind] = useState(true);
  useEffect(() => setStep(0), [cursor]);
  return html`<${Answer} answer=${rows}>${(document) => {
    const subjects = [...new Map(document.data.map((row) => [`${row.subject_kind}/${row.subject_id}`, row])).values()];
    const row = subjects[step];
    if (row === undefined) {
      return html`<p class="lead">These rows are done.</p>${document.next_cursor === null ? null : html`<button class="action" type="button" onClick=${() => alter({ cursor: String(document.next_cursor) })}>Next hundred rows</button>`}`;
    }
    return html`<${One} row=${row} run=${run} blind=${blind} onBlind=${setBlind} live=${live} onNext=${() => setStep(step + 1)} key=${`${row.subject_kind}/${row.subject_id}`}
      counted=${html`${step + 1} of ${subjects.length}, of <${Figure} value=${document.total} path=${rows.at("total")} /> rows`} />`;
  }}</${Answer}>`;
}

function One({ row, run, blind, onBlind, live, onNext, counted }) {
  const answer = useAnswer(subjectAddress(row.subject_kind, row.subject_id, run), 0);
  return html`<p class="small">${counted}</p><div class="story"><div class="what"><h2 class="id" dir="auto">${row.subject_id}</h2><${Answer} answer=${answer}>${({ data }) => html`<${Evidence} data=${data} id=${row.subject_id} kind=${row.subject_kind} />`}</${Answer}></div>
    <div class="said-of"><${LabelForm} kind=${row.subject_kind} id=${row.subject_id} run=${run} blind=${blind} onBlind=${onBlind} onGiven=${() => { live.again(); onNext(); }} />
      <p class="row"><button class="chip" type="button" onClick=${onNext}>Skip</button> ${blind ? html`<span class="soft">The judges' verdicts are hidden.</span>` : html`<a href=${ofSubject(row.subject_kind, row.subject_id, { run })}>Show the verdicts</a>`}</p></div></div>`;
}
