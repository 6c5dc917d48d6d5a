// Each metric, judge and criterion: the spread of its values, passes, failures, and cost.
import { html } from "../html.js";
import { at, Figure, milliseconds, score } from "../figures.js";
import { criteria } from "./criteria.js";
import { useFirst } from "./first_of.js";
import { Axis, Histogram, Interval } from "../charts.js";
import { inGate } from "../marks.js";

const known = (value) => value !== null && value !== undefined;

export function Labels({ run }) {
  const spread = run.labels.filter((label) => Number(label.n) + Number(label.failed) > 0);
  const [shown, more] = useFirst(spread, "metrics and judges");
  if (!spread.length) return null;
  return html`<section aria-labelledby=${`labels-${run.key}`}>
    <h2 id=${`labels-${run.key}`}>Metrics and judges</h2>
    <div class="cards">${shown.map((label) => html`<${Label} label=${label} run=${run} />`)}</div>${more}
  </section>`;
}

/** A label's entry in the document, and the path to it. */
function place(label, run) {
  const { metrics, judges, labels } = run.document;
  const part = label.role === "metric" ? "metrics" : label.role === "judge" ? "judges" : null;
  const own = part === null ? undefined : { metrics, judges }[part][label.label];
  const whole = label.role === "metric" ? undefined : labels?.[label.label];
  if (!own && !whole) return { found: null, path: () => undefined };
  const path = (...more) => (whole && more[0] in whole ? at(run.prefix, "labels", label.label, ...more) : own ? at(run.prefix, part, label.label, ...more) : undefined);
  return { found: { ...own, ...whole }, path };
}

/** The path to the mean of a criterion, where the document has it. */
function meanOf(label, run) {
  const same = ([criterion, mean]) => criterion === label.label && Number(mean) === Number(label.mean);
  const [, , keys] = (label.role === "criterion" && criteria(run.document).find(same)) || [];
  return keys && at(run.prefix, ...keys);
}

function Label({ label, run }) {
  const { found, path } = place(label, run);
  const mean = found ? found.mean : label.mean;
  const cut = known(label.pass_at) ? Number(label.pass_at) : null;
  const passes = found?.passes;
  return html`<article class="card">
    <h3 dir="auto">${label.label} <span class="role">${inGate(run.document, label.label) ? `${label.role}, in the gate` : label.role}</span></h3>
    <div class="pair"><span class="figure"><${Figure} value=${mean} path=${path("mean") ?? meanOf(label, run)} form=${score} none="no score" /></span><span class="small">mean</span></div>
    ${Number(label.n) ? html`<${Histogram} bins=${label.bins} low=${label.low} high=${label.high} cut=${cut}
      label=${`How the values of ${label.label} are spread`} height=${110} /><${Axis} low=${label.low} high=${label.high} />` : null}
    <dl class="facts">
      ${passes ? html`<div><dt>pass</dt><dd><${Figure} value=${found.pass_rate} path=${path("pass_rate")} form=${score} />
          <span class="soft"> (<${Figure} value=${passes.passed} path=${path("passes", "passed")} /> of <${Figure} value=${passes.n} path=${path("passes", "n")} />)</span>
          <${Interval} value=${Number(found.pass_rate)} from=${passes.ci_low === null ? null : Number(passes.ci_low)}
            to=${passes.ci_high === null ? null : Number(passes.ci_high)} label=${`pass rate of ${label.label}`} /></dd></div>`
        : known(label.passed) ? html`<div><dt>pass</dt><dd><${Figure} value=${label.passed} /> of <${Figure} value=${Number(label.n) + (label.role === "criterion" ? 0 : Number(label.failed))} /></dd></div>` : null}
      <div><dt>scored</dt><dd>${known(found?.total) ? html`<${Figure} value=${found.scored} path=${path("scored")} /> of <${Figure} value=${found.total} path=${path("total")} />`
        : html`<${Figure} value=${label.n} />`}</dd></div>
      ${known(found?.corrected?.mean) ? html`<div><dt>corrected</dt><dd><${Figure} value=${found.corrected.mean} path=${path("corrected", "mean")} form=${score} /></dd></div>` : null}
      ${known(found?.basis) ? html`<div><dt>basis</dt><dd>${found.basis}</dd></div>` : null}
      ${known(found?.mean_confidence) ? html`<div><dt>confidence</dt><dd><${Figure} value=${found.mean_confidence} path=${path("mean_confidence")} form=${score} /></dd></div>` : null}
      ${Number(found?.escalated ?? 0) ? html`<div><dt>escalated</dt><dd><${Figure} value=${found.escalated} path=${path("escalated")} /></dd></div>` : null}
      ${Number(found?.skipped ?? 0) ? html`<div><dt>skipped</dt><dd><${Figure} value=${found.skipped} path=${path("skipped")} /></dd></div>` : null}
      ${Number(found?.spared ?? 0) ? html`<div><dt>skipped by the gate</dt><dd><${Figure} value=${found.spared} path=${path("spared")} /></dd></div>` : null}
      ${Object.entries(label.failures).map(([kind, count]) => html`<div><dt><code>${kind}</code></dt><dd><${Figure} value=${count} /></dd></div>`)}
    </dl>
  </article>`;
}

