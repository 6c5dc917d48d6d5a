// Runs over time, and one run with its rows.
import { html, useEffect, useState } from "../html.js";
import { Figure, percent, score } from "../figures.js";
import { Interval } from "../charts.js";
import { answer as gateAnswer, gateOf, Mark, restingOn } from "../marks.js";
import { address, ask, useAnswer } from "./api.js";
import { Answer, Gate, Problem, RunScore, Spent, TOOL, when } from "./parts.js";
import { alter, ofRun, ofSubject, place } from "./router.js";

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

export function Runs({ live, query }) {
  const found = usePages(address("/runs", { limit: PAGE, without_kind: query.tools === "1" ? null : TOOL }), live.tick);
  const [picked, pick] = useState([]);
  const toggle = (id) => pick(picked.includes(id) ? picked.filter((one) => one !== id) : [...picked, id].slice(-2));
  return html`<div class="top"><h1>Runs</h1>${picked.length === 2 ? html`<a class="action" href=${place(["compare"], { a: picked[0], b: picked[1] })}>Compare the two</a>` : html`<span class="soft">Choose two to compare them.</span>`}</div>
    <label class="pick"><input type="checkbox" checked=${query.tools === "1"} onChange=${(event) => alter({ tools: event.currentTarget.checked ? "1" : "" })} /> also runs of tools: labels of people, dicast doctor</label>
    ${found.error ? html`<${Problem} error=${found.error} />` : null}
    ${found.read && found.items.length === 0 ? html`<p class="empty">No run yet. <code>dicast run pipeline.yaml</code> makes the first.</p>` : html`
    <div class="scroll" tabindex="0" role="group" aria-label="Runs"><table class="list"><thead><tr><th scope="col"><span class="hidden">compare</span></th><th scope="col">began (UTC)</th><th scope="col">pipeline</th><th scope="col">gate</th><th scope="col" class="num">score</th><th scope="col" class="roomy">rests on</th><th scope="col" class="num roomy">scored</th><th scope="col" class="num roomy">of</th><th scope="col" class="num">cost</th><th scope="col" class="roomy">state</th></tr></thead>
      <tbody>${found.items.map(({ item: run, at }) => html`<tr key=${run.run_id}><td><input type="checkbox" checked=${picked.includes(run.run_id)} onChange=${() => toggle(run.run_id)} aria-label=${`Compare ${run.name} of ${when(run.started_at)}`} /></td>
        <td class="still">${when(run.started_at)}</td><th scope="row" dir="auto"><a href=${ofRun(run.run_id)}>${run.name}</a>${run.kind === "pipeline" || run.kind === undefined ? null : html` <span class="soft">${run.kind}</span>`}</th><td><${Gate} run=${run} /></td>
        <td class="num"><${RunScore} run=${run} at=${at} /></td><td class="roomy">${run.basis === null ? "–" : restingOn(run.basis)}</td>
        <td class="num roomy"><${Figure} value=${run.scored} path=${at("scored")} /></td><td class="num roomy"><${Figure} value=${run.subjects} path=${at("subjects")} /></td>
        <td class="num">${run.cost === null ? "–" : html`<${Spent} usd=${run.cost.usd} msat=${run.cost.msat} at=${(unit) => at(`cost.${unit}`)} />`}</td><td class="roomy">${run.state}</td></tr>`)}</tbody></table></div>`}
    <${More} found=${found} />`;
}

export function Run({ id, live, query }) {
  const answer = useAnswer(address(`/runs/${encodeURIComponent(id)}`), live.tick);
  return html`<${Answer} answer=${answer}>${({ run, document }) => html`<div class="top"><div><p class="small">run <code>${run.run_id}</code></p><h1 dir="auto">${run.name}</h1></div>
      <a class="action" href=${place(["compare"], { b: run.run_id })}>Compare with another</a></div>
    <${Outcome} run=${run} document=${document} at=${answer.at} />
    <${Rows} id=${run.run_id} query=${query} tick=${live.tick} judges=${document ? [...Object.keys(document.judges), ...(Object.keys(document.metrics).length ? ["metrics"] : [])] : []} />`}</${Answer}>`;
}

