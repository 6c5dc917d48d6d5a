// The name of the person who labels. The browser keeps it, and the server checks that it is no judge's.
import { html, useEffect, useRef, useState } from "../../html.js";

const KEY = "dicast.labeller";
export const NAMES = "[A-Za-z0-9_.\\-]{1,100}";

export const savedName = () => localStorage.getItem(KEY);
export const saveName = (name) => localStorage.setItem(KEY, name);

/** The question for the name; Enter answers it. */
export function NameForm({ name, onName }) {
  const [value, setValue] = useState(name ?? "");
  const input = useRef(null);
  useEffect(() => input.current?.focus(), []);
  const take = (event) => {
    event.preventDefault();
    saveName(value);
    onName(value);
  };
  return html`<form class="card who" onSubmit=${take}><label>Your name <input ref=${input} value=${value} pattern=${NAMES} required maxlength="100" autocomplete="off" spellcheck=${false} onInput=${(event) => setValue(event.currentTarget.value)} /></label>
    <button class="action" type="submit">Label</button><p class="small">Each label bears it, so that the labels of several people can be compared. Letters, digits, <code>.</code>, <code>_</code> and <code>-</code>.</p></form>`;
}
