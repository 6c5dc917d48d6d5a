// The first page: quality, cost, the last run, and pending work.
import { html, useState } from "../html.js";
import { Figure, plain, score } from "../figures.js";
import { Interval } from "../charts.js";
import { address, useAnswer } from "./api.js";
import { Agreement } from "./agreement.js";
import { Costs } from "./costs.js";
import { Days } from "./days.js";
import { Answer, Gate, Line, nameOf, Tile, TOOL, when } from "./parts.js";
import { Progress } from "./progress.js";
import { alter, ofRun, place } from "./router.js";
import { Trend } from "./trend.js";

const PERIODS = { 1: "1 day", 7: "7 days", 30: "30 days", 365: "a year" };

/** The start of the period: at midnight, so that the address of an answer is the same all day. The API's own default is 7 days. */
const since = (days) => (Number(days) === 7 ? null : `${new Date(Date.now() - Number(days) * 86400000).toISOString().slice(0, 10)}T00:00:00Z`);

export function Overview({ live, query, mayLabel, runCommand }) {
  const judges = useAnswer(address("/judges"), live.all);
  const runs = useAnswer(address("/runs", { limit: 20, without_kind: TOOL }), live.tick);
  const kinds = [...new Set((judges.document?.data ?? []).map((one) => one.subject_kind))];
  const kind = kinds.includes(query.kind) ? query.kind : (kinds[0] ?? null);
  const days = query.days in PERIODS ? query.days : "7";
  const quality = useAnswer(kind === null ? null : address("/analytics/quality", { subject_kind: kind, from: since(days) }), live.all);
  const later = quality.document === null && quality.error === null; // over many verdicts answers take seconds: the more important first
  const nothing = runs.document && judges.document && runs.document.data.length === 0 && kind === null;
  return html`<div class="top"><h1>Today</h1>${kind === null ? null : html`<div class="picks">
      ${kinds.length > 1 ? html`<label class="pick">of <select value=${kind} onChange=${(event) => alter({ kind: event.currentTarget.value })}>${kinds.map((one) => html`<option value=${one}>${named(one)}</option>`)}</select></label>` : null}
      <label class="pick">over <select value=${days} onChange=${(event) => alter({ days: event.currentTarget.value })}>${Object.entries(PERIODS).map(([key, word]) => html`<option value=${key}>${word}</option>`)}</select></label></div>`}</div>
    ${nothing ? html`<${Nothing} command=${runCommand} />` : html`
      ${kind === null ? null : html`<${Quality} kind=${kind} days=${days} answer=${quality} banner />`}
      <div class="board">
        <div class="stack"><${Running} runs=${runs} tick=${live.tick} /><${LastRun} runs=${runs} tick=${live.tick} />
          ${kind === null ? null : html`<${Quality} kind=${kind} days=${days} answer=${quality} />`}
          <${Backlog} tick=${live.tick} /><${News} live=${live} /></div>
        ${kind === null ? null : html`<div class="stack"><${Agreement} gateLabel=${runs.document ? (runs.document.data.find((run) => run.gate !== null)?.gate_label ?? null) : undefined} later=${later} kind=${kind} judges=${judges} tick=${live.all} query=${query} mayLabel=${mayLabel} />
            <${Days} later=${later} kind=${kind} from=${since(days)} tick=${live.all} />
            <${Costs} later=${later} kind=${kind} from=${since(days)} tick=${live.all} /></div>`}
      </div>`}`;
}

const named = (kind) => `${kind.replaceAll("_", " ")}s`;

function Nothing({ command }) {
  return html`<section class="nothing"><h2>Nothing has been judged yet</h2><p>The ledger is empty. As soon as a run writes to it, its verdicts appear here.</p>
    <pre class="command">${command}</pre></section>`;
}

/** Turns are grouped by the model that wrote them; other kinds by the judge's model, since no event says who wrote them. */
const byJudge = (row) => "judge_model" in row;