function Outcome({ run, document, at }) {
  if (document === null) return html`<p class="note">Began ${when(run.started_at)} UTC, ${run.state}: <${Figure} value=${run.scored} path=${at("run.scored")} /> of <${Figure} value=${run.subjects} path=${at("run.subjects")} /> subjects are scored. Its rows are below.</p>`;
  const { outcome, word, reasons, clauses } = gateOf(document);
  const total = document.score;
  return html`${run.state === "running" ? html`<p class="note">This run continues. The figures are of its last pause; all its rows are below.</p>` : null}<div class=${`gate ${outcome}`}><p class="verdict"><${Mark} outcome=${outcome} word=${word} /></p>
      ${reasons.length ? html`<ul class="reasons">${reasons.map((one) => html`<li dir="auto">${one}</li>`)}</ul>` : null}
      ${clauses.length ? html`<div class="scroll" tabindex="0" role="group" aria-label="Gate"><table><thead><tr><th scope="col">on</th><th scope="col">rule</th><th scope="col" class="num">line</th><th scope="col" class="num">value</th><th scope="col">outcome</th></tr></thead><tbody>${clauses.map((one, number) => html`<tr><td dir="auto">${one.on ?? "all"}</td><td>${one.rule}</td><td class="num"><${Figure} value=${one.line} path=${at(`document.gate.clauses[${number}].line`)} /></td><td class="num"><${Figure} value=${one.value} path=${at(`document.gate.clauses[${number}].value`)} /></td><td><${Mark} outcome=${gateAnswer(one.passed)[0]} word=${gateAnswer(one.passed)[1]} /></td></tr>`)}</tbody></table></div>` : null}</div>
    <dl class="figures">
      ${total ? html`<div><dt>score of <span dir="auto">${total.label}</span></dt><dd><${Figure} value=${total.mean} path=${at("document.score.mean")} form=${score} /> ${total.ci_low === null ? null : html`<span class="soft">(<${Figure} value=${total.ci_low} path=${at("document.score.ci_low")} form=${score} /> to <${Figure} value=${total.ci_high} path=${at("document.score.ci_high")} form=${score} />)</span>`}</dd></div>
        <div><dt>pass</dt><dd><${Figure} value=${total.pass_rate} path=${at("document.score.pass_rate")} form=${percent} /></dd></div>` : null}
      <div><dt>subjects</dt><dd><${Figure} value=${document.subjects} path=${at("document.subjects")} /></dd></div>
      <div><dt>coverage</dt><dd><${Figure} value=${document.coverage} path=${at("document.coverage")} form=${percent} /></dd></div>
      <div><dt>failed</dt><dd><${Figure} value=${document.failed} path=${at("document.failed")} /></dd></div>
      <div><dt>cost</dt><dd><${Spent} usd=${document.cost.usd} msat=${document.cost.msat} at=${(unit) => at(`document.cost.${unit}`)} /></dd></div>
      <div><dt>began</dt><dd>${when(run.started_at)}</dd></div></dl>
    ${document.warnings.length ? html`<ul class="warnings">${document.warnings.map((one) => html`<li dir="auto">${one.message}</li>`)}</ul>` : null}
    <${Means} document=${document} at=${at} />`;
}

