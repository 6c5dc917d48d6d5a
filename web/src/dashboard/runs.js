// Runs over time, and one run with its rows.
import { html, useEffect, useState } from "../html.js";
import { Figure, plain, score } from "../figures.js";
import { Interval } from "../charts.js";
import { answer as gateAnswer, gateOf, Mark, restingOn } from "../marks.js";
import { address, ask, useAnswer } from "./api.js";
import { isOpen, Progress } from "./progress.js";
import { useTitle } from "./title.js";
import { Answer, Cost, Gate, isStateShown, nameOf, Problem, RunScore, TOOL, when } from "./parts.js";
import { alter, ofRun, place, readPlace } from "./router.js";
import { Rows } from "./rows.js";
import { Trend } from "./trend.js";

const PAGE = 50;

/** Pages of a list, one below the other: `{items, path(number), more, next(), error}`; from the beginning again when `tick` moves. */
function usePages(first, tick) {
  const [pages, setPages] = useState([]);
  const [error, setError] = useState(null);
  const load = async (url, before) => {
    try {
      const document = await ask(url);
      setPages([...before, { url, document }]);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    if (pages.length < 2 || !pages[0].url.startsWith(first)) load(first, []); // who has read on is not thrown back by a new verdict
  }, [first, tick]);
  const last = pages.at(-1);
  const cursor = last?.document.next_cursor ?? null;
  const items = pages.flatMap((page) => page.document.data.map((item, number) => ({ item, at: (path) => `${page.url}#data[${number}].${path}` })));
  const next = () => load(`${first}${first.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(String(cursor))}`, pages);
  return { items, pages, more: cursor !== null, next, error, read: pages.length > 0 };
}

function More({ found }) {
  return found.more ? html`<p><button class="chip" type="button" onClick=${found.next}>Show more</button></p>` : null;
}

export function Runs({ live, query, runCommand }) {
  const found = usePages(address("/runs", { limit: PAGE, without_kind: query.tools === "1" ? null : TOOL, failing: query.failing === "1" ? "true" : null }), live.tick);
  const [picked, pick] = useState([]);
  const toggle = (id) => pick(picked.includes(id) ? picked.filter((one) => one !== id) : [...picked, id].slice(-2));
  return html`<div class="top"><h1>Runs</h1>${picked.length === 2 ? html`<a class="action" href=${place(["compare"], { a: picked[0], b: picked[1] })}>Compare the two</a>` : html`<span class="soft">Choose two to compare them.</span>`}</div>
    <div class="picks"><label class="pick"><input type="checkbox" checked=${query.tools === "1"} onChange=${(event) => alter({ tools: event.currentTarget.checked ? "1" : "" })} /> also runs of tools: labels of people, dicast doctor</label>
    <label class="pick"><input type="checkbox" checked=${query.failing === "1"} onChange=${(event) => alter({ failing: event.currentTarget.checked ? "1" : "" })} /> only failed runs that no newer run of their pipeline has passed</label></div>
    ${found.error ? html`<${Problem} error=${found.error} />` : null}
    ${found.read && found.items.length === 0 && query.failing === "1" ? html`<p class="empty">The newest gate of every pipeline has passed.</p>` : found.read && found.items.length === 0 ? html`<p class="empty">No run yet. <code>${runCommand}</code> makes the first.</p>` : html`
    <div class="scroll" tabindex="0" role="group" aria-label="Runs"><table class="list"><thead><tr><th scope="col"><span class="hidden">compare</span></th><th scope="col">started (UTC)</th><th scope="col">pipeline</th><th scope="col">gate</th><th scope="col" class="num">score</th><th scope="col" class="roomy">rests on</th><th scope="col" class="num roomy">scored</th><th scope="col" class="num roomy">of</th><th scope="col" class="num roomy">cost</th><th scope="col" class="roomy">state</th></tr></thead>
      <tbody>${found.items.map(({ item: run, at }) => html`<tr key=${run.run_id}><td><input type="checkbox" checked=${picked.includes(run.run_id)} onChange=${() => toggle(run.run_id)} aria-label=${`Compare ${run.name} of ${when(run.started_at)}`} /></td>
        <td class="still">${when(run.started_at)}${run.cost === null ? null : html`<span class="slim soft">cost <${Cost} of=${run} at=${at} /></span>`}</td><th scope="row" dir="auto"><a href=${ofRun(run.run_id)}>${run.name}</a>${run.kind === "pipeline" || run.kind === undefined ? null : html` <span class="soft">${run.kind}</span>`}</th><td><${Gate} run=${run} /></td>
        <td class="num"><${RunScore} run=${run} at=${at} /></td><td class="roomy">${run.basis === null ? "–" : restingOn(run.basis)}</td>
        ${run.ended_at === null ? html`<${SoFar} run=${run} tick=${live.tick} />` : html`<td class="num roomy"><${Figure} value=${run.scored} path=${at("scored")} /></td><td class="num roomy"><${Figure} value=${run.subjects} path=${at("subjects")} /></td>
        <td class="num roomy">${run.cost === null ? "–" : html`<${Cost} of=${run} at=${at} />`}</td>`}<td class="roomy still">${isStateShown(run) ? "" : run.state}</td></tr>`)}</tbody></table></div>`}
    <${More} found=${found} />`;
}

