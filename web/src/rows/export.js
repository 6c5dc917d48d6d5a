// The filtered rows as a file: CSV or JSON lines, with whole texts.
import { html, useEffect, useRef, useState } from "../html.js";
import { plain } from "../figures.js";
import { OUTCOMES } from "../marks.js";

const FORMS = { csv: ["CSV", "text/csv"], jsonl: ["JSON lines", "application/x-ndjson"] };

/** A cell of CSV (RFC 4180). */
const cell = (value) => {
  const text = value === null || value === undefined ? "" : typeof value === "object" && !("token" in value) ? JSON.stringify(value) : String(value);
  return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Objects as CSV: a column for each member of any. */
export function csvOf(records) {
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  return `${[names, ...records.map((record) => names.map((name) => record[name]))].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

/** Objects as JSON lines; a number keeps its token. */
export const linesOf = (records) => records.map((record) => `{${Object.entries(record).filter(([, value]) => value !== undefined).map(([name, value]) => `${JSON.stringify(name)}: ${value?.token ?? JSON.stringify(value)}`).join(", ")}}\n`).join("");

/** The flat record of a subject: its kind and id, and for each run its outcome, values and texts. */
export function recordOf(subject, runs, labels) {
  const several = runs.length > 1;
  const record = { subject_kind: subject.kind, subject_id: subject.id };
  subject.rows.forEach((row, number) => {
    if (row === null) return;
    const put = (name, value) => { if (value !== undefined) record[several ? `${runs[number].title}: ${name}` : name] = value; };
    put("outcome", OUTCOMES[row.outcome].word);
    put("score", row.score);
    for (const label of labels) put(`value ${label}`, row.value(label));
    if (row.was !== undefined && row.was !== null) put("was", row.was);
    put("change", row.change);
    if (row.flip) put("flip", row.flip === "gained" ? "fixed" : "regressed");
    put("reason", row.reason);
    put("input", row.text("inputs"));
    put("output", row.text("outputs"));
    put("reference", row.text("references"));
    if (row.text("old") !== null) put("baseline_output", row.text("old"));
  });
  return record;
}

/** Buttons that save the rows. `list` names the list: the note about a saved file is about one list. `read(note, isWanted)` resolves to the records; it calls `note(count)` as it goes on, and stops when `isWanted()` is false. */
export function Export({ name, read, count, list }) {
  const [state, setState] = useState("");
  const turn = useRef(0);
  useEffect(() => {
    turn.current += 1;
    setState("");
  }, [list]);
  const save = async (form) => {
    const mine = (turn.current += 1);
    try {
      const records = await read((done) => setState(`${plain(done)} of ${plain(count)} …`), () => turn.current === mine);
      if (turn.current !== mine) return;
      const file = new Blob([form === "csv" ? csvOf(records) : linesOf(records)], { type: `${FORMS[form][1]};charset=utf-8` });
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: `${name}.${form}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      setState(`saved ${plain(records.length)} rows`);
    } catch (error) {
      setState(`not saved: ${error.message}`);
    }
  };
  return html`<span class="export" role="group" aria-label="Save the filtered rows">save as ${Object.entries(FORMS).map(([form, [word]]) => html`<button type="button" class="link" onClick=${() => save(form)}>${word}</button> `)}<span role="status">${state}</span>
    ${state.endsWith("…") ? html` <button type="button" class="link" onClick=${() => { turn.current += 1; setState("stopped"); }}>stop</button>` : null}</span>`;
}