/** Every label of the file, then the metrics where there are several. */
function Means({ document, at }) {
  const metrics = Object.keys(document.metrics).length > 1 ? ["metrics"] : [];
  const rows = ["labels", ...metrics].flatMap((part) => Object.entries(document[part] ?? {}).map(([name, one]) => [name, one, `document.${part}[${JSON.stringify(name)}]`]));
  if (rows.length === 0) return null;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Metrics and judges"><table><thead><tr><th scope="col">label</th><th scope="col" class="num">mean</th><th scope="col"><span class="hidden">drawn</span></th><th scope="col" class="num">pass rate</th><th scope="col" class="num">scored</th><th scope="col" class="num">failed</th></tr></thead><tbody>${rows.map(([name, one, path]) => html`<tr><th scope="row" dir="auto">${name}</th><td class="num"><${Figure} value=${one.mean} path=${at(`${path}.mean`)} form=${score} /></td><td>${one.mean === null ? null : html`<${Interval} value=${Number(one.mean)} from=${one.ci_low === null || one.ci_low === undefined ? null : Number(one.ci_low)} to=${one.ci_low === null || one.ci_low === undefined ? null : Number(one.ci_high)} label=${`mean ${score(one.mean)}`} />`}</td><td class="num"><${Figure} value=${one.pass_rate} path=${at(`${path}.pass_rate`)} form=${percent} /></td><td class="num"><${Figure} value=${one.scored} path=${at(`${path}.scored`)} /></td><td class="num">${one.failed === undefined ? "–" : html`<${Figure} value=${one.failed} path=${at(`${path}.failed`)} />`}</td></tr>`)}</tbody></table></div>`;
}

const SHOWN = [["all", {}], ["failures", { failed: "true" }], ["under .5", { max_score: "0.499999" }], [".5 and more", { min_score: "0.5" }]];

function Rows({ id, query, tick, judges }) {
  const shown = SHOWN.find(([word]) => word === query.show) ?? SHOWN[0];
  const order = query.order === "seq" ? "seq" : "score";
  const found = usePages(address(`/runs/${encodeURIComponent(id)}/rows`, { ...shown[1], judge: query.judge, subject: query.find, order, limit: PAGE }), tick);
  const total = found.pages[0];
  return html`<h2>Rows</h2><div class="toolbar"><div class="chips" role="group" aria-label="Which rows">${SHOWN.map(([word]) => html`<button type="button" class="chip" aria-pressed=${word === shown[0] ? "true" : "false"} onClick=${() => alter({ show: word })}>${word}</button>`)}</div>
      ${judges.length > 1 ? html`<label class="pick">judge <select value=${query.judge ?? ""} onChange=${(event) => alter({ judge: event.currentTarget.value })}><option value="">all</option>${judges.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>` : null}
      <label class="pick">order <select value=${order} onChange=${(event) => alter({ order: event.currentTarget.value })}><option value="score">worst first</option><option value="seq">as judged</option></select></label>
      <label class="pick">subject <input type="search" value=${query.find ?? ""} placeholder="whole id" onChange=${(event) => alter({ find: event.currentTarget.value })} /></label></div>
    ${found.error ? html`<${Problem} error=${found.error} />` : null}
    ${total ? html`<p class="count" role="status"><${Figure} value=${total.document.total} path=${`${total.url}#total`} /> rows</p>` : html`<p class="empty">Reading …</p>`}
    ${found.items.length === 0 ? null : html`<div class="scroll" tabindex="0" role="group" aria-label="Rows"><table class="list"><thead><tr><th scope="col" class="num">score</th><th scope="col">subject</th><th scope="col">judge</th><th scope="col" class="num">confidence</th><th scope="col" class="roomy">kind</th><th scope="col" class="num">cost</th></tr></thead>
      <tbody>${found.items.map(({ item: row, at }) => html`<tr key=${String(row.seq)}><td class="num strong">${row.failed ? html`<${Mark} outcome="none" word="failed" />` : html`<${Figure} value=${row.score} path=${at("score")} form=${score} />`}</td>
        <th scope="row" dir="auto"><a href=${ofSubject(row.subject_kind, row.subject_id, { run: row.run_id, eval: String(row.seq) })}>${row.subject_id}</a></th><td dir="auto">${row.judge}</td>
        <td class="num"><${Figure} value=${row.confidence} path=${at("confidence")} form=${score} /></td><td class="roomy">${row.judge_kind ?? "–"}</td><td class="num"><${Spent} usd=${row.judge_cost_usd} msat=${row.judge_cost_msat} at=${(unit) => at(`judge_cost_${unit}`)} none="–" /></td></tr>`)}</tbody></table></div>`}
    <${More} found=${found} />`;
}
