// Several runs, side by side.
import { html } from "../html.js";
import { at, Figure, score } from "../figures.js";
import { Interval } from "../charts.js";
import { criteria } from "./criteria.js";
import { MANY } from "./first_of.js";
import { gateOf, Mark } from "../marks.js";

const means = (done) => [
  ...Object.entries(done.metrics).map(([label, one]) => [label, one.mean, ["metrics", label, "mean"]]),
  ...Object.entries(done.labels ?? done.judges).map(([label, one]) => [label, one.mean, [done.labels ? "labels" : "judges", label, "mean"]]),
  ...criteria(done),
];

export function Sides({ runs, chosen, onChoose }) {
  const labels = [...new Set(runs.flatMap((run) => means(run.document).map(([label]) => label)))].slice(0, MANY);
  return html`<section aria-labelledby="sides">
    <h2 id="sides">Side by side</h2>
    <div class="scroll" tabindex="0" role="group" aria-label="Runs side by side"><table class="sides">
      <thead><tr><th scope="col">run</th><th scope="col">gate</th><th scope="col" class="num">score</th><th scope="col">95 % interval</th><th scope="col" class="num">pass</th>
        <th scope="col" class="num">coverage</th>${labels.map((label) => html`<th scope="col" class="num" dir="auto">${label}</th>`)}<th scope="col" class="num">usd</th></tr></thead>
      <tbody>${runs.map((run, number) => {
        const done = run.document;
        const { outcome, word } = gateOf(done);
        const own = new Map(means(done).map(([label, ...rest]) => [label, rest]));
        const of = done.score;
        return html`<tr class=${number === chosen ? "chosen" : ""}><th scope="row" dir="auto"><button type="button" class="link" onClick=${() => onChoose(number)}>${run.title}</button></th>
          <td><${Mark} outcome=${outcome} word=${word} /></td>
          <td class="num"><${Figure} value=${of?.mean} path=${at(run.prefix, "score", "mean")} form=${score} />${of && Object.keys(done.labels ?? {}).length > 1 ? html` <span class="role" dir="auto">${of.label}</span>` : null}</td>
          <td>${of && of.ci_low !== null ? html`<${Interval} value=${Number(of.mean)} from=${Number(of.ci_low)} to=${Number(of.ci_high)} label=${`from ${score(of.ci_low)} to ${score(of.ci_high)}`} />` : "–"}</td>
          <td class="num"><${Figure} value=${of?.pass_rate} path=${at(run.prefix, "score", "pass_rate")} form=${score} /></td>
          <td class="num"><${Figure} value=${done.coverage} path=${at(run.prefix, "coverage")} form=${score} /></td>
          ${labels.map((label) => html`<td class="num">${own.has(label) ? html`<${Figure} value=${own.get(label)[0]} path=${at(run.prefix, ...own.get(label)[1])} form=${score} />` : "–"}</td>`)}
          <td class="num">${done.cost.usd === null ? "unknown" : html`<${Figure} value=${done.cost.usd} path=${at(run.prefix, "cost", "usd")} form=${String} />`}</td></tr>`;
      })}</tbody></table></div>
    <div class="tabs" role="group" aria-label="Run that is shown below">${runs.map((run, number) => html`<button type="button" class="chip"
      aria-pressed=${number === chosen ? "true" : "false"} onClick=${() => onChoose(number)}><span dir="auto">${run.title}</span></button>`)}</div>
  </section>`;
}
