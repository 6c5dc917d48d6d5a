// The theme: the system's, until a person chooses another.
import { html, useEffect, useState } from "./html.js";

const dark = () => window.matchMedia("(prefers-color-scheme: dark)").matches;

export function ThemeToggle() {
  const [chosen, choose] = useState(null);
  const is = chosen ?? (dark() ? "dark" : "light");
  const other = is === "dark" ? "light" : "dark";
  useEffect(() => {
    if (chosen) document.documentElement.dataset.theme = chosen;
  }, [chosen]);
  return html`<button class="quiet" type="button" onClick=${() => choose(other)} aria-label=${`Use the ${other} theme`}>
    <span aria-hidden="true">${is === "dark" ? "☀" : "☾"}</span>
  </button>`;
}