/** The cells of a run that has not ended: judged and expected subjects, and the cost so far. */
function SoFar({ run, tick }) {
  const { document, at } = useAnswer(address(`/runs/${encodeURIComponent(run.run_id)}/progress`), tick);
  const figure = (name) => html`<${Figure} value=${document?.[name]} path=${at(name)} />`;
  return html`<td class="num roomy">${figure("judged")}</td><td class="num roomy">${figure("expected")}</td><td class="num roomy">${document === null ? "–" : html`<${Cost} of=${document} at=${at} />`}</td>`;
}

export function Run({ id, live, query, mayLabel }) {
  const answer = useAnswer(address(`/runs/${encodeURIComponent(id)}`), live.tick);
  useTitle(answer.document ? `${answer.document.run.name} · run ${id.slice(-6)}` : `run ${id.slice(-6)}`);
  return html`<${Answer} answer=${answer} heading=${`run ${id}`}>${({ run, document }) => html`<div class="top"><div><p class="small">run <code>${run.run_id}</code></p><h1 dir="auto">${run.name}</h1></div>
      <div class="chips"><a class="action" href=${place(["compare"], { b: run.run_id })}>Compare with another</a>${mayLabel ? html`<a class="action" href=${place(["label"], { run: run.run_id })}>Label its subjects</a>` : null}</div></div>
    ${isOpen(run) ? html`<p class="small">Started ${when(run.started_at)} UTC. <${Gate} run=${run} /></p>` : null}
    <div class="run-head">${isOpen(run) ? html`<div class=${document === null ? "so-far" : "whole"}><${Progress} run=${run} tick=${live.tick} /></div>` : null}<${Outcome} run=${run} document=${document} at=${answer.at} label=${query.label} />
    <details class="trend-of" open><summary>Trend of the last runs</summary><${Trend} name=${run.name} label=${query.label ?? null} rest="all labels, figures of" onLabel=${(label) => alter({ label })} word="figures and trend of" own=${run.run_id} tick=${run.state === "completed" ? 0 : live.tick} /></details></div>
    <h2 id="rows">Subjects</h2><${Rows} run=${run.run_id} name=${run.name} query=${query} tick=${run.state === "completed" && !query.baseline ? 0 : live.tick} />`}</${Answer}>`;
}

function Outcome({ run, document, at, label }) {
  if (document === null) return null;
  const { outcome, word, reasons, clauses } = gateOf(document);
  const own = headline(run, document, label);
  const failures = failuresOf(document, own, label);
  return html`${run.state === "running" ? html`<p class="note whole">This run continues. The figures are of its last pause; all its rows are below.</p>` : null}<div class=${`gate ${outcome}`}><p class="verdict"><${Mark} outcome=${outcome} word=${word} /></p>
      ${reasons.length ? html`<ul class="reasons">${reasons.map((one) => html`<li dir="auto">${one}</li>`)}</ul>` : null}
      ${clauses.length ? html`<div class="scroll" tabindex="0" role="group" aria-label="Gate"><table><thead><tr><th scope="col">on</th><th scope="col">rule</th><th scope="col" class="num">line</th><th scope="col" class="num">value</th><th scope="col">outcome</th></tr></thead><tbody>${clauses.map((one, number) => html`<tr><td dir="auto">${nameOf(run, one.on) ?? "all"}</td><td>${one.rule}</td><td class="num"><${Figure} value=${one.line} path=${at(`document.gate.clauses[${number}].line`)} /></td><td class="num"><${Figure} value=${one.value} path=${at(`document.gate.clauses[${number}].value`)} /></td><td><${Mark} outcome=${gateAnswer(one.passed)[0]} word=${gateAnswer(one.passed)[1]} /></td></tr>`)}</tbody></table></div>` : null}</div>
    <dl class="figures">
      ${own ? html`<div><dt>mean of <span dir="auto">${nameOf(run, own.label)}</span></dt><dd><${Figure} value=${own.found.mean} path=${at(`${own.path}.mean`)} form=${score} /> <${Spread} low=${own.found.ci_low} high=${own.found.ci_high} at=${(end) => at(`${own.path}.ci_${end}`)} form=${score} /></dd></div>
        <div><dt>pass rate of <span dir="auto">${nameOf(run, own.label)}</span></dt><dd><${Figure} value=${own.found.pass_rate} path=${at(`${own.path}.pass_rate`)} form=${score} /> <${Spread} low=${own.found.passes?.ci_low} high=${own.found.passes?.ci_high} at=${(end) => at(`${own.path}.passes.ci_${end}`)} form=${score} /></dd></div>` : null}
      <div><dt>subjects</dt><dd><${Figure} value=${document.subjects} path=${at("document.subjects")} /></dd></div>
      <div><dt>scored by every label</dt><dd><${Figure} value=${document.coverage} path=${at("document.coverage")} form=${score} /></dd></div>
      <div><dt>${failures.of === null ? "no score" : html`no score of <span dir="auto">${nameOf(run, failures.of)}</span>`}</dt><dd><${Failed} run=${run} label=${failures.label} count=${failures.count}><${Figure} value=${failures.count} path=${at(failures.path)} /></${Failed}></dd></div>
      <div><dt>cost</dt><dd><${Cost} of=${run} at=${(path) => at(`run.${path}`)} /></dd></div>
      <div><dt>started</dt><dd>${when(run.started_at)}</dd></div></dl>
    ${document.warnings.length ? html`<ul class="warnings whole">${document.warnings.map((one) => html`<li dir="auto">${one.message}</li>`)}</ul>` : null}
    <${Means} run=${run} document=${document} at=${at} />`;
}

