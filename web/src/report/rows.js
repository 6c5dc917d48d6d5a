// The rows: searched, filtered, sorted, and opened.
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../html.js";
import { at, Figure, plain, score } from "../figures.js";
import { Id } from "../id.js";
import { Mark, OUTCOMES } from "../marks.js";
import { VirtualTable } from "../virtual_table.js";

const NOTHING = { words: "", outcome: "", kind: "", basis: "", flip: "", label: "", least: "", most: "" };
const PRINTED = 200; // rows on paper

export function Rows({ report, rows, whole, ask, onOpen }) {
  const kinds = useMemo(() => counted(rows.subjects, (subject) => subject.kind), [rows]);
  const first = report.runs[0].main_kind ?? kinds[0]?.[0] ?? "";
  const [wanted, setWanted] = useState({ ...NOTHING, kind: kinds.length > 1 ? first : "" });
  const [typed, setTyped] = useState("");
  const [sort, setSort] = useState({ key: "worst", down: false });
  const search = useRef(null);
  const narrow = useNarrow();
  // A change without effect leaves the rows and their scroll position.
  const want = (more) => setWanted((before) => (Object.keys(more).every((key) => before[key] === more[key]) ? before : { ...before, ...more }));

  useEffect(() => {
    const later = setTimeout(() => want({ words: typed.trim().toLowerCase() }), 120);
    return () => clearTimeout(later);
  }, [typed]);
  useEffect(() => {
    if (ask) want({ ...NOTHING, kind: "", ...ask });
  }, [ask]);
  useEffect(() => {
    const slash = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      event.preventDefault();
      search.current?.focus();
    };
    window.addEventListener("keydown", slash);
    return () => window.removeEventListener("keydown", slash);
  }, []);

  const within = useMemo(() => rows.subjects.filter((subject) => matches(subject, { ...wanted, outcome: "" })), [rows, wanted, wanted.words ? whole : true]);
  const outcomes = useMemo(() => new Map(counted(within, (subject) => subject.outcome)), [within]);
  const shown = useMemo(() => {
    const found = wanted.outcome ? within.filter((subject) => subject.outcome === wanted.outcome) : within;
    return sorted(found, sort);
  }, [within, wanted.outcome, sort]);
  const labels = useMemo(() => labelsOf(report, rows, within), [report, rows, within]);
  const columns = columnsOf(report, labels, rows.subjects, narrow);
  const onSort = useCallback((key) => setSort((before) => ({ key, down: before.key === key ? !before.down : false })), []);
  const bases = useMemo(() => counted(rows.subjects, (subject) => subject.first.basis ?? "").filter(([basis]) => basis), [rows]);
  const hasFlips = report.runs.length > 1 || report.runs.some((run) => run.flips);
  const filtered = JSON.stringify({ ...wanted, kind: "" }) !== JSON.stringify(NOTHING);

  return html`<div class="rows">
    <div class="toolbar">
      <label class="search"><span class="hidden">Search</span><input ref=${search} type="search" placeholder="Search texts and reasons" value=${typed}
        aria-keyshortcuts="/" onInput=${(event) => setTyped(event.currentTarget.value)} /><kbd aria-hidden="true">/</kbd></label>
      <div class="chips" role="group" aria-label="Outcome">
        <${Chip} on=${wanted.outcome === ""} onClick=${() => want({ outcome: "" })}>all <b>${plain(within.length)}</b></${Chip}>
        ${["pass", "fail", "none", "open"].filter((outcome) => outcomes.get(outcome) || wanted.outcome === outcome).map((outcome) => html`<${Chip} className=${outcome}
          on=${wanted.outcome === outcome} onClick=${() => want({ outcome: wanted.outcome === outcome ? "" : outcome })}><span aria-hidden="true">${OUTCOMES[outcome].sign}</span>${" "}
          ${OUTCOMES[outcome].word} <b>${plain(outcomes.get(outcome) ?? 0)}</b></${Chip}>`)}
      </div>
      ${kinds.length > 1 ? html`<div class="chips" role="group" aria-label="Kind">${[["", rows.subjects.length], ...kinds].map(([kind, count]) => html`<${Chip}
        on=${wanted.kind === kind} onClick=${() => want({ kind })}>${kind === "" ? "all kinds" : kind.replaceAll("_", " ")} <b>${plain(count)}</b></${Chip}>`)}</div>` : null}
      <details class="more"><summary>More filters</summary><div class="more-filters">
        ${bases.length > 1 ? html`<${Choice} label="basis" value=${wanted.basis} options=${bases} onChange=${(basis) => want({ basis })} />` : null}
        ${hasFlips ? html`<${Choice} label="flips" value=${wanted.flip} onChange=${(flip) => want({ flip })} options=${report.runs.length > 1
          ? [["any", "passes in one run, not in another"]] : [["any", "either way"], ["gained", "pass in B alone"], ["lost", "pass in A alone"]]} />` : null}
        <${Choice} label="value of" value=${wanted.label} options=${[["score", ""], ...labels.map((label) => [label, ""])]} onChange=${(label) => want({ label })} />
        <label>from <input type="number" step="any" value=${wanted.least} onInput=${(event) => want({ least: event.currentTarget.value, label: wanted.label || "score" })} /></label>
        <label>to <input type="number" step="any" value=${wanted.most} onInput=${(event) => want({ most: event.currentTarget.value, label: wanted.label || "score" })} /></label>
      </div></details>
      <p class="count" role="status">${plain(shown.length)} of ${plain(rows.subjects.length)} shown${sort.key === "worst" ? ", the worst first" : ""}
        ${filtered || typed ? html` <button type="button" class="link" onClick=${() => { setTyped(""); setWanted({ ...NOTHING, kind: wanted.kind }); }}>clear</button>` : null}
        ${sort.key === "worst" ? null : html` <button type="button" class="link" onClick=${() => setSort({ key: "worst", down: false })}>worst first</button>`}</p>
    </div>
    ${shown.length ? html`<${VirtualTable} columns=${columns} rows=${shown} height=${narrow ? 72 : 44} sort=${sort} onSort=${onSort} label="Subjects"
      keyOf=${(subject) => subject.key} onOpen=${(subject) => onOpen(subject, shown)} template=${columns.map((column) => column.width).join(" ")} />`
      : html`<p class="empty">No subject matches.</p>`}
    <${Printed} columns=${columnsOf(report, labels, rows.subjects, false)} rows=${shown} />
  </div>`;
}

