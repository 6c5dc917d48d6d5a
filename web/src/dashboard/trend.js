// A label in the last runs of a pipeline: its mean or pass rate, with intervals and dates.
import { html, useState } from "../html.js";
import { plain, score } from "../figures.js";
import { Chip } from "../rows/toolbar.js";
import { address, useAnswer } from "./api.js";
import { Course } from "./course.js";
import { clock, Problem, when } from "./parts.js";
import { ofRun } from "./router.js";

const FIGURES = { mean: ["mean", "ci_low", "ci_high", score, plain], "pass rate": ["pass_rate", "pass_ci_low", "pass_ci_high", score, plain] };
const SHOWN = 30; // runs

export const trendAddress = (name, label) => address("/analytics/trend", { name, label, limit: SHOWN });

/** `label` is the chosen label, null for the gate's; `onLabel` is called with another, and `word` says what changes then; `rest` are the words before the label that counts while none is chosen. `own` is the run that is marked. */
export function Trend({ name, label, onLabel, own, tick, word = "trend of", rest = "" }) {
  const [figure, setFigure] = useState("mean");
  const [isWhole, setWhole] = useState(false);
  const answer = useAnswer(trendAddress(name, label), tick);
  if (answer.error) return html`<${Problem} error=${answer.error} />`;
  const found = answer.document;
  if (found === null) return html`<p class="empty" role="status">Reading …</p>`;
  if (found.data.length === 0) return html`<p class="empty">No run of ${name} has ended yet.</p>`;
  const [value, low, high, form, axis] = FIGURES[figure];
  const isUnit = found.data.every((point) => point[value] === null || (Number(point[value]) >= 0 && Number(point[value]) <= 1));
  const title = (point) => `${moment(point)}: ${point[value] === null ? "no score" : `${form(point[value])}${point[low] === null ? "" : ` (${form(point[low])} to ${form(point[high])})`}`}, gate ${point.gate ?? "none"}`;
  const isClose = new Set(found.data.map((point) => when(point.started_at))).size < found.data.length; // runs of one minute differ in their seconds
  const moment = (point) => (isClose ? `${when(point.started_at).slice(0, 10)} ${clock(point.started_at)}` : when(point.started_at));
  const points = found.data.map((point, number) => ({ value: point[value], low: point[low], high: point[high], path: answer.at(`data[${number}].${value}`), kind: `${point.gate ?? ""}${point.run_id === own ? " own" : ""}`, href: ofRun(point.run_id), title: title(point) }));
  return html`<div class="picks"><label class="pick">${word} <select value=${rest && label === null ? "" : found.label ?? ""} onChange=${(event) => onLabel(event.currentTarget.value)}>${rest ? html`<option value="">${rest} ${found.label}</option>` : null}${found.labels.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <span class="chips" role="group" aria-label="Figure of the trend">${Object.keys(FIGURES).map((one) => html`<${Chip} on=${one === figure} onClick=${() => setFigure(one)}>${one}</${Chip}>`)}<${Chip} on=${isWhole} onClick=${() => setWhole(!isWhole)}>0 to 1</${Chip}></span></div>
    ${points.length < 2 ? html`<p class="empty">This is the only run of ${name} that has ended.</p>` : !isUnit ? html`<p class="empty">The values of ${found.label} are on a scale of their own, which is not drawn.</p>`
      : html`<${Course} label=${`${figure} of ${found.label} in the last runs of ${name}`} points=${points} isWhole=${isWhole} form=${form} axis=${axis} cut=${found.gate_lines[value] === undefined ? null : Number(found.gate_lines[value])} />
    <div class="ends"><span>${moment(found.data[0])}</span>${found.data.length > 2 ? html`<span>${moment(found.data[Math.floor(found.data.length / 2)])}</span>` : null}<span>${moment(found.data.at(-1))}</span></div>`}`;
}