/** The cost and the time of judging, for each label and the whole run. */
/** Verdicts are timed in whole milliseconds: 0 is less than one. */
const took = (value) => (Number(value) === 0 ? "< 1 ms" : milliseconds(value));

/** The time of the task's replies, as further rows of the labels' table. */
const replies = (task) => (task?.replies ?? []).map((one) => ({ ...one, role: "task", label: task.label ?? "task", verdicts: one.replies }));

export function Costs({ run }) {
  const done = run.document;
  const timed = [...replies(run.task), ...run.labels.filter((label) => known(label.latency))];
  const [rows, more] = useFirst(timed, "labels");
  const spent = Object.entries(done.cost).filter(([unit, amount]) => unit === "usd" || amount !== "0");
  const lost = Object.entries(done.spend_lost).filter(([, amount]) => amount !== "0");
  const models = Object.entries(done.models ?? {});
  return html`<section aria-labelledby=${`cost-${run.key}`}>
    <h2 id=${`cost-${run.key}`}>Cost and time</h2>
    <p class="lead">spent ${spent.map(([unit, amount], number) => html`${number ? ", " : ""}${amount === null ? "an unknown amount of"
      : html`<strong><${Figure} value=${amount} path=${at(run.prefix, "cost", unit)} form=${String} /></strong>`} ${unit}`)}
      ${known(run.seconds) ? html` in <${Figure} value=${run.seconds} form=${(value) => milliseconds(1000 * Number(value))} />` : null}</p>
    ${lost.length ? html`<p class="small">lost, reserved for calls without a reply: ${lost.map(([unit, amount]) => html`<${Figure} value=${amount}
      path=${at(run.prefix, "spend_lost", unit)} form=${String} /> ${unit} `)}</p>` : null}
    ${Number(done.overruns) ? html`<p class="small">calls that cost more than was projected: <${Figure} value=${done.overruns} path=${at(run.prefix, "overruns")} /></p>` : null}
    ${Object.entries(done.throttled ?? {}).map(([reason, count]) => html`<p class="small">calls not made because of the ${reason.replaceAll("_", " ")}: <${Figure} value=${count} path=${at(run.prefix, "throttled", reason)} /></p>`)}
    ${timed.length ? html`<div class="scroll" tabindex="0" role="group" aria-label="Cost and time by label"><table>
      <thead><tr><th scope="col">label</th><th scope="col" class="num">replies or verdicts</th><th scope="col" class="num">usd</th><th scope="col" class="num">median time</th>
        <th scope="col" class="num">95 % within</th><th scope="col" class="num">longest</th><th scope="col">answered by</th></tr></thead>
      <tbody>${rows.map((label) => html`<tr><th scope="row" dir="auto">${label.label}${label.role === "task" ? html` <span class="role">task${label.criterion ? `, ${label.criterion}` : ""}</span>` : null}</th><td class="num"><${Figure} value=${label.verdicts} /></td>
        <td class="num">${label.usd === null ? (label.role === "task" ? "–" : "unknown") : html`<${Figure} value=${label.usd} form=${String} />`}</td>
        <td class="num"><${Figure} value=${label.latency.p50} form=${took} /></td><td class="num"><${Figure} value=${label.latency.p95} form=${took} /></td>
        <td class="num"><${Figure} value=${label.latency.longest} form=${took} /></td>
        <td>${(models.find(([name]) => name === label.label)?.[1] ?? []).join(", ") || "–"}</td></tr>`)}</tbody></table></div>${more}` : null}
  </section>`;
}
