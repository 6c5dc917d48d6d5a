// The columns of the table of rows, in the report and in the dashboard.
import { html } from "../html.js";
import { at, Figure, score, signed } from "../figures.js";
import { Id } from "../id.js";
import { Mark } from "../marks.js";

const MANY = 5; // columns of values that fit next to the texts
const LONGEST = 16; // characters of a head that fit
const HEADS = { input: "input", output: "output", reason: "reason", texts: "reason or output", reference: "reference", old: "baseline's output" };
const LETTERS = 240; // characters of a text in a cell

/**
 * All columns, in order; those with `usual` are shown until a reader chooses. `runs` are `{title}`, `labels` names. A row of the table is a subject: `{id, outcome, rows}` with a row, or null, for
 * each run: `{score, value(label), was, change, flip, reason, text(name), opening, path, compared}`. `label` is the label of the changes from a baseline, null without a baseline;
 * `scoreLabel` is the label of the scores, null if it is not known. A page that compares has `isComparing`: then the usual columns are about the change alone.
 */
export function allColumns({ runs, labels, isUnscored, label = null, scoreLabel = null, isComparing = false }) {
  const several = runs.length > 1;
  const subject = { key: "subject", head: "subject", fixed: true, usual: true, width: several ? "minmax(9rem, 1.4fr)" : "minmax(6.5rem, .8fr)", cell: (one) => (one === null ? "…" : html`<${Id} id=${one.id} />`) };
  const outcome = { key: "outcome", head: several ? "worst outcome" : "outcome", fixed: true, usual: true, width: several ? "8rem" : "6rem", cell: (one) => (one === null ? "" : html`<${Mark} outcome=${one.outcome} />`) };
  const values = several ? ofRuns(runs, labels, isUnscored) : ofLabels(labels, { isUnscored: isUnscored && label === null, label: isComparing ? label : null, scoreLabel });
  const changes = label === null ? [] : [
    { key: "was", head: "was", title: `${label} in the baseline`, usual: true, sorts: false, width: "4rem", className: "num", cell: (one) => one && html`<${Figure} value=${one.rows[0].was} path=${placeOf(one.rows[0], "was")} form=${score} />` },
    { key: "change", head: "change", title: `Change of ${label}`, usual: true, width: "5rem", className: "num", cell: (one) => one && changed(one.rows[0]) }];
  return [outcome, subject, ...values, ...changes, ...textColumns(several, { hasOld: label !== null, isComparing })];
}

function textColumns(several, { hasOld, isComparing }) {
  const column = (key, usual, grow, of) => ({ key, head: HEADS[key], usual, sorts: false, width: `minmax(9rem, ${grow}fr)`, className: "preview", cell: (one) => (one === null ? "" : clamped(of(one))) });
  const text = (name) => (one) => one.first.text(name) || "";
  if (several) return [column("texts", true, 3, preview), column("input", false, 1.5, text("inputs")), column("reference", false, 1.5, text("references"))];
  return [column("input", true, 1.8, (one) => one.first.text("inputs") || one.first.opening || ""), ...(hasOld ? [column("old", isComparing, 1.6, text("old"))] : []),
    column("output", true, 2, text("outputs")), { ...column("reason", true, 2, null), className: "preview reason", cell: (one) => clamped(one?.first.reason || "") }, column("reference", false, 1.3, text("references"))];
}

/** A text on two lines; the text itself is its title. */
const clamped = (text) => html`<span class="clamped" title=${text}>${text.slice(0, LETTERS)}</span>`;

function ofRuns(runs, labels, isUnscored) {
  if (!isUnscored || !labels.length) return runs.map((run, number) => ({ key: `${number}:`, head: run.title, usual: true, width: "minmax(5rem, .6fr)", className: "num", cell: (one) => scored(one.rows[number]) }));
  return labels.slice(0, Math.max(1, Math.floor(MANY / runs.length))).flatMap((label) => runs.map((run, number) => ({ key: `${number}:${label}`, head: `${label}, ${run.title}`, usual: true,
    width: "minmax(5rem, .6fr)", className: "num", cell: (one) => valued(one.rows[number], label) })));
}

