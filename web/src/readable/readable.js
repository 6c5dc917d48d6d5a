// A judged text as a reader wants it: JSON as a tree, Markdown drawn, differences from the reference; always also as it is.
import { html, useMemo, useState } from "../html.js";
import { plain } from "../figures.js";
import { differences } from "./diff.js";
import { jsonOf, JsonTree } from "./json_tree.js";
import { isMarkdown, Markdown } from "./markdown.js";
import { visible } from "./visible.js";

const FOLD = 20000; // characters that are drawn at once

/**
 * A text with a choice of views, and a button that copies it. `json` is the value that it was written from, null for a text; `against` are pairs of a name and a
 * text to compare with, or null; `name` is for screen readers, `heading` is drawn.
 */
export function Readable({ text, name, json: value = null, against = [], heading = null }) {
  const json = useMemo(() => value ?? jsonOf(text), [text, value]);
  const others = new Map(against.filter(([, other]) => other !== null && other !== undefined && other !== "").map(([one, other]) => [`vs ${one}`, [one, other]]));
  const views = [...(json === null ? [] : ["JSON"]), ...(json === null && isMarkdown(text) ? ["Markdown"] : []), "text", ...others.keys()];
  const [chosen, choose] = useState(null);
  const view = views.includes(chosen) ? chosen : views[0];
  return html`<div class="readable">
    <div class="readable-tools">${heading === null ? null : html`<h3>${heading}</h3>`}${views.length > 1 ? html`<div class="chips" role="group" aria-label=${`View of ${name.toLowerCase()}`}>${views.map((one) => html`<button type="button" class="chip small" aria-pressed=${one === view ? "true" : "false"} onClick=${() => choose(one)}>${one}</button>`)}</div>` : null}<${Copy} text=${text} name=${name} /></div>
    <${View} view=${view} text=${text} name=${name} json=${json} other=${others.get(view)} /></div>`;
}

function View({ view, text, name, json, other }) {
  if (view === "JSON") return html`<div class="text json" tabindex="0" role="group" aria-label=${`${name}, JSON`}><${JsonTree} value=${json} /></div>`;
  if (other) return html`<${Differences} before=${other[1]} after=${text} against=${other[0]} />`;
  return html`<${Folded} text=${text} name=${name}>${(part) => (view === "Markdown" ? html`<${Markdown} text=${part} />` : part)}</${Folded}>`;
}

const SCROLLED = 400; // characters, or as many in lines, that a low window may have to scroll

/** What a keyboard needs to scroll a text, and the name that it is announced with. */
const scrolls = (text, name) => (text.length > SCROLLED || text.split("\n", 9).length > 8 ? { tabindex: "0", role: "group", "aria-label": name } : {});

/** A text as it is, in a box that a keyboard can scroll. */
export function Text({ text, name }) {
  return html`<div class="text" dir="auto" ...${scrolls(text, name)}>${visible(text)}</div>`;
}

/** The first characters of a long text, and a button for the rest. */
function Folded({ text, name, children }) {
  const [whole, setWhole] = useState(false);
  const isCut = !whole && text.length > FOLD;
  return html`<div class="text" dir="auto" ...${scrolls(text, name)}>${children(isCut ? text.slice(0, FOLD) : text)}</div>
    ${isCut ? html`<p class="small"><button type="button" class="link" onClick=${() => setWhole(true)}>Show the other ${plain(text.length - FOLD)} characters</button></p>` : null}`;
}

/** A text with its differences from an older one: what is new is marked, what is gone is struck out. */
export function Differences({ before, after, against }) {
  const steps = useMemo(() => differences(before.slice(0, FOLD), after.slice(0, FOLD)), [before, after]);
  const cut = before.length > FOLD || after.length > FOLD;
  const box = scrolls(`${before}${after}`, `Differences from the ${against}`);
  if (before === after) return html`<div class="text" dir="auto" ...${box}>${visible(after)}</div><p class="small">No difference from the ${against}.</p>`;
  return html`<div class="text" dir="auto" ...${box}>${steps.map(({ kind, text }) => (kind === "same" ? visible(text) : kind === "added" ? html`<ins>${visible(text)}</ins>` : html`<del>${visible(text)}</del>`))}</div>
    <p class="small"><ins>new</ins> and <del>missing</del> next to the ${against}${cut ? `; the first ${plain(FOLD)} characters` : ""}</p>`;
}

function Copy({ text, name }) {
  const [done, setDone] = useState("");
  const copy = async (event) => {
    const button = event.currentTarget;
    setDone((await copied(text, button)) ? "copied" : "not copied: select the text");
    setTimeout(() => setDone(""), 2000);
  };
  return html`<button type="button" class="chip small copy" aria-label=${`Copy ${name.toLowerCase()}`} onClick=${copy}>${done || "copy"}</button>`;
}

/** Whether a text was put on the clipboard; a page of a file may have no clipboard, and copies a selection instead. */
async function copied(text, near) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    near.after(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    near.focus();
    return done;
  }
}
