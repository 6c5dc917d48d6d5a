// The cost of judging, next to the cost of the judged work and the cost of judging everything with the expensive judge.
import { html } from "../html.js";
import { Figure, score } from "../figures.js";
import { address, useAnswer } from "./api.js";
import { Answer, Spent, Tile, Unsettled, Usd } from "./parts.js";

export function Costs({ later, kind, from, tick }) {
  const own = useAnswer(later ? null : address("/analytics/cost", { from }), tick);
  const all = useAnswer(later ? null : address("/analytics/cost", { include_eval: "true", group_by: "judge", from }), tick);
  const saved = useAnswer(later || kind !== "turn" ? null : address("/analytics/savings", { from }), tick); // it is of turns alone
  return html`<${Tile} title="Cost of judging" id="cost"><div class="pairs">
      <div><p class="soft">the agent's own calls</p><${Answer} answer=${own}>${(document) => html`<${Total} document=${document} at=${own.at} />`}</${Answer}></div>
      <div><p class="soft">all calls</p><${Answer} answer=${all}>${(document) => html`<${Total} document=${document} at=${all.at} />`}</${Answer}></div></div>
    <${ByPayer} answer=${all} />
    ${kind !== "turn" ? null : html`<${Answer} answer=${saved}>${(document) => document.data.length === 0 ? null : html`<div class="scroll" tabindex="0" role="group" aria-label="Cost and savings by model"><table><thead><tr><th scope="col">turns written by</th><th scope="col" class="num">own, all time</th><th scope="col" class="num">judging</th><th scope="col" class="num">saved</th><th scope="col" class="num">mean of turns</th></tr></thead>
      <tbody>${document.data.map((row, number) => html`<tr><th scope="row" dir="auto">${row.chosen_model ?? html`<span class="soft">not known</span>`}</th>
        <td class="num"><${Usd} value=${row.agent_usd_total} path=${saved.at(`data[${number}].agent_usd_total`)} none="–" /></td>
        <td class="num"><${Spent} usd=${row.judge_cost_usd_total} msat=${row.judge_cost_msat_total} at=${(unit) => saved.at(`data[${number}].judge_cost_${unit}_total`)} /></td>
        <td class="num"><${Usd} value=${row.judge_cost_usd_saved} path=${saved.at(`data[${number}].judge_cost_usd_saved`)} none="–" /></td>
        <td class="num"><${Figure} value=${row.mean_score} path=${saved.at(`data[${number}].mean_score`)} form=${score} /></td></tr>`)}</tbody></table></div>
      <p class="fine">The sums, judging, saved and mean are of the chosen time; the own calls of a model are of the whole ledger. Saved is the extra cost if the expensive judge had given every verdict; – where that judge never ran.</p>`}</${Answer}>`}</${Tile}>`;
}

/** What each judge and each task of a run spent, and the agent's own calls: the sum is that of all calls. */
function ByPayer({ answer }) {
  const rows = answer.document?.data ?? [];
  if (rows.length === 0) return null;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Spent by judge or task"><table><thead><tr><th scope="col">judge or task</th><th scope="col" class="num">spent</th><th scope="col" class="num">calls</th></tr></thead>
    <tbody>${rows.map((row, number) => html`<tr><th scope="row" dir="auto">${row.judge ?? html`<span class="soft">the agent's own calls</span>`}</th><td class="num"><${Spent} usd=${row.usd} msat=${row.msat} at=${(unit) => answer.at(`data[${number}].${unit}`)} /></td>
      <td class="num"><${Figure} value=${row.calls} path=${answer.at(`data[${number}].calls`)} /></td></tr>`)}</tbody></table></div>`;
}

/** A sum. Where calls have no known price, it is the sum of the other calls, and the text says so. */
function Total({ document, at }) {
  const { unpriced = null } = document;
  if (document.data.length === 0 && document.unsettled_usd === undefined && document.unsettled_msat === undefined) return html`<p class="middle">–</p><p class="soft">no call in the chosen time</p>`;
  return html`<p class="middle">${unpriced === null ? "" : "at least "}<${Spent} usd=${unpriced === null ? document.total_usd : document.known_usd} msat=${document.total_msat} at=${(unit) => at(unit === "usd" && unpriced !== null ? "known_usd" : `total_${unit}`)} /></p>
    ${document.unsettled_usd === undefined && document.unsettled_msat === undefined ? null : html`<p><${Unsettled} usd=${document.unsettled_usd ?? "0"} msat=${document.unsettled_msat} at=${(unit) => at(`unsettled_${unit}`)} /></p>`}
    ${unpriced === null ? null : html`<p class="soft">plus <${Figure} value=${unpriced} path=${at("unpriced")} /> ${Number(unpriced) === 1 ? "call" : "calls"} whose price is not known</p>`}`;
}
