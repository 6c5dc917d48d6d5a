// Invisible characters of compared texts: a reader sees their code points.
import { html } from "../html.js";

const INVISIBLE = /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/u;

const code = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Whether a text has characters that a page does not show. */
export const hasInvisible = (text) => INVISIBLE.test(text);

/** A text with the code point of each invisible character in its place. */
export function visible(text) {
  if (!hasInvisible(text)) return text;
  return text.split(new RegExp(`(${INVISIBLE.source})`, "u")).map((part, number) => (number % 2 ? html`<span class="invisible" title="invisible character">${code(part)}</span>` : part));
}
