// The id of a subject in a line: if it is too long for its place, it is cut in the middle, since ids of a session differ at their ends.
import { html } from "./html.js";

const END = 10; // characters that are always shown; .id-start in id.css leaves their width
const START = 3; // characters before them that need a place of their own

export function Id({ id, className = "id" }) {
  const characters = [...id];
  if (characters.length <= END + START) return html`<span class=${className} dir="auto">${id}</span>`;
  return html`<span class=${className} dir="auto" title=${id}><span class="id-start">${characters.slice(0, -END).join("")}</span>${characters.slice(-END).join("")}</span>`;
}
