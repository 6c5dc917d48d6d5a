// Agreement of the people who label, pair by pair, and the way to the subjects on which they differ.
import { html, useState } from "../../html.js";
import { Figure, fixed, plain, score } from "../../figures.js";
import { address, useAnswer } from "../api.js";
import { Answer } from "../parts.js";

/** `onDecide` opens the subjects on which people differ; null for a reader who may not label. */
export function People({ tick, onDecide }) {
  const [isOpen, setOpen] = useState(false);
  const answer = useAnswer(isOpen ? address("/labels/agreement") : null, tick);
  return html`<details class="people" onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>Agreement of people</summary>
    ${isOpen ? html`<${Answer} answer=${answer}>${(document) => html`<${Agreement} document=${document} at=${answer.at} onDecide=${onDecide} />`}</${Answer}>` : null}</details>`;
}

function Agreement({ document, at, onDecide }) {
  return html`${document.pairs.length ? html`<div class="scroll" tabindex="0" role="group" aria-label="Pairs of people"><table><thead><tr><th scope="col">people</th><th scope="col" class="num">subjects</th><th scope="col" class="num">agree</th><th scope="col" class="num">95 % interval</th><th scope="col" class="num">kappa</th></tr></thead>
      <tbody>${document.pairs.map((pair, row) => html`<tr><th scope="row" dir="auto">${pair.a} and ${pair.b}</th><td class="num"><${Figure} value=${pair.n} path=${at(`pairs[${row}].n`)} form=${plain} /></td><td class="num"><${Figure} value=${pair.agree} path=${at(`pairs[${row}].agree`)} form=${score} /></td>
        <td class="num"><${Ends} ends=${pair.agree_ci} at=${(place) => at(`pairs[${row}].agree_ci[${place}]`)} form=${score} /></td><td class="num"><${Figure} value=${pair.kappa} path=${at(`pairs[${row}].kappa`)} form=${fixed(2)} /></td></tr>`)}</tbody></table></div>` : null}
    ${document.alpha === null ? document.reasons.map((reason) => html`<p class="small">${reason}</p>`) : html`<p class="small">alpha <${Figure} value=${document.alpha} path=${at("alpha")} form=${fixed(2)} />${document.alpha_ci === null ? null : html`, 95 % interval <${Ends} ends=${document.alpha_ci} at=${(place) => at(`alpha_ci[${place}]`)} form=${fixed(2)} />`} (1 is agreement, 0 is chance)</p>`}
    <p class="small">${document.differ.length ? html`${plain(document.differ.length)} subjects with different labels${onDecide ? html`: <button type="button" class="link" onClick=${onDecide}>decide between them</button>` : null}. ` : null}${Number(document.adjudicated) ? html`<${Figure} value=${document.adjudicated} path=${at("adjudicated")} form=${plain} /> decided.` : null}</p>`;
}

function Ends({ ends, at, form }) {
  return html`<${Figure} value=${ends[0]} path=${at(0)} form=${form} /> to <${Figure} value=${ends[1]} path=${at(1)} form=${form} />`;
}
