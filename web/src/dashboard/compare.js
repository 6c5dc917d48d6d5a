// Two runs compared: differences with their intervals and words, then subject by subject, those with the largest change first.
import { html, useEffect } from "../html.js";
import { Prompts } from "../prompts.js";
import { Figure, pValue, signed } from "../figures.js";
import { address, useAnswer } from "./api.js";
import { isOpen } from "./progress.js";
import { Answer, ByLabel, TOOL, Problem, when } from "./parts.js";
import { alter, ofRun } from "./router.js";
import { Rows } from "./rows.js";
import { useTitle } from "./title.js";


const ANSWERED = ["stats/paired", "stats/significance"]; // an answer is of paired differences by session: a label has one answer, also where another test has less power
const TITLES = { "stats/cliffs_delta": "How often B is above A (Cliff's delta)", "stats/significance": "Difference of the means" };
const FEW = 3; // labels whose figures are shown at once; the figures of more labels are folded

export function Compare({ query, live }) {
  const runs = useAnswer(address("/runs", { limit: 200, without_kind: TOOL }), live.tick);
  const listed = runs.document?.data ?? [];
  const [a, b] = sides(listed, query);
  useEffect(() => {
    if (a && b && (query.a !== a || query.b !== b)) alter({ a, b }); // later runs do not change the pair then
  }, [a, b, query.a, query.b]);
  const growing = listed.filter((run) => (run.run_id === a || run.run_id === b) && isOpen(run));
  const tick = growing.length ? live.tick : 0;
  const named = (id) => { const run = listed.find((one) => one.run_id === id); return run ? `${run.name} ${id.slice(-6)}` : (id ?? "").slice(-6); };
  useTitle(a && b ? `Compare ${named(a)} with ${named(b)}` : "Compare");
  const answer = useAnswer(a && b && a !== b && !growing.length ? address("/compare", { a, b, allow_incomparable: query.any === "1" ? "true" : null }) : null, tick);
  return html`<div class="top"><h1>Compare</h1></div>
    <div class="picks"><${Side} word="baseline" name="a" runs=${listed} value=${a} /><${Side} word="with" name="b" runs=${listed} value=${b} />
      <label class="pick"><input type="checkbox" checked=${query.any === "1"} onChange=${(event) => alter({ any: event.currentTarget.checked ? "1" : "" })} /> also runs that are not comparable</label></div>
    ${runs.document && listed.length < 2 ? html`<p class="empty">A comparison needs two runs.</p>` : a === b && a ? html`<p class="empty">Choose two different runs.</p>` : html`
    ${growing.length ? html`<p class="note" role="status">${growing.map((run) => html`<a href=${ofRun(run.run_id)} dir="auto">${run.name} ${run.run_id.slice(-6)}</a> `)}${growing.length > 1 ? "have" : "has"} not ended. The differences follow at the end; the subjects judged so far are below.</p>` : html`<${Answer} answer=${answer} what="the scores of both runs" none=${(error) => html`<${Problem} error=${error} />`}>${(document) => html`<${Found} document=${document} />`}</${Answer}>`}
    ${a && b && a !== b ? html`<h2>Subjects</h2><${Rows} run=${b} name=${listed.find((one) => one.run_id === b)?.name ?? b} query=${{ sort: "change", ...query, baseline: a }} tick=${tick} isComparing key=${`${a} ${b}`} /><${BothPrompts} a=${a} b=${b} key=${`prompts ${a} ${b}`} />` : null}
    ${answer.document ? html`<${Figures} document=${answer.document} at=${answer.at} />` : null}`}`;
}

/** The prompts of both runs, where their tasks have any. */
function BothPrompts({ a, b }) {
  const [older, newer] = [a, b].map((id) => useAnswer(address(`/runs/${encodeURIComponent(id)}`)));
  if (older.document === null || newer.document === null) return null;
  return html`<${Prompts} before=${older.document.prompts} after=${newer.document.prompts} />`;
}

/** The other experiment of the suite of `run` that started nearest to it. */
function siblingOf(listed, run) {
  const suite = (name) => name.slice(0, name.lastIndexOf("/") + 1);
  const apart = (one) => Math.abs(Date.parse(one.started_at) - Date.parse(run.started_at));
  if (!run || suite(run.name) === "") return null;
  return listed.filter((one) => one.name !== run.name && suite(one.name) === suite(run.name)).sort((one, other) => apart(one) - apart(other))[0] ?? null;
}

/** The runs of the query; without them the newest, and a sibling in its suite or the run before it of the same name. */
function sides(listed, query) {
  const b = query.b ?? (listed.find((one, number) => listed.some((other, place) => place > number && other.name === one.name)) ?? listed[0])?.run_id;
  const place = listed.findIndex((one) => one.run_id === b);
  const sibling = siblingOf(listed, listed[place]);
  const before = sibling ?? listed.find((one, number) => number > place && one.name === listed[place]?.name);
  return [query.a ?? before?.run_id ?? listed.find((one) => one.run_id !== b)?.run_id, b];
}

function Side({ word, name, runs, value }) {
  const other = value && !runs.some((one) => one.run_id === value) ? [value] : [];
  return html`<label class="pick">${word} <select value=${value ?? ""} onChange=${(event) => alter({ [name]: event.currentTarget.value })}>${runs.map((one) => html`<option value=${one.run_id}>${one.name} · ${when(one.started_at)} · ${one.run_id.slice(-6)}${one.gate ? ` · ${one.gate}` : ""}</option>`)}${other.map((id) => html`<option value=${id}>${runs.length ? id : "…"}</option>`)}</select></label>`;
}

