// A label in the last runs of a pipeline: its mean or pass rate, with intervals and dates.
import { html, useState } from "../html.js";
import { percent, score } from "../figures.js";
import { Chip } from "../rows/toolbar.js";
import { address, useAnswer } from "./api.js";
import { Course } from "./course.js";
import { Problem, when } from "./parts.js";
import { ofRun } from "./router.js";

const FIGURES = { mean: ["mean", "ci_low", "ci_high", score], "pass rate": ["pass_rate", "pass_ci_low", "pass_ci_high", percent] };
const SHOWN = 30; // runs

export const trendAddress = (name, label) => address("/analytics/trend", { name, label, limit: SHOWN });

/** `label` is the chosen label, null for the gate's; `onLabel` is called with another, and `word` says what changes then. `own` is the run that is marked. */
export function Trend({ name, label, onLabel, own, tick, word = "trend of" }) {
  const [figure, setFigure] = useState("mean");
  const answer = useAnswer(trendAddress(name, label), tick);
  if (answer.error) return html`<${Problem} error=${answer.error} />`;
  const found = answer.document;
  if (found === null) return html`<p class="empty" role="status">Reading …</p>`;
  if (found.data.length === 0) return html`<p class="empty">No run of ${name} has ended yet.</p>`;
  const [value, low, high, form] = FIGURES[figure];
  const isUnit = found.data.every((point) => point[value] === null || (Number(point[value]) >= 0 && Number(point[value]) <= 1));
  const title = (point) => `${when(point.started_at)}: ${point[value] === null ? "no score" : `${form(point[value])}${point[low] === null ? "" : ` (${form(point[low])} to ${form(point[high])})`}`}, gate ${point.gate ?? "none"}`;
  const points = found.data.map((point, number) => ({ value: point[value], low: point[low], high: point[high], path: answer.at(`data[${number}].${value}`), kind: `${point.gate ?? ""}${point.run_id === own ? " own" : ""}`, href: ofRun(point.run_id), title: title(point) }));
  return html`<div class="picks"><label class="pick">${word} <select value=${found.label ?? ""} onChange=${(event) => onLabel(event.currentTarget.value)}>${found.labels.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <span class="chips" role="group" aria-label="Figure of the trend">${Object.keys(FIGURES).map((one) => html`<${Chip} on=${one === figure} onClick=${() => setFigure(one)}>${one}</${Chip}>`)}</span></div>
    ${points.length < 2 ? html`<p class="empty">This is the only run of ${name} that has ended.</p>` : !isUnit ? html`<p class="empty">The values of ${found.label} are on a scale of their own, which is not drawn.</p>`
      : html`<${Course} label=${`${figure} of ${found.label} in the last runs of ${name}`} points=${points} />
    <div class="ends"><span>${when(found.data[0].started_at)}</span>${found.data.length > 2 ? html`<span>${when(found.data[Math.floor(found.data.length / 2)].started_at)}</span>` : null}<span>${when(found.data.at(-1).started_at)}</span></div>`}`;
}
