// The prompts of the tasks of two runs next to each other, with their differences marked.
import { html } from "./html.js";
import { Differences, Readable } from "./readable/readable.js";
import { visible } from "./readable/visible.js";

const ROLES = ["system", "user"];

/** `before` and `after` are `{CRITERION: {ROLE: TEXT}}`, or `{CRITERION: {digest}}` of a ledger without texts, or null. Nothing where no run has prompts. */
export function Prompts({ before, after }) {
  const [older, newer] = [before ?? {}, after ?? {}];
  const criteria = [...new Set([...Object.keys(older), ...Object.keys(newer)])];
  if (!criteria.length) return null;
  const pairs = criteria.flatMap((criterion) => pairsOf(criterion, older[criterion] ?? {}, newer[criterion] ?? {}, criteria.length > 1));
  return html`<section class="prompts" aria-label="Prompts"><h2>Prompts</h2>${pairs.map((pair) => html`<${Pair} ...${pair} key=${pair.name} />`)}
    ${pairs.some((pair) => [pair.before, pair.after].some((text) => text?.includes("${"))) ? html`<p class="note"><code>${"${NAME}"}</code> was sent as the value of the environment variable, which the ledger does not record: it may be a secret.</p>` : null}</section>`;
}

/** `{name, before, after, hasTexts}` for each role of a criterion. */
function pairsOf(criterion, older, newer, isNamed) {
  const start = isNamed ? `${criterion}, ` : "";
  if (older.digest || newer.digest) return [{ name: `${start}prompt`, before: older.digest ?? null, after: newer.digest ?? null, hasTexts: false }];
  return ROLES.filter((role) => older[role] !== undefined || newer[role] !== undefined).map((role) => ({ name: `${start}${role}`, before: older[role] ?? null, after: newer[role] ?? null, hasTexts: true }));
}

function Pair({ name, before, after, hasTexts }) {
  if (!hasTexts) return html`<p class="note"><strong dir="auto">${name}</strong>: ${before === after ? "the same in both runs" : "not the same"}. The ledger keeps only the digests of texts.</p>`;
  if (before === after) return html`<details class="material"><summary><span dir="auto">${name}</span>, the same in both runs</summary><${Readable} text=${after} name=${name} /></details>`;
  return html`<div class="side-by-side"><div class="side readable"><h3 dir="auto">${name}, baseline</h3>${before === null ? html`<p class="note">none</p>` : html`<div class="text" dir="auto" tabindex="0" role="group" aria-label=${`${name}, baseline`}>${visible(before)}</div>`}</div>
    <div class="side readable"><h3 dir="auto">${name}, this run</h3>${after === null ? html`<p class="note">none</p>` : before === null ? html`<div class="text" dir="auto" tabindex="0" role="group" aria-label=${`${name}, this run`}>${visible(after)}</div>` : html`<${Differences} before=${before} after=${after} against="baseline" />`}</div></div>`;
}
