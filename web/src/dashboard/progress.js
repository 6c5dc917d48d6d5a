// The progress of a run that has not ended: judged subjects, means and cost so far, time left.
import { html } from "../html.js";
import { Figure, plain, score } from "../figures.js";
import { Shares } from "../charts.js";
import { OUTCOMES } from "../marks.js";
import { address, useAnswer } from "./api.js";
import { Answer, Cost, when } from "./parts.js";

export const isOpen = (run) => run.state !== "completed";

/** A time left in words: seconds, minutes, or hours and minutes. */
function duration(value) {
  const seconds = Math.round(Number(value));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const ENDED = {
  dead: (command) => html`The process of this run ended before the run did. <code>${command}</code> judges the rest.`,
  stopped: (command) => html`This run was stopped. <code>${command}</code> judges the rest.`,
  waiting: (command) => html`This run waits for a batch of its endpoint. <code>${command}</code> fetches the replies.`,
};

export function Progress({ run, tick }) {
  const answer = useAnswer(address(`/runs/${encodeURIComponent(run.run_id)}/progress`), tick);
  return html`<section class="progress" aria-label="Progress"><${Answer} answer=${answer}>${(found) => html`<${Found} found=${found} at=${answer.at} />`}</${Answer}></section>`;
}

function Found({ found, at }) {
  const parts = ["pass", "fail", "none", "open"].filter((name) => Number(found.outcomes[name]) > 0);
  const known = found.expected !== null;
  const rest = known ? Math.max(0, Number(found.expected) - Number(found.judged)) : 0;
  const shares = [...parts.map((name) => ({ name: OUTCOMES[name].word, count: found.outcomes[name], kind: name })), ...(rest ? [{ name: "not judged", count: rest, kind: "rest" }] : [])];
  return html`<p class="head"><span class="big"><${Figure} value=${found.judged} path=${at("judged")} /></span> <span class="soft">${known ? html`of <${Figure} value=${found.expected} path=${at("expected")} /> subjects judged` : "subjects judged"}</span>
      ${found.seconds_left === null ? null : html` <span><${Figure} value=${found.seconds_left} path=${at("seconds_left")} form=${duration} /> left</span>`}</p>
    <${Shares} parts=${shares} label=${`Outcomes so far: ${shares.map((part) => `${part.name} ${plain(part.count)}`).join(", ")}`} />
    <p class="small">${parts.map((name) => html`<span class=${`mark ${name}`}><span aria-hidden="true">${OUTCOMES[name].sign}</span> <${Figure} value=${found.outcomes[name]} path=${at(`outcomes.${name}`)} /> ${OUTCOMES[name].word}</span> `)}</p>
    <dl class="figures">${Object.entries(found.labels).slice(0, 6).map(([label, one]) => html`<div><dt>mean of <span dir="auto">${label}</span> so far</dt><dd><${Figure} value=${one.mean} path=${at(`labels[${JSON.stringify(label)}].mean`)} form=${score} /></dd></div>`)}
      <div><dt>cost so far</dt><dd><${Cost} of=${found} at=${at} />${Number(found.unknown_costs) ? html` <span class="soft">and <${Figure} value=${found.unknown_costs} path=${at("unknown_costs")} /> calls of unknown cost</span>` : null}</dd></div>
      ${found.per_second === null ? null : html`<div><dt>subjects per second</dt><dd><${Figure} value=${found.per_second} path=${at("per_second")} form=${(value) => plain(Number(Number(value).toPrecision(2)))} /></dd></div>`}
      <div><dt>last result</dt><dd>${found.last_result_at === null ? "–" : `${when(found.last_result_at)} UTC`}</dd></div></dl>
    ${found.state in ENDED ? html`<p class="note">${ENDED[found.state](found.resume_command ?? `dicast run FILE --resume ${found.run_id}`)}</p>` : null}`;
}