/** The failed judgments of the chosen label, else of the run: `{of, label, count, path}`. The list is of the label with the most failures. */
function failuresOf(document, own, chosen) {
  if (own && chosen === own.label && own.found.failed !== undefined) return { of: own.label, label: own.label, count: own.found.failed, path: `${own.path}.failed` };
  const [most] = Object.entries(document.labels ?? {}).filter(([, one]) => Number(one.failed ?? 0) > 0).sort(([, one], [, other]) => Number(other.failed) - Number(one.failed));
  return { of: null, label: most?.[0] ?? null, count: document.failed, path: "document.failed" };
}

/** A count of failures, as a link to the subjects without a score. */
function Failed({ run, label, count, children }) {
  return Number(count ?? 0) === 0 ? children : html`<a href=${ofRun(run.run_id, { label, outcome: "none" })} onClick=${() => setTimeout(() => document.getElementById("rows")?.scrollIntoView(), 0)} aria-label=${`${plain(count)} without a score${label === null ? "" : ` of ${label}`}: show them`}>${children}</a>`;
}

/** The figures of the chosen label, else of the gate's, with their place in the document. */
function headline(run, document, chosen) {
  const names = Object.keys(document.metrics ?? {});
  const keyOf = (label) => (names.length === 1 && names[0] === label && document.labels?.metrics ? "metrics" : label); // the only metric is no label of its own
  const place = (label) => ["labels", "metrics"].filter((part) => document[part]?.[label]).map((part) => ({ label, found: document[part][label], path: `document.${part}[${JSON.stringify(label)}]` }))[0];
  return place(keyOf(chosen)) ?? place(keyOf(run.gate_label));
}

function Spread({ low, high, at, form }) {
  return low === null || low === undefined ? null : html`<span class="soft">(<${Figure} value=${low} path=${at("low")} form=${form} /> to <${Figure} value=${high} path=${at("high")} form=${form} />)</span>`;
}

/** The name of a label, as a link to its figures and its trend; a single metric has none. */
function Shown({ run, name, children }) {
  return run.labels[name] === undefined ? children : html`<a href=${place(["run", run.run_id], { ...readPlace(location.hash).query, label: name })}>${children}</a>`;
}

/** Every label of the file, then the metrics where there are several: the only metric is the label `metrics`. */
function Means({ run, document, at }) {
  const names = Object.keys(document.metrics);
  const metrics = names.length > 1 ? ["metrics"] : [];
  const rows = ["labels", ...metrics].flatMap((part) => Object.entries(document[part] ?? {}).map(([name, one]) => [name, one, `document.${part}[${JSON.stringify(name)}]`]));
  if (rows.length === 0) return null;
  return html`<div class="scroll means" tabindex="0" role="group" aria-label="Metrics and judges"><table><thead><tr><th scope="col">label</th><th scope="col" class="num">mean</th><th scope="col" class="roomy"><span class="hidden">drawn</span></th><th scope="col" class="num">pass rate</th><th scope="col" class="num">scored</th><th scope="col" class="num">no score</th></tr></thead><tbody>${rows.map(([name, one, path]) => html`<tr><th scope="row" dir="auto"><${Shown} run=${run} name=${name}>${nameOf(run, name)}</${Shown}></th><td class="num"><${Figure} value=${one.mean} path=${at(`${path}.mean`)} form=${score} /></td><td class="roomy">${one.mean === null ? null : html`<${Interval} value=${Number(one.mean)} from=${one.ci_low === null || one.ci_low === undefined ? null : Number(one.ci_low)} to=${one.ci_low === null || one.ci_low === undefined ? null : Number(one.ci_high)} label=${one.ci_low === null || one.ci_low === undefined ? `mean ${score(one.mean)}` : `mean ${score(one.mean)}, 95 % interval ${score(one.ci_low)} to ${score(one.ci_high)}`} />`}</td><td class="num"><${Figure} value=${one.pass_rate} path=${at(`${path}.pass_rate`)} form=${score} /></td><td class="num"><${Figure} value=${one.scored} path=${at(`${path}.scored`)} /></td><td class="num">${one.failed === undefined ? "–" : html`<${Failed} run=${run} label=${name} count=${one.failed}><${Figure} value=${one.failed} path=${at(`${path}.failed`)} /></${Failed}>`}</td></tr>`)}</tbody></table></div>`;
}