/** A group under the floor, in words: its model under test, or its judge's model. */
function Under({ row, kind }) {
  const model = row.chosen_model;
  if (byJudge(row)) return model === null ? html`${named(kind)} judged without a model` : html`${named(kind)} judged by <strong dir="auto">${model}</strong>`;
  return model === null ? html`${named(kind)} of no known model` : html`${named(kind)} written by <strong dir="auto">${model}</strong>`;
}

/** Mean scores by model; as a banner only the groups that are under the floor. */
function Quality({ kind, days, answer, banner = false }) {
  const under = (answer.document?.data ?? []).map((row, number) => [row, number]).filter(([row]) => row.below_floor === true);
  if (banner) {
    return under.length === 0 ? null : html`<div class="floor" role="status">${under.map(([row, number]) => html`<p>Under the floor: <${Under} row=${row} kind=${kind} /> have a mean of
      ${" "}<${Figure} value=${row.mean_score} path=${answer.at(`data[${number}].mean_score`)} form=${score} />, and <${Figure} value=${answer.document.floor} path=${answer.at("floor")} /> is the least.${row.chosen_model === null || byJudge(row) ? "" : " Consider a stronger model."}</p>`)}</div>`;
  }
  return html`<${Tile} title=${(answer.document?.data ?? []).some(byJudge) ? "Quality by judge's model" : "Quality by model"} id="quality"><${Answer} answer=${answer}>${(document) => document.data.length === 0
    ? html`<p class="empty">No verdicts on ${named(kind)} in these ${PERIODS[days]}.</p>`
    : html`<div class="scroll" tabindex="0" role="group" aria-label="Quality by model"><table><thead><tr><th scope="col">${document.data.some(byJudge) ? "judge's model" : "model"}</th><th scope="col" class="num">mean</th><th scope="col" class="roomy"><span class="hidden">mean, drawn</span></th><th scope="col" class="num">p50</th><th scope="col" class="num">p10</th><th scope="col" class="num">verdicts</th>${people(document) ? html`<th scope="col" class="num roomy">people</th>` : null}${thumbs(document, kind) ? html`<th scope="col" class="num">thumbs down</th>` : null}</tr></thead>
      <tbody>${document.data.map((row, number) => html`<tr class=${row.below_floor ? "under" : ""}><th scope="row" dir="auto">${row.chosen_model ?? html`<span class="soft">${byJudge(row) ? "no model" : "not known"}</span>`}</th>
        <td class="num strong"><${Figure} value=${row.mean_score} path=${answer.at(`data[${number}].mean_score`)} form=${score} /></td>
        <td class="roomy"><${Interval} value=${row.mean_score === null ? null : Number(row.mean_score)} cut=${Number(document.floor)} label=${row.mean_score === null ? "no mean" : `mean ${score(row.mean_score)}, floor ${document.floor}`} /></td>
        <td class="num"><${Figure} value=${row.p50_score} path=${answer.at(`data[${number}].p50_score`)} form=${score} /></td>
        <td class="num"><${Figure} value=${row.p10_score} path=${answer.at(`data[${number}].p10_score`)} form=${score} /></td>
        <td class="num"><${Figure} value=${row.verdict_count} path=${answer.at(`data[${number}].verdict_count`)} /></td>
        ${people(document) ? html`<td class="num roomy"><${Figure} value=${row.human_count} path=${answer.at(`data[${number}].human_count`)} /></td>` : null}
        ${thumbs(document, kind) ? html`<td class="num"><${Figure} value=${row.thumbs_down_count} path=${answer.at(`data[${number}].thumbs_down_count`)} /></td>` : null}</tr>`)}</tbody></table></div>
      <p class="fine"><span class="roomy">The dashed line is the floor, <${Figure} value=${document.floor} path=${answer.at("floor")} />. </span>A mean includes every verdict, of any confidence.${document.data.some((row) => byJudge(row) && row.chosen_model === null) ? " Metrics, rules and people have no model." : ""}</p>`}</${Answer}></${Tile}>`;
}

