// The rows: searched, filtered, sorted, and opened.
import { html, useCallback, useEffect, useMemo, useState } from "../html.js";
import { plain } from "../figures.js";
import { allColumns, Chooser, narrowColumns, shownColumns } from "../rows/columns.js";
import { Export, recordOf } from "../rows/export.js";
import { useNarrow } from "../rows/narrow.js";
import { faultOf, NOTHING, Toolbar } from "../rows/toolbar.js";
import { VirtualTable } from "../virtual_table.js";

const PRINTED = 200; // rows on paper

export function Rows({ report, rows, whole, ask, onOpen }) {
  const kinds = useMemo(() => counted(rows.subjects, (subject) => subject.kind), [rows]);
  const first = report.runs[0].main_kind ?? kinds[0]?.[0] ?? "";
  const [wanted, setWanted] = useState({ ...NOTHING, kind: kinds.length > 1 ? first : "" });
  const [sort, setSort] = useState({ key: "worst", down: false });
  const [chosen, choose] = useState(null);
  const [label, setLabel] = useState(rows.runs[0].label);
  const narrow = useNarrow();
  // A change without effect leaves the rows and their scroll position.
  const want = (more) => setWanted((before) => (Object.keys(more).every((key) => before[key] === more[key]) ? before : { ...before, ...more }));
  useEffect(() => {
    if (!ask) return;
    want({ ...NOTHING, kind: "", ...ask });
    setLabel(report.runs[0].flips?.label ?? null);
  }, [ask]);
  rows.runs[0].label = label;

  const within = useMemo(() => {
    const narrowed = { ...wanted, outcome: "", flip: "", odds: false };
    const search = searchOf(wanted);
    return rows.subjects.filter((subject) => matches(subject, narrowed, search));
  }, [rows, wanted.words, wanted.regex, wanted.kind, wanted.basis, wanted.label, wanted.least, wanted.most, label, wanted.words ? whole : true]);
  const counts = useMemo(() => countsOf(within), [within]);
  const shown = useMemo(() => sorted(within.filter((subject) => matches(subject, { ...NOTHING, outcome: wanted.outcome, flip: wanted.flip, odds: wanted.odds }, null)), sort), [within, wanted.outcome, wanted.flip, wanted.odds, sort, label]);
  const labels = useMemo(() => labelsOf(rows, within), [rows, within]);
  const several = report.runs.length > 1;
  const isUnscored = !rows.subjects.some((one) => one.rows.some((row) => row !== null && row.score !== null));
  const compared = several ? [] : rows.runs[0].compared;
  const columns = allColumns({ runs: report.runs, labels: several || labels.length !== 1 || isUnscored ? labels : [], isUnscored, label: compared.length ? label : null, scoreLabel: report.runs[0].main_label });
  const drawn = narrow ? narrowColumns(columns) : shownColumns(columns, chosen);
  const onSort = useCallback((key) => setSort((before) => ({ key, down: before.key === key ? !before.down : false })), []);
  const bases = useMemo(() => counted(rows.subjects, (subject) => subject.first.basis ?? "").map(([basis]) => basis).filter(Boolean), [rows]);
  const filtered = JSON.stringify({ ...wanted, kind: "" }) !== JSON.stringify(NOTHING);
  const flips = several ? [["any", "pass in one run, not in another"]] : compared.length ? [["lost", "regressed"], ["gained", "fixed"]] : [];
  const records = async () => shown.map((subject) => recordOf(subject, report.runs, labels));

  return html`<div class="rows">
    <${Toolbar} wanted=${wanted} want=${want} counts=${counts} kinds=${kinds} bases=${bases} labels=${labels} flips=${flips}>
      ${compared.length > 1 ? html`<label class="pick">changes of <select value=${label} onChange=${(event) => setLabel(event.currentTarget.value)}>${compared.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>` : null}
      ${narrow ? null : html`<${Chooser} columns=${columns} chosen=${chosen} onChoose=${choose} />`}
      <p class="count"><span role="status">${plain(shown.length)} of ${plain(rows.subjects.length)} shown${sort.key === "worst" ? ", the worst first" : ""}</span>
        ${filtered ? html` <button type="button" class="link" onClick=${() => setWanted({ ...NOTHING, kind: wanted.kind })}>clear</button>` : null}
        ${sort.key === "worst" ? null : html` <button type="button" class="link" onClick=${() => setSort({ key: "worst", down: false })}>worst first</button>`}
        ${whole ? html` <${Export} name=${report.title} read=${records} count=${shown.length} />` : null}</p>
    </${Toolbar}>
    ${shown.length ? html`<${VirtualTable} columns=${drawn} count=${shown.length} rowAt=${(place) => shown[place]} list=${shown} height=${narrow ? 72 : 44} sort=${sort} onSort=${onSort} label="Subjects"
      onOpen=${(subject) => onOpen(subject, shown)} template=${drawn.map((column) => column.width).join(" ")} />`
      : html`<p class="empty">No subject matches.</p>`}
    <${Printed} columns=${shownColumns(columns, chosen)} rows=${shown} />
  </div>`;
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

function counted(subjects, of) {
  const counts = new Map();
  for (const subject of subjects) counts.set(of(subject), (counts.get(of(subject)) ?? 0) + 1);
  return [...counts];
}

function countsOf(subjects) {
  const counts = { all: subjects.length, pass: 0, fail: 0, none: 0, open: 0, gained: 0, lost: 0, any: 0, odds: 0 };
  for (const subject of subjects) {
    counts[subject.outcome] += 1;
    if (subject.flipped) counts.any += 1;
    if (subject.odds) counts.odds += 1;
    const flip = subject.rows.length === 1 && subject.first.flip;
    if (flip) counts[flip] += 1;
  }
  return counts;
}

/** A predicate of a subject's texts, null without a search; an expression with a fault matches nothing. */
function searchOf({ words, regex }) {
  if (!words) return null;
  if (faultOf({ words, regex }) !== null) return () => false;
  if (regex) {
    const expression = new RegExp(words, "i");
    return (text) => expression.test(text);
  }
  const all = words.toLowerCase().split(/\s+/);
  return (text) => all.every((word) => text.includes(word));
}

function matches(subject, wanted, search) {
  if (wanted.kind && subject.kind !== wanted.kind) return false;
  if (wanted.outcome && subject.outcome !== wanted.outcome) return false;
  if (wanted.odds && !subject.odds) return false;
  const rows = subject.rows.filter((row) => row !== null);
  if (wanted.basis && !rows.some((row) => row.basis === wanted.basis)) return false;
  if (wanted.flip === "any" ? !subject.flipped : wanted.flip && !rows.some((row) => row.flip === wanted.flip)) return false;
  if (wanted.label && (wanted.least !== "" || wanted.most !== "")) {
    const inside = (value) => value !== null && (wanted.least === "" || value >= Number(wanted.least)) && (wanted.most === "" || value <= Number(wanted.most));
    if (!rows.some((row) => inside(wanted.label === "score" ? row.score : row.value(wanted.label)))) return false;
  }
  return search === null || search(subject.haystack);
}

function sorted(subjects, sort) {
  const valueOf = {
    worst: (subject) => subject.badness,
    subject: (subject) => subject.id,
    outcome: (subject) => ["none", "fail", "pass", "open"].indexOf(subject.outcome),
    change: (subject) => subject.first.change ?? null,
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
function labelsOf(rows, subjects) {
  const all = [...new Set(rows.runs.flatMap((run) => run.columns.map((column) => column.label)))];
  return all.filter((label) => subjects.some((subject) => subject.rows.some((row) => row?.value(label) !== null && row?.value(label) !== undefined)));
}
