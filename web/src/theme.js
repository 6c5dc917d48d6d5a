// The theme: the system's, until a person chooses another.
import { html, useEffect, useState } from "./html.js";

const system = window.matchMedia("(prefers-color-scheme: dark)");

export function ThemeToggle() {
  const [chosen, choose] = useState(null);
  const [isDark, setDark] = useState(system.matches);
  const is = chosen ?? (isDark ? "dark" : "light");
  const other = is === "dark" ? "light" : "dark";
  useEffect(() => {
    const follow = () => setDark(system.matches);
    system.addEventListener("change", follow);
    return () => system.removeEventListener("change", follow);
  }, []);
  useEffect(() => {
    if (chosen) document.documentElement.dataset.theme = chosen;
  }, [chosen]);
  return html`<button class="quiet" type="button" onClick=${() => choose(other)} aria-label=${`Use the ${other} theme`}>
    <span aria-hidden="true">${is === "dark" ? "☀" : "☾"}</span>
  </button>`;
}