/** Whether thumbs of users are shown: users rate turns. */
const thumbs = (document, kind) => kind === "turn" || document.data.some((row) => Number(row.thumbs_down_count ?? 0) > 0);

/** Whether some verdicts are from people. */
const people = (document) => document.data.some((row) => Number(row.human_count ?? 0) > 0);

/** The runs that a process carries out now, each with its progress. */
function Running({ runs, tick }) {
  const running = (runs.document?.data ?? []).filter((run) => run.state === "running").slice(0, 3);
  return running.map((run) => html`<${Tile} title="Running" id=${`running-${run.run_id}`} key=${run.run_id} more=${html`<a href=${ofRun(run.run_id)} dir="auto">${run.name}</a>`}><${Progress} run=${run} tick=${tick} /></${Tile}>`);
}

/** The last run that had a gate, and those of the same name before it. */
function LastRun({ runs, tick }) {
  const listed = runs.document?.data ?? [];
  const place_ = Math.max(0, listed.findIndex((one) => one.gate !== null));
  const run = listed[place_];
  const [label, setLabel] = useState(null);
  const own = run && (run.labels[label] ? label : run.labels[run.gate_label] ? run.gate_label : null);
  return html`<${Tile} title="Last run" id="last" more=${html`<a href=${place(["runs"])}>all runs</a>`}><${Answer} answer=${runs}>${() => run === undefined
    ? html`<p class="empty">No run yet.</p>`
    : html`<p class="head"><span class="verdict"><${Gate} run=${run} /></span>${own === null ? null : html` <span class="big"><${Figure} value=${run.labels[own].mean} path=${runs.at(`data[${place_}].labels[${JSON.stringify(own)}].mean`)} form=${score} /></span> <span class="soft" dir="auto">${nameOf(run, own)}</span>
        <span class="soft">pass rate <${Figure} value=${run.labels[own].pass_rate} path=${runs.at(`data[${place_}].labels[${JSON.stringify(own)}].pass_rate`)} form=${score} /></span>`}</p>
      <p><a href=${ofRun(run.run_id)} dir="auto">${run.name}</a> <span class="soft">${when(run.started_at)} UTC${run.subjects === null ? null : html`, <${Scored} run=${run} own=${own} at=${(path) => runs.at(`data[${place_}].${path}`)} />`}</span></p>
      <${Trend} name=${run.name} label=${label} onLabel=${setLabel} own=${run.run_id} tick=${tick} word="figures and trend of" />
      <${Others} runs=${listed} own=${run} tick=${tick} />`}</${Answer}></${Tile}>`;
}

/** The scored subjects of a label of a run, and the subjects that another label could not score. */
function Scored({ run, own, at }) {
  if (own === null) return html`<${Figure} value=${run.scored} path=${at("scored")} /> of <${Figure} value=${run.subjects} path=${at("subjects")} /> scored`;
  const path = (label, name) => at(`labels[${JSON.stringify(label)}].${name}`);
  const failed = Object.entries(run.labels).filter(([label, one]) => label !== "metrics" && Number(one.failed ?? 0) > 0);
  return html`<${Figure} value=${run.labels[own].scored} path=${path(own, "scored")} /> of <${Figure} value=${run.labels[own].total} path=${path(own, "total")} /> scored${failed.map(([label, one]) => html`, <a href=${ofRun(run.run_id, { label, outcome: "none" })}><${Figure} value=${one.failed} path=${path(label, "failed")} /> without a score of <span dir="auto">${label}</span></a>`)}`;
}

const FAILING = 10; // failed runs that are listed

