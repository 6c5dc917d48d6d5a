// The top of the report: the gate's answer, the score, and its basis.
import { html } from "../html.js";
import { at, Figure, Num, plain, score } from "../figures.js";
import { Interval, Shares } from "../charts.js";
import { answer, gateOf, inGate, Mark, restingOn } from "../marks.js";

export function Headline({ run }) {
  const done = run.document;
  const at_ = (...keys) => at(run.prefix, ...keys);
  return html`<section class="headline" aria-labelledby=${`result-${run.key}`}>
    <h2 class="hidden" id=${`result-${run.key}`}>Result</h2>
    <${Gate} done=${done} at_=${at_} />
    <${LabelTable} done=${done} at_=${at_} />
    <div class="tiles">
      <${ScoreTile} run=${run} at_=${at_} />
      <${PassTile} run=${run} at_=${at_} />
      <${CoverageTile} run=${run} at_=${at_} />
    </div>
    <${Stopped} stopped=${done.stopped} at_=${at_} />
    <${Warnings} done=${done} />
  </section>`;
}

/** The first line of the summary at the terminal, and the reasons that follow it. */
export function firstLine(done) {
  const reasons = (done.gate ? done.gate.reasons : done.undecided) ?? [];
  const start = done.gate ? `gate: ${answer(done.gate.passed)[1]}` : `gate: none${reasons.length ? "; undecided" : ""}`;
  if (!reasons.length || done.gate?.passed === true) return { sentence: start, reasons };
  return { sentence: `${start}: ${reasons[0]}`, reasons: reasons.slice(1) };
}

function Gate({ done, at_ }) {
  const { outcome, clauses } = gateOf(done);
  const { sentence, reasons } = firstLine(done);
  return html`<div class=${`gate ${outcome}`}>
    <p class="verdict" dir="auto"><${Mark} outcome=${outcome} word=${sentence} /></p>
    ${reasons.length ? html`<ul class="reasons">${reasons.map((reason) => html`<li dir="auto">${reason}</li>`)}</ul>` : null}
    ${clauses.length ? html`<div class="scroll" tabindex="0" role="group" aria-label="Clauses of the gate"><table class="clauses">
      <thead><tr><th scope="col">answer</th><th scope="col">on</th><th scope="col">clause</th><th scope="col" class="num">asked</th>
        <th scope="col" class="num">found</th><th scope="col">95 % interval</th></tr></thead>
      <tbody>${clauses.map((clause, number) => {
        const [kind, word] = answer(clause.passed);
        const path = (key) => at_("gate", "clauses", number, key);
        const isText = (value) => value !== null && typeof value !== "object";
        return html`<tr><td><${Mark} outcome=${kind} word=${word} /></td><td dir="auto">${clause.on ?? "–"}</td><td>${clause.rule.replaceAll("_", " ")}</td>
          <td class="num">${isText(clause.line) ? clause.line : html`<${Figure} value=${clause.line} path=${path("line")} />`}</td>
          <td class="num">${isText(clause.value) ? clause.value : html`<${Figure} value=${clause.value} path=${path("value")} />`}</td>
          <td>${clause.low === null || clause.low === undefined ? "–" : html`<${Figure} value=${clause.low} path=${path("low")} form=${score} /> to${" "}
            <${Figure} value=${clause.high} path=${path("high")} form=${score} />${Number(clause.open ?? 0) ? html` with <${Figure} value=${clause.open} path=${path("open")} />
            open subject${Number(clause.open) === 1 ? "" : "s"} counted both ways` : ""}`}</td></tr>`;
      })}</tbody></table></div>` : null}
  </div>`;
}

