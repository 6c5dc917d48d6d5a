// The first of many: thousands of metrics would hold up the page, so the rest comes at the press of a button.
import { html, useState } from "../html.js";
import { plain } from "../figures.js";

export const MANY = 60;

/** The first of `all`, and the button that shows the rest; no button where these are all. */
export function useFirst(all, what) {
  const [whole, setWhole] = useState(false);
  const cut = !whole && all.length > MANY;
  const more = cut ? html`<p class="small"><button type="button" class="link" onClick=${() => setWhole(true)}>Show all ${plain(all.length)} ${what}</button></p>` : null;
  return [cut ? all.slice(0, MANY) : all, more];
}