/** The newest run of each other pipeline, and the failed runs that no newer run of their pipeline has passed. */
function Others({ runs, own, tick }) {
  const answer = useAnswer(address("/runs", { failing: "true", limit: FAILING, without_kind: TOOL }), tick);
  const newest = runs.filter((run, number) => run.name !== own.name && runs.findIndex((one) => one.name === run.name) === number).slice(0, 5);
  const shown = [own, ...newest].map((run) => run.run_id);
  const failing = (answer.document?.data ?? []).filter((run) => !shown.includes(run.run_id));
  return html`${newest.length === 0 ? null : html`<ul class="newest" aria-label="Newest run of other pipelines">${newest.map((run) => html`<${Short} run=${run} key=${run.run_id} />`)}</ul>`}
    ${failing.length === 0 ? null : html`<h3 class="since">Failed, and not passed since</h3><ul class="newest" aria-label="Failed, and not passed since">${failing.map((run) => html`<${Short} run=${run} key=${run.run_id} />`)}</ul>`}
    ${answer.document?.next_cursor ? html`<p class="small"><a href=${place(["runs"], { failing: "1" })}>all failed pipelines</a></p>` : null}`;
}

function Short({ run }) {
  return html`<li><a href=${ofRun(run.run_id)} dir="auto">${run.name}</a> <span class="soft">${when(run.started_at)}</span> <${Gate} run=${run} /></li>`;
}

function Backlog({ tick }) {
  const answer = useAnswer(address("/analytics/backlog"), tick);
  return html`<${Tile} title="Pending" id="backlog"><${Answer} answer=${answer}>${(document) => html`<div class="pairs"><div><p class="soft">judgments under way</p><p class="middle"><${Figure} value=${document.open} path=${answer.at("open")} /></p></div>
      ${Number(document.interrupted) === 0 ? null : html`<div><p class="soft">left by ended runs</p><p class="middle"><${Figure} value=${document.interrupted} path=${answer.at("interrupted")} /></p></div>`}
      <div><p class="soft">turns that wait for their lookahead</p><p class="middle">${document.waiting.more ? "at least " : ""}<${Figure} value=${document.waiting.turns} path=${answer.at("waiting.turns")} /></p></div></div>
    <p class="fine">${document.waiting.oldest === null ? (Number(document.open) === 0 ? "No judge is at work, and no watched turn waits." : "No watched turn waits.") : `A watched turn is judged once its lookahead is over; the oldest that waits ended ${when(document.waiting.oldest)} UTC.`}${document.resume_commands.length === 0 ? "" : html` When the process of a run ends early, it leaves judgments, begun or not; <code>${document.resume_commands[0]}</code> carries them out.${document.resume_commands.length === 1 ? "" : html` The pages of <a href=${place(["runs"])}>${plain(document.resume_commands.length - 1)} other ${document.resume_commands.length === 2 ? "run" : "runs"}</a> have the command of each.`}`}</p>
    ${document.data.length === 0 ? null : html`<div class="scroll" tabindex="0" role="group" aria-label="Pending by judge"><table><thead><tr><th scope="col">judge</th><th scope="col">of</th><th scope="col" class="num">at work</th><th scope="col" class="num">left</th><th scope="col">oldest</th></tr></thead><tbody>${document.data.map((row, number) => html`<tr><th scope="row" dir="auto">${row.judge}</th><td>${named(row.subject_kind)}</td><td class="num"><${Figure} value=${row.open} path=${answer.at(`data[${number}].open`)} /></td><td class="num"><${Figure} value=${row.interrupted} path=${answer.at(`data[${number}].interrupted`)} /></td><td>${when(row.oldest)}</td></tr>`)}</tbody></table></div>`}`}</${Answer}></${Tile}>`;
}

function News({ live }) {
  return html`<${Tile} title="New verdicts" id="news"><div aria-live="polite">${live.news.length === 0
    ? html`<p class="empty">${live.state === "live" ? "New verdicts appear here while a run or dicast watch writes." : live.state === "opening" ? "Connecting …" : "Not connected: new verdicts appear here after the next connection."}</p>`
    : html`<ol class="lines">${live.news.map((row) => html`<li key=${String(row.seq)}><${Line} row=${row} /></li>`)}</ol>`}</div></${Tile}>`;
}