/** Every label of the file, where there are several: the score is that of one label at most. */
function LabelTable({ done, at_ }) {
  const labels = Object.entries(done.labels ?? {});
  if (labels.length < 2) return null;
  const spread = (one, path) => one.ci_low === null || one.ci_low === undefined ? null : html` <span class="soft">(<${Figure} value=${one.ci_low} path=${path("ci_low")} form=${score} /> to <${Figure} value=${one.ci_high} path=${path("ci_high")} form=${score} />)</span>`;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Labels"><table class="labels">
    <thead><tr><th scope="col">label</th><th scope="col">mean (95 % interval)</th><th scope="col">pass rate</th><th scope="col" class="num">scored</th><th scope="col" class="num">failed</th><th scope="col">basis</th></tr></thead>
    <tbody>${labels.map(([name, one]) => {
      const path = (...keys) => at_("labels", name, ...keys);
      return html`<tr><th scope="row" dir="auto">${name}${inGate(done, name) ? html` <span class="role">in the gate</span>` : null}</th>
        <td><${Figure} value=${one.mean} path=${path("mean")} form=${score} none="no score" />${spread(one, path)}</td>
        <td>${one.pass_rate === null || one.pass_rate === undefined ? "–" : html`<${Figure} value=${one.pass_rate} path=${path("pass_rate")} form=${score} />${one.passes ? html` <span class="soft">(<${Figure} value=${one.passes.passed} path=${path("passes", "passed")} /> of <${Figure} value=${one.passes.n} path=${path("passes", "n")} />)</span>` : null}`}</td>
        <td class="num"><${Figure} value=${one.scored} path=${path("scored")} /> of <${Figure} value=${one.total} path=${path("total")} /></td>
        <td class="num"><${Figure} value=${one.failed} path=${path("failed")} /></td><td>${one.basis ? restingOn(one.basis) : "–"}</td></tr>`;
    })}</tbody></table></div>`;
}

function ScoreTile({ run, at_ }) {
  const found = run.document.score;
  const several = Object.keys(run.document.labels ?? {}).length > 1;
  if (!found && several) return null;
  if (!found || found.mean === null) {
    return html`<div class="tile"><h3>Score</h3><p class="big none">none</p>
      <p class="small">${found ? "nothing was scored" : "no label counts for the whole run; each is below"}</p></div>`;
  }
  const path = (...keys) => at_("score", ...keys);
  const corrected = found.corrected;
  const cut = run.pass_at[found.label];
  return html`<div class="tile">
    <h3>Mean score <span class="label" dir="auto">${found.label}</span></h3>
    <p class="big"><${Figure} value=${found.mean} path=${path("mean")} form=${score} /></p>
    <${Interval} value=${Number(found.mean)} from=${found.ci_low === null ? null : Number(found.ci_low)}
      to=${found.ci_high === null ? null : Number(found.ci_high)} cut=${cut === undefined ? null : Number(cut)}
      label=${`mean ${score(found.mean)}`} />
    ${found.ci_low === null ? html`<p class="small">no interval: fewer than two clusters</p>` : html`<p class="small">95 % interval${" "}
      <${Figure} value=${found.ci_low} path=${path("ci_low")} form=${score} /> to <${Figure} value=${found.ci_high} path=${path("ci_high")} form=${score} /></p>
      <p class="fine">${found.ci_method}</p>`}
    ${typeof found.aggregation === "string" && found.aggregation === "mean" ? null : html`<p class="small">
      ${typeof found.aggregation === "string" ? found.aggregation : html`mean without <${Figure} value=${found.aggregation.trimmed_mean}
        path=${path("aggregation", "trimmed_mean")} /> % at each end`} <${Figure} value=${found.aggregate} path=${path("aggregate")} form=${score} /></p>`}
    ${corrected ? html`<${Corrected} found=${corrected} path=${(key) => path("corrected", key)} />` : null}
    <${Basis} found=${found} path=${path} />
  </div>`;
}

function Corrected({ found, path }) {
  if (found.mean === null || found.mean === undefined) {
    const why = found.reasons ? JSON.stringify(found.reasons) : "";
    return html`<p class="small">corrected for the gate: not known ${why}</p>`;
  }
  return html`<p class="small corrected">corrected for the subjects that the gate held back${" "}
    <strong><${Figure} value=${found.mean} path=${path("mean")} form=${score} /></strong>${" "}
    (<${Figure} value=${found.ci_low} path=${path("ci_low")} form=${score} /> to <${Figure} value=${found.ci_high} path=${path("ci_high")} form=${score} />,${" "}
    ${found.method}, <${Figure} value=${found.n_audited} path=${path("n_audited")} /> audited)</p>`;
}

function Basis({ found, path }) {
  const bases = Object.entries(found.by_basis ?? {});
  if (!bases.length) return null;
  const parts = bases.map(([basis, count]) => ({ name: restingOn(basis), count, kind: basis }));
  return html`<div class="basis"><${Shares} parts=${parts} label="Basis of the scores" />
    <p class="small">resting ${bases.map(([basis, count], number) => html`${number ? ", " : ""}on ${restingOn(basis)}: <${Figure}
      value=${count} path=${path("by_basis", basis)} />`)}</p></div>`;
}

function PassTile({ run, at_ }) {
  const found = run.document.score;
  const passes = found?.passes;
  if (!passes) return null;
  const path = (...keys) => at_("score", ...keys);
  const open = run.document.gate?.clauses?.some((clause) => clause.rule === "min_pass_rate" && clause.on === found.label && Number(clause.open ?? 0));
  return html`<div class="tile">
    <h3>Pass rate</h3>
    <p class="big"><${Figure} value=${found.pass_rate} path=${path("pass_rate")} form=${score} /></p>
    <${Interval} value=${Number(found.pass_rate)} from=${passes.ci_low === null ? null : Number(passes.ci_low)}
      to=${passes.ci_high === null ? null : Number(passes.ci_high)} label=${`pass rate ${score(found.pass_rate)}`} />
    <p class="small"><${Figure} value=${passes.passed} path=${path("passes", "passed")} /> of <${Figure} value=${passes.n} path=${path("passes", "n")} /> pass${" "}
      ${run.pass_at[found.label] === undefined ? null : html` (at <${Figure} value=${run.pass_at[found.label]} /> or more)`}</p>
    ${passes.ci_low === null ? null : html`<p class="small">95 % interval <${Figure} value=${passes.ci_low} path=${path("passes", "ci_low")} form=${score} /> to${" "}
      <${Figure} value=${passes.ci_high} path=${path("passes", "ci_high")} form=${score} /></p><p class="fine">${passes.ci_method}</p>`}
    ${open ? html`<p class="small">without the open subjects, which the interval of the gate counts both ways</p>` : null}
  </div>`;
}

function CoverageTile({ run, at_ }) {
  const done = run.document;
  return html`<div class="tile">
    <h3>Coverage</h3>
    <p class="big"><${Figure} value=${done.coverage} path=${at_("coverage")} form=${score} none="none" /></p>
    <${Shares} parts=${[
      { name: "scored", count: done.scored, kind: "pass" },
      { name: "failed", count: done.failed, kind: "none" },
      { name: "budget exhausted", count: done.unaffordable, kind: "open" },
    ]} label="Scored and failed subjects" />
    <p class="small"><${Figure} value=${done.scored} path=${at_("scored")} /> scored, <${Figure} value=${done.failed} path=${at_("failed")} /> failed,${" "}
      of <${Figure} value=${done.subjects} path=${at_("subjects")} /> subjects read${Number(done.skipped) ? html`, <${Figure} value=${done.skipped}
      path=${at_("skipped")} /> not judged` : ""}${Number(done.unaffordable) ? html`, <${Figure} value=${done.unaffordable} path=${at_("unaffordable")} /> not judged: budget exhausted` : ""}</p>
    ${run.failures.length ? html`<ul class="kinds">${run.failures.map(([words, count, path]) => html`<li>${words} <${Figure} value=${count} path=${path ? at_(...path) : null} /></li>`)}</ul>` : html`<p class="small">no subject failed</p>`}
  </div>`;
}

/** The reason for a run's early end, with its details. */
function Stopped({ stopped, at_ }) {
  if (!stopped) return null;
  const more = Object.entries(stopped).filter(([key, value]) => key !== "reason" && value !== null && (value instanceof Num || typeof value === "string"));
  return html`<p class="warnings" dir="auto">stopped before the end: ${String(stopped.reason).replaceAll("_", " ")}${more.map(([key, value]) => html`, ${key.replaceAll("_", " ")}${" "}
    ${value instanceof Num ? html`<${Figure} value=${value} path=${at_("stopped", key)} />` : value}`)}</p>`;
}

function Warnings({ done }) {
  const warnings = [
    ...(done.warnings ?? []).map((warning) => warning.message),
    ...Object.values(done.broken ?? {}).map((message) => `broken: ${message}`),
  ];
  return warnings.length ? html`<ul class="warnings" aria-label="Warnings">${warnings.map((text) => html`<li dir="auto">${text}</li>`)}</ul>` : null;
}

/** One line for a run in a table of several. */
export const shortly = (done) => {
  const labels = Object.keys(done.labels ?? {}).length;
  return !done.score && labels > 1 ? `${labels} labels` : done.score?.mean === null || !done.score ? "no score" : plain(done.score.mean);
};
