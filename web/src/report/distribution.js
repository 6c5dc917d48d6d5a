// How the scores of the run's label are spread; a run of several labels has none, and each card below has its label's.
import { html } from "../html.js";
import { Figure } from "../figures.js";
import { Axis, Histogram } from "../charts.js";

export function Distribution({ run }) {
  const label = run.labels.find((one) => one.label === run.main_label && Number(one.n) > 0);
  if (!label) return null;
  const cut = label.pass_at === null ? null : Number(label.pass_at);
  return html`<section aria-labelledby=${`scores-${run.key}`}>
    <h2 id=${`scores-${run.key}`}>Scores</h2>
    <p class="small"><${Figure} value=${label.n} /> scores of <span dir="auto">${label.label}</span>, each bar <${Figure} value=${1 / label.bins.length} /> wide${cut === null ? "" : html`; the line is at <${Figure}
      value=${label.pass_at} />, from where a subject passes`}</p>
    <${Histogram} bins=${label.bins} low=${label.low} high=${label.high} cut=${cut} label=${`How the scores of ${label.label} are spread`} />
    <${Axis} low=${label.low} high=${label.high} />
  </section>`;
}
