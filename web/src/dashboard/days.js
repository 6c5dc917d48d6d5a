// Quality and spend by day, in the chosen time.
import { html } from "../html.js";
import { Figure, score } from "../figures.js";
import { address, useAnswer } from "./api.js";
import { Course } from "./course.js";
import { Answer, Tile, Usd } from "./parts.js";

export function Days({ later, kind, from, tick }) {
  const quality = useAnswer(later || kind === null ? null : address("/analytics/quality", { subject_kind: kind, group_by: "day", from }), tick);
  const cost = useAnswer(later ? null : address("/analytics/cost", { group_by: "day", include_eval: "true", from }), tick);
  return html`<${Tile} title="By day" id="days"><${Answer} answer=${quality}>${(document) => html`<${Table} quality=${document.data.filter((row) => row.day !== undefined)} at=${quality.at} cost=${cost} />`}</${Answer}></${Tile}>`;
}

function Table({ quality, at, cost }) {
  const spent = new Map((cost.document?.data ?? []).map((row, number) => [row.day, [row, number]]));
  const judged = new Map(quality.map((row, number) => [row.day, [row, number]]));
  const days = [...new Set([...judged.keys(), ...spent.keys()])].filter(Boolean).sort();
  if (days.length === 0) return html`<p class="empty">Nothing was judged or spent in this time.</p>`;
  const points = days.map((day) => judged.get(day)).filter(Boolean).map(([row, number]) => ({ value: row.mean_score, path: at(`data[${number}].mean_score`), title: `${row.day}: mean ${row.mean_score === null ? "none" : score(row.mean_score)} of ${row.verdict_count} verdicts` }));
  return html`${points.length > 1 ? html`<${Course} label="Mean score by day" points=${points} form=${score} /><div class="ends"><span>${days[0]}</span><span>${days.at(-1)}</span></div>` : null}
    <div class="scroll" tabindex="0" role="group" aria-label="By day"><table><thead><tr><th scope="col">day (UTC)</th><th scope="col" class="num">mean</th><th scope="col" class="num roomy">p10</th><th scope="col" class="num">verdicts</th><th scope="col" class="num">spent</th></tr></thead>
      <tbody>${days.slice().reverse().map((day) => html`<${Day} day=${day} judged=${judged.get(day)} spent=${spent.get(day)} at=${at} costAt=${cost.at} />`)}</tbody></table></div>
    <p class="fine">Spent is of the agent's calls and of judging.</p>`;
}

function Day({ day, judged, spent, at, costAt }) {
  const [row, number] = judged ?? [null];
  const figure = (name, form) => (row === null ? "–" : html`<${Figure} value=${row[name]} path=${at(`data[${number}].${name}`)} form=${form} />`);
  return html`<tr><th scope="row">${day}</th><td class="num strong">${figure("mean_score", score)}</td><td class="num roomy">${figure("p10_score", score)}</td><td class="num">${figure("verdict_count")}</td>
    <td class="num">${spent === undefined ? "–" : html`<${Usd} value=${spent[0].usd} path=${costAt(`data[${spent[1]}].usd`)} />`}</td></tr>`;
}