function Found({ document }) {
  return html`<p class="small">A is the baseline, <a href=${ofRun(document.a.run_id)}><span dir="auto">${document.a.name}</span> <code>${document.a.run_id.slice(-6)}</code></a>; B is <a href=${ofRun(document.b.run_id)}><span dir="auto">${document.b.name}</span> <code>${document.b.run_id.slice(-6)}</code></a>. Differences are B minus A.</p>
    ${(document.sentences ?? []).map((text) => html`<p class="lead words" dir="auto">${text}</p>`)}
    ${document.comparable ? null : html`<p class="warnings">Not comparable: <span dir="auto">${document.faults.join(", ")}</span></p>`}
`;
}

/** The figures behind the sentences. */
function Figures({ document, at }) {
  const passes = Object.entries(document.passes);
  const answers = Object.entries(document.answers ?? {});
  const others = Object.entries(document.comparisons).filter(([name]) => !ANSWERED.includes(name) || answers.length === 0);
  return html`<details class="figures-of" open=${passes.length <= FEW}><summary>Differences with their intervals</summary>${answers.length ? html`<${Answers} answers=${answers} at=${at} />` : null}${others.map(([name, found]) => html`<${Comparison} name=${name} found=${found} at=${(path) => at(`comparisons[${JSON.stringify(name)}].${path}`)} />`)}</details>
    <h2>Passes</h2>${passes.length === 0 ? html`<p class="empty">No label has passes and failures in both runs.</p>` : html`<${Counts} passes=${passes} at=${at} />`}`;
}

/** The figures of the sentences, by label. Subjects that the proxies held back give a lowest and a highest difference. */
function Answers({ answers, at }) {
  const isHeld = answers.some(([, one]) => one.held_back_a !== undefined);
  const figure = (label, one, name, form) => html`<${Figure} value=${one[name]} path=${at(`answers[${JSON.stringify(label)}].${name}`)} form=${form} />`;
  const mean = (label, one) => (one.mean_difference_low === undefined || one.mean_difference_low === null ? figure(label, one, "mean_difference", signed) : html`${figure(label, one, "mean_difference_low", signed)} to ${figure(label, one, "mean_difference_high", signed)}`);
  const isPaired = answers.every(([, one]) => Number(one.unpaired_a) === 0 && Number(one.unpaired_b) === 0);
  const counts = [["n", "pairs"], ...(isPaired ? [] : [["unpaired_a", "scored in A only"], ["unpaired_b", "scored in B only"]]), ...(isHeld ? [["held_back_a", "held back in A"], ["held_back_b", "held back in B"]] : [])];
  const heads = [["answer", ""], ["difference", "num strong"], ["95 % interval", "still"], ["p (adjusted)", "num"], ...counts.map(([, word]) => [word, "num"])];
  const rows = answers.map(([label, one]) => [label, [one.answer, mean(label, one), one.ci_low === null ? "–" : html`${figure(label, one, "ci_low", signed)} to ${figure(label, one, "ci_high", signed)}`, figure(label, one, "adjusted_p_value", pValue), ...counts.map(([name]) => figure(label, one, name))]]);
  return html`<h2>By label</h2><${ByLabel} title="Differences by label" heads=${heads} rows=${rows} />`;
}

/** Who passes in one run only, by label; the gate's label comes first. */
function Counts({ passes, at }) {
  const path = (label, name) => at(`passes[${JSON.stringify(label)}].${name}`);
  const names = { b: "pass in B only", a: "pass in A only", both: "pass in both", neither: "pass in neither", open: "no answer in one run" };
  if (passes.every(([, one]) => Number(one.open) === 0)) delete names.open;
  const rows = passes.map(([label, one]) => [label, Object.keys(names).map((name) => html`<${Figure} value=${one[name]} path=${path(label, name)} />`)]);
  return html`<${ByLabel} title="Passes by label" className="list counts" heads=${Object.values(names).map((word) => [word, "num"])} rows=${rows} />`;
}

/** One comparison: the criteria it has figures of, with its own words. Those that give no difference or delta are left to `dicast compare`. */
function Comparison({ name, found, at }) {
  const criteria = Object.entries(found?.criteria ?? {}).filter(([, one]) => one !== null && typeof one === "object" && ("mean_difference" in one || "delta" in one));
  if (criteria.length === 0) return null;
  const figure = (criterion, one, key, form) => html`<${Figure} value=${one[key]} path=${at(`criteria[${JSON.stringify(criterion)}].${key}`)} form=${form} />`;
  const interval = (criterion, one) => (one.ci_low === null || one.ci_low === undefined ? "–" : html`${figure(criterion, one, "ci_low", signed)} to ${figure(criterion, one, "ci_high", signed)}`);
  const heads = [["difference", "num strong"], ["95 % interval", "still"], ["p (adjusted)", "num"], ["in words", ""]];
  const rows = criteria.map(([criterion, one]) => [criterion, [figure(criterion, one, "mean_difference" in one ? "mean_difference" : "delta", signed), interval(criterion, one), figure(criterion, one, "adjusted_p_value", pValue), one.words ?? ""]]);
  return html`<h2>${TITLES[name] ?? name.split("/").at(-1).replaceAll("_", " ")}</h2><${ByLabel} title=${name} heads=${heads} rows=${rows} />`;
}