function Chip({ on, onClick, className = "", children }) {
  return html`<button type="button" class=${`chip ${className}`} aria-pressed=${on ? "true" : "false"} onClick=${onClick}>${children}</button>`;
}

function Choice({ label, value, options, onChange }) {
  return html`<label>${label} <select value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
    <option value="">any</option>${options.map(([key, more]) => html`<option value=${key}>${typeof more === "number" ? `${key} (${plain(more)})` : more || key}</option>`)}
  </select></label>`;
}

/** The same rows for paper: the browser prints the elements in the page, and the table has only the rows in sight. */
function Printed({ columns, rows }) {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const begin = () => setPrinting(true);
    const end = () => setPrinting(false);
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    return () => {
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
    };
  }, []);
  if (!printing) return null;
  return html`<div class="printed"><table><thead><tr>${columns.map((column) => html`<th scope="col">${column.title ?? column.head}</th>`)}</tr></thead>
    <tbody>${rows.slice(0, PRINTED).map((row) => html`<tr>${columns.map((column) => html`<td>${column.cell(row)}</td>`)}</tr>`)}</tbody></table>
    ${rows.length > PRINTED ? html`<p>the first ${PRINTED} of ${plain(rows.length)}</p>` : null}</div>`;
}

function useNarrow() {
  const query = useMemo(() => window.matchMedia("(max-width: 640px)"), []);
  const [narrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const changed = (event) => setNarrow(event.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, [query]);
  return narrow;
}

function counted(subjects, of) {
  const counts = new Map();
  for (const subject of subjects) counts.set(of(subject), (counts.get(of(subject)) ?? 0) + 1);
  return [...counts];
}

function matches(subject, wanted) {
  if (wanted.kind && subject.kind !== wanted.kind) return false;
  if (wanted.outcome && subject.outcome !== wanted.outcome) return false;
  const rows = subject.rows.filter((row) => row !== null);
  if (wanted.basis && !rows.some((row) => row.basis === wanted.basis)) return false;
  if (wanted.flip === "any" ? !subject.flipped : wanted.flip && !rows.some((row) => row.flip === wanted.flip)) return false;
  if (wanted.label && (wanted.least !== "" || wanted.most !== "")) {
    const inside = (value) => value !== null && (wanted.least === "" || value >= Number(wanted.least)) && (wanted.most === "" || value <= Number(wanted.most));
    if (!rows.some((row) => inside(wanted.label === "score" ? row.score : row.value(wanted.label)))) return false;
  }
  return !wanted.words || wanted.words.split(/\s+/).every((word) => subject.haystack.includes(word));
}

function sorted(subjects, sort) {
  const valueOf = {
    worst: (subject) => subject.badness,
    subject: (subject) => subject.id,
    outcome: (subject) => ["none", "fail", "pass", "open"].indexOf(subject.outcome),
  }[sort.key] ?? ((subject) => {
    const [number, label] = sort.key.split(/:(.*)/s);
    const row = subject.rows[Number(number)];
    const value = label === "" ? row?.score : row?.value(label);
    return value === null || value === undefined ? null : value.value;
  });
  const keyed = subjects.map((subject, place) => [valueOf(subject), place, subject]);
  const sign = sort.down ? -1 : 1;
  const texts = new Intl.Collator("en", { numeric: true });
  keyed.sort(([a, i], [b, j]) => {
    if (a === null || b === null) return a === b ? i - j : a === null ? 1 : -1; // missing values come last, in both orders
    return (typeof a === "string" ? sign * texts.compare(a, b) : sign * (a - b)) || i - j;
  });
  return keyed.map(([, , subject]) => subject);
}

/** The labels that any of the subjects has a value of. */
function labelsOf(report, rows, subjects) {
  const all = [...new Set(rows.runs.flatMap((run) => run.columns.map((column) => column.label)))];
  return all.filter((label) => subjects.some((subject) => subject.rows.some((row) => row?.value(label) !== null && row?.value(label) !== undefined)));
}

const MANY = 5; // columns of values that fit next to the texts
const LONGEST = 16; // characters of a head that fit

function columnsOf(report, labels, subjects, narrow) {
  const several = report.runs.length > 1;
  const subject = { key: "subject", head: "subject", width: several ? "minmax(9rem, 1.4fr)" : "minmax(7rem, 1fr)", cell: (one) => html`<${Id} id=${one.id} />` };
  const outcome = { key: "outcome", head: several ? "worst outcome" : "outcome", width: several ? "8rem" : "6.5rem", cell: (one) => html`<${Mark} outcome=${one.outcome} />` };
  const unscored = !subjects.some((one) => one.rows.some((row) => row !== null && row.score !== null));
  const values = several && unscored && labels.length
    ? labels.slice(0, Math.max(1, Math.floor(MANY / report.runs.length))).flatMap((label) => report.runs.map((run, number) => ({ key: `${number}:${label}`, head: `${label}, ${run.title}`,
      width: "minmax(5rem, .6fr)", className: "num", cell: (one) => valued(one.rows[number], label) })))
    : several ? report.runs.map((run, number) => ({ key: `${number}:`, head: run.title, width: "minmax(5rem, .6fr)", className: "num", cell: (one) => scored(one.rows[number]) }))
    : unscored && labels.length && report.runs[0].flips === null ? []
    : [{ key: "0:", head: "score", width: "4.5rem", className: "num", cell: (one) => scored(one.rows[0]) }];
  const texts = { key: "texts", head: "reason or output", sorts: false, width: "minmax(10rem, 3fr)", className: "preview", cell: (one) => preview(telling(one)) };
  if (narrow) {
    return [{ ...outcome, width: "5.6rem" }, { ...subject, width: "1fr", cell: (one) => html`<${Id} id=${one.id} /><span class="under" dir="auto">${preview(telling(one))}</span>` },
      { ...(values[0] ?? { key: `0:${labels[0]}`, head: labels[0], className: "num", cell: (one) => valued(one.rows[0], labels[0]) }), width: "4rem" }];
  }
  const more = several || labels.length === 1 ? [] : labels.slice(0, MANY).map((label) => ({ key: `0:${label}`, head: headOf(label, labels), title: label, width: "minmax(4rem, 9rem)", className: "num",
    cell: (one) => valued(one.rows[0], label) }));
  return [outcome, subject, ...values, ...more, texts];
}

/** The name of a recorded score without its common prefix, unless another label has that name too; long names are cut in the middle. */
function headOf(label, labels) {
  const bare = label.replace(/^recorded\//, "");
  const name = labels.some((other) => other !== label && other === bare) ? label : bare;
  if (name.length <= LONGEST) return name;
  const cut = (text) => `${text.slice(0, LONGEST / 2)}…${text.slice(1 - LONGEST / 2)}`;
  return labels.some((other) => other !== label && cut(other.replace(/^recorded\//, "")) === cut(name)) ? name : cut(name);
}

function valued(row, label) {
  return html`<${Figure} value=${row?.value(label)} path=${`${row?.path}.${at("values", label)}`} form=${score} />`;
}

function scored(row) {
  if (row === null) return html`<span class="none" title="not among the rows of this run">–</span>`;
  return html`<${Figure} value=${row.score} path=${`${row.path}.score`} form=${score} />${row.flip ? html`<span class=${`flip ${row.flip}`} title=${row.flip === "gained" ? "passes in B alone" : "passes in A alone"}>${row.flip === "gained" ? "▲" : "▼"}</span>` : null}`;
}

const preview = (row) => (row.reason || row.text("outputs") || row.opening || row.text("inputs") || "").slice(0, 240);
/** The most informative row: one that did not pass, and has a reason. */
const telling = (one) => one.rows.find((row) => row && row.outcome !== "pass" && row.reason) ?? one.first;
