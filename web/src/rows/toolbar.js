// The search and the filters over the rows of a run.
import { html, useEffect, useRef, useState } from "../html.js";
import { plain } from "../figures.js";
import { OUTCOMES } from "../marks.js";

/** No filter. `least` and `most` are limits of the value of `label`. */
export const NOTHING = { words: "", regex: false, outcome: "", kind: "", basis: "", flip: "", odds: false, label: "", least: "", most: "" };

const CHIPS = ["pass", "fail", "none", "open"];

/** The fault of a search, null for a search that can be carried out. */
export function faultOf({ words, regex }) {
  if (!regex) return null;
  try {
    return new RegExp(words, "i") && null;
  } catch (error) {
    return error.message;
  }
}

/** Enter and the arrow down go from the search to the first row. */
function toRows(event) {
  const row = event.key === "Enter" || event.key === "ArrowDown" ? document.querySelector('.virtual-row[tabindex="0"]') : null;
  if (row === null) return;
  event.preventDefault();
  row.focus();
}

/**
 * `wanted` has the filters, `want(more)` changes some. `counts` are the rows that each filter would leave: `all`, the outcomes, and if there are any `fixed`, `regressed`,
 * `odds`. `kinds` are pairs of a kind and its number of rows, `bases` and `labels` are names, `flips` are pairs of a key and its words.
 */
export function Toolbar({ wanted, want, counts, kinds, bases, labels, flips, children }) {
  const search = useRef(null);
  const [typed, setTyped] = useState(wanted.words);
  useEffect(() => setTyped((before) => (before.trim() === wanted.words ? before : wanted.words)), [wanted.words]);
  useEffect(() => {
    const later = setTimeout(() => typed.trim() !== wanted.words && want({ words: typed.trim() }), 150);
    return () => clearTimeout(later);
  }, [typed]);
  useEffect(() => {
    const slash = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      event.preventDefault();
      search.current?.focus();
    };
    window.addEventListener("keydown", slash);
    return () => window.removeEventListener("keydown", slash);
  }, []);
  const one = (key, value) => ({ outcome: "", flip: "", odds: false, [key]: wanted[key] === value ? NOTHING[key] : value });
  const fault = faultOf(wanted);
  return html`<div class="toolbar">
    <div class="search"><label><span class="hidden">Search</span><input ref=${search} type="search" placeholder="Search texts and reasons" value=${typed}
      aria-keyshortcuts="/" onKeyDown=${toRows} aria-invalid=${fault ? "true" : undefined} onInput=${(event) => setTyped(event.currentTarget.value)} /></label>
      <button type="button" class="regex" aria-pressed=${wanted.regex ? "true" : "false"} title="Search by a regular expression" onClick=${() => want({ regex: !wanted.regex })}>.*<span class="hidden"> regular expression</span></button></div>
    <div class="chips" role="group" aria-label="Outcome">
      <${Chip} on=${!wanted.outcome && !wanted.flip && !wanted.odds} onClick=${() => want({ outcome: "", flip: "", odds: false })}>all <b>${plain(counts.all)}</b></${Chip}>
      ${CHIPS.filter((outcome) => counts[outcome] || wanted.outcome === outcome).map((outcome) => html`<${Chip} className=${outcome} on=${wanted.outcome === outcome} title=${OUTCOMES[outcome].title}
        onClick=${() => want(one("outcome", outcome))}><span aria-hidden="true">${OUTCOMES[outcome].sign}</span> ${OUTCOMES[outcome].word} <b>${plain(counts[outcome] ?? 0)}</b></${Chip}>`)}
      ${flips.map(([key, word]) => html`<${Chip} className=${{ lost: "fail", gained: "pass" }[key] ?? ""} on=${wanted.flip === key} onClick=${() => want(one("flip", key))}>${word} <b>${plain(counts[key] ?? 0)}</b></${Chip}>`)}
      ${counts.odds || wanted.odds ? html`<${Chip} on=${wanted.odds} onClick=${() => want(one("odds", true))}><span title="One label passes it, another does not; all metrics together count as one">labels disagree</span> <b>${plain(counts.odds)}</b></${Chip}>` : null}
    </div>
    ${kinds.length > 1 ? html`<div class="chips" role="group" aria-label="Kind">${[["", kinds.reduce((sum, [, count]) => sum + Number(count), 0)], ...kinds].map(([kind, count]) => html`<${Chip}
      on=${wanted.kind === kind} onClick=${() => want({ kind })}>${kind === "" ? "all kinds" : kind.replaceAll("_", " ")} <b>${plain(count)}</b></${Chip}>`)}</div>` : null}
    <details class="more"><summary>More filters</summary><div class="more-filters">
      ${bases.length > 1 ? html`<${Choice} label="basis" value=${wanted.basis} options=${bases} onChange=${(basis) => want({ basis })} />` : null}
      <${Choice} label="value of" value=${wanted.label} options=${["score", ...labels]} onChange=${(label) => want({ label })} />
      <label>from <input type="number" step="any" value=${wanted.least} onInput=${(event) => want({ least: event.currentTarget.value, label: wanted.label || "score" })} /></label>
      <label>to <input type="number" step="any" value=${wanted.most} onInput=${(event) => want({ most: event.currentTarget.value, label: wanted.label || "score" })} /></label>
    </div></details>
    ${children}
    ${fault ? html`<p class="warnings" role="alert">${fault}</p>` : null}
  </div>`;
}

export function Chip({ on, onClick, className = "", title, children }) {
  return html`<button type="button" class=${`chip ${className}`} title=${title} aria-pressed=${on ? "true" : "false"} onClick=${onClick}>${children}</button>`;
}

function Choice({ label, value, options, onChange }) {
  return html`<label>${label} <select value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
    <option value="">any</option>${options.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>`;
}
