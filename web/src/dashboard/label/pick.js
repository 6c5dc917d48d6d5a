// A choice on the page on which people label.
import { html } from "../../html.js";
import { alter } from "../router.js";

/** A choice that the address keeps; a new one starts at the first place. */
export function Pick({ name, param = name, value, options }) {
  return html`<label class="pick">${name} <select value=${value} onChange=${(event) => alter({ [param]: event.currentTarget.value, at: "" })}>${options.map(([key, word]) => html`<option value=${key}>${word}</option>`)}</select></label>`;
}
