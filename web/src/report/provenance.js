// The source of the numbers, and the command that checks it.
import { html } from "../html.js";

export function Provenance({ run, made }) {
  const { provenance } = run;
  const ledger = provenance.ledger;
  const command = ledger?.digest ? `dicast ledger verify${ledger.path ? ` --ledger ${quoted(ledger.path)}` : ""} --head ${ledger.digest}` : null;
  return html`<section aria-labelledby=${`provenance-${run.key}`}>
    <h2 id=${`provenance-${run.key}`}>Provenance</h2>
    <dl class="facts wide">
      <div><dt>run</dt><dd><code>${run.document.run_id}</code></dd></div>
      <div><dt>pipeline</dt><dd dir="auto">${provenance.pipeline ?? run.document.name}</dd></div>
      <div><dt>started</dt><dd>${run.started_at}</dd></div>
      <div><dt>ended</dt><dd>${run.ended_at ?? "–"}</dd></div>
      ${Object.entries(run.document.models ?? {}).map(([label, models]) => html`<div><dt dir="auto">answered ${label}</dt><dd dir="auto">${models.join(", ")}</dd></div>`)}
      ${ledger?.path ? html`<div><dt>ledger</dt><dd><code dir="auto">${ledger.path}</code></dd></div>` : null}
      ${ledger?.digest ? html`<div><dt>newest row</dt><dd><code>${ledger.digest}</code></dd></div>` : null}
      <div><dt>written by</dt><dd>${made.by} at ${made.at}</dd></div>
    </dl>
    ${command ? html`<p>The ledger holds every event behind this page, each chained to the one before. This command checks that the chain is
      whole and still has the row above:</p><pre class="command" tabindex="0">${command}</pre>` : null}
    <details><summary>Fingerprints</summary><p class="small">Digests of everything that can change a number. Runs with equal ones may be compared.</p>
      <dl class="facts wide">${Object.entries(provenance.fingerprints).map(([section, digest]) => html`<div><dt dir="auto">${section}</dt><dd><code>${digest}</code></dd></div>`)}
      ${Object.entries(provenance.rubrics).map(([name, digest]) => html`<div><dt dir="auto">rubric ${name}</dt><dd><code>${digest}</code></dd></div>`)}</dl></details>
  </section>`;
}

const quoted = (path) => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
