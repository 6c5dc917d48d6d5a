// A JSON value as a tree: lists and objects are folded below the first levels; numbers keep their tokens.
import { html, useState } from "../html.js";
import { Num, plain, readExactly } from "../figures.js";

const FIRST = 100; // members of a list or object that are drawn at once
const OPEN = 3; // levels that are open at first
const FEW = 30; // members of an open list or object below the first level

/** The list or object that a text is, null for any other text. */
export function jsonOf(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return readExactly(text);
  } catch {
    return null;
  }
}

const isBranch = (value) => value !== null && typeof value === "object" && !(value instanceof Num);

export function JsonTree({ value, name = null, level = 0 }) {
  const key = name === null ? null : html`<span class="json-key" dir="auto">${name}</span>: `;
  if (!isBranch(value)) return html`<div class="json-line">${key}<${Leaf} value=${value} /></div>`;
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return html`<div class="json-line">${key}${isList ? "[]" : "{}"}</div>`;
  return html`<${Branch} key_=${key} isList=${isList} entries=${entries} level=${level} />`;
}

function Branch({ key_, isList, entries, level }) {
  const [shown, setShown] = useState(FIRST);
  const [isOpen, setOpen] = useState(level === 0 || (level < OPEN && entries.length <= FEW));
  return html`<details class="json-branch" open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${key_}<span class="soft">${isList ? `[${plain(entries.length)}]` : `{${plain(entries.length)}}`}</span></summary>
    ${isOpen ? html`<div class="json-inside">${entries.slice(0, shown).map(([name, each]) => html`<${JsonTree} value=${each} name=${name} level=${level + 1} key=${name} />`)}
      ${entries.length > shown ? html`<button type="button" class="chip" onClick=${() => setShown(shown + 10 * FIRST)}>Show more of ${plain(entries.length)}</button>` : null}</div>` : null}
  </details>`;
}

function Leaf({ value }) {
  if (value instanceof Num) return html`<span class="json-number">${value.token}</span>`;
  if (typeof value === "string") return html`<span class="json-text" dir="auto">${JSON.stringify(value)}</span>`;
  return html`<span class="json-word">${String(value)}</span>`;
}
