// Calibration of confidences, where people or gold labels give the right answer.
import { html } from "../html.js";
import { Figure, score } from "../figures.js";
import { Reliability } from "../charts.js";

export function Trust({ run }) {
  if (!run.reliability.length) return null;
  return html`<section aria-labelledby=${`trust-${run.key}`}>
    <h2 id=${`trust-${run.key}`}>Confidence against labels</h2>
    <p class="lead">Of the subjects with a person's label: how often the verdict falls on the label's side of the pass line, by the
      judge's own confidence. On the diagonal a judge is as right as it says.</p>
    <div class="cards">${run.reliability.map((judge) => html`<article class="card">
      <h3 dir="auto">${judge.label}</h3>
      <p class="small"><${Figure} value=${judge.agree} form=${score} /> of <${Figure} value=${judge.n} /> subjects with labels agree</p>
      <${Reliability} bins=${judge.bins} label=${`Confidence of ${judge.label} against agreement with labels`} />
      <details><summary>Figures</summary><div class="scroll" tabindex="0" role="group" aria-label="Figures"><table><thead><tr><th scope="col" class="num">confidence</th>
        <th scope="col" class="num">agree</th><th scope="col">95 % interval</th><th scope="col" class="num">n</th></tr></thead>
        <tbody>${judge.bins.map((bin) => html`<tr><td class="num"><${Figure} value=${bin.confidence} form=${score} /></td><td class="num"><${Figure} value=${bin.agree} form=${score} /></td>
          <td><${Figure} value=${bin.ci_low} form=${score} /> to <${Figure} value=${bin.ci_high} form=${score} /></td><td class="num"><${Figure} value=${bin.n} /></td></tr>`)}</tbody></table></div></details>
    </article>`)}</div>
  </section>`;
}