function ofLabels(labels, { isUnscored, label, scoreLabel }) {
  const isRepeated = label === null && scoreLabel === null && !isUnscored && labels.length > 1 && labels.length <= MANY; // each score is in the column of its label
  const isOfScore = label === null || label === scoreLabel || !labels.includes(label);
  const whole = isUnscored && labels.length ? [] : [{ key: "0:", head: "score", title: scoreLabel ? `score: ${scoreLabel}` : "score", usual: isOfScore && !isRepeated, width: "4.5rem", className: "num", cell: (one) => one && scored(one.rows[0]) }];
  const usual = labels.filter((name) => name !== scoreLabel).slice(0, MANY);
  const isUsual = (name) => (label === null ? (labels.length > 1 || isUnscored) && usual.includes(name) : name === label && !isOfScore);
  const each = labels.map((name) => ({ key: `0:${name}`, head: headOf(name, labels), title: name, usual: isUsual(name), width: "minmax(4rem, 7rem)", className: "num", cell: (one) => one && valued(one.rows[0], name) }));
  return [...whole, ...each];
}

/** The columns of a narrow window: the subject has its text below. */
export function narrowColumns(columns) {
  const [outcome, subject, ...rest] = columns;
  const value = rest.find((column) => column.key === "change") ?? rest.find((column) => column.className === "num");
  const under = (one) => html`<${Id} id=${one.id} /><span class="under" dir="auto">${preview(one)}</span>`;
  return [{ ...outcome, width: "5.6rem" }, { ...subject, width: "1fr", cell: (one) => (one === null ? "…" : under(one)) }, ...(value ? [{ ...value, width: "4rem" }] : [])];
}

/** The columns that are shown: those of `chosen`, a list of keys, or the usual ones. */
export const shownColumns = (columns, chosen) => columns.filter((column) => column.fixed || (chosen === null ? column.usual : chosen.includes(column.key)));

/** A choice of columns. */
export function Chooser({ columns, chosen, onChoose }) {
  const shown = shownColumns(columns, chosen).map((column) => column.key);
  const toggle = (key) => onChoose(shown.includes(key) ? shown.filter((one) => one !== key) : [...shown, key]);
  return html`<details class="more chooser"><summary>Columns</summary><div class="more-filters">${columns.filter((column) => !column.fixed).map((column) => html`<label><input type="checkbox" checked=${shown.includes(column.key)}
    onChange=${() => toggle(column.key)} /> <span dir="auto">${column.title ?? column.head}</span></label>`)}${chosen === null ? null : html`<button type="button" class="link" onClick=${() => onChoose(null)}>the usual ones</button>`}</div></details>`;
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
  return html`<${Figure} value=${row.score} path=${`${row.path}.score`} form=${score} />${row.change === undefined ? html`<${Flip} flip=${row.flip} />` : null}`;
}

/** The place of a figure of the comparison; the report's have none in a document. */
const placeOf = (row, name) => row.compared && `${row.compared}.${name}`;

function changed(row) {
  return html`<${Figure} value=${row.change} path=${placeOf(row, "change")} form=${signed} /><${Flip} flip=${row.flip} />`;
}

function Flip({ flip }) {
  return flip ? html`<span class=${`flip ${flip}`} title=${flip === "gained" ? "passes in B alone" : "passes in A alone"}>${flip === "gained" ? "▲" : "▼"}</span>` : null;
}

const preview = (one) => { const row = telling(one); return (row.reason || row.text("outputs") || row.opening || row.text("inputs") || "").slice(0, LETTERS); };
/** The most informative row: one that did not pass, and has a reason. */
const telling = (one) => one.rows.find((row) => row && row.outcome !== "pass" && row.reason) ?? one.first;
