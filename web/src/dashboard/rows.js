// The subjects of a run as the report's table: filtered, sorted and paged by the server; the address has the filters.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { Num, plain } from "../figures.js";
import { allColumns, Chooser, narrowColumns, shownColumns } from "../rows/columns.js";
import { Export, recordOf } from "../rows/export.js";
import { useNarrow } from "../rows/narrow.js";
import { faultOf, NOTHING, Toolbar } from "../rows/toolbar.js";
import { VirtualTable } from "../virtual_table.js";
import { ask } from "./api.js";
import { listAddress, listOf, originOf } from "./list.js";
import { Problem } from "./parts.js";
import { alter, ofSubject } from "./router.js";

const PAGE = 100; // rows of a request
const WHOLE = 500; // rows of a request with whole texts
const FLIPS = { fixed: "gained", regressed: "lost" };

/** A subject of an answer, in the form that the columns read. */
class Listed {
  constructor(document, path) {
    this.kind = document.subject_kind;
    this.id = document.subject_id;
    this.outcome = document.outcome;
    this.rows = [new ListedRow(document, path)];
    this.first = this.rows[0];
  }
}

class ListedRow {
  constructor(document, path) {
    Object.assign(this, { outcome: document.outcome, score: document.score, was: document.was, change: document.change, reason: document.reason, path, compared: path });
    this.flip = FLIPS[document.flip] ?? "";
    this.texts = { inputs: document.input, outputs: document.output, references: document.reference, old: document.baseline_output ?? null };
    this.values = document.values;
  }

  value(label) {
    return this.values[label] ?? null;
  }

  text(name) {
    return this.texts[name] ?? null;
  }
}

/**
 * The list of `query` in a run: `{document, count, rowAt(place), see(first, last), error}`. Pages are read as they come into sight, and again when `tick` moves. Rows that were read
 * stay until newer rows are there.
 */
function useList(run, query, tick) {
  const base = listAddress(run, "subjects", query, { limit: PAGE });
  const [state, setState] = useState({ base: null, document: null, error: null, pages: new Map() });
  const reading = useRef(new Set());
  const sight = useRef([0, PAGE]);
  const read = async (number, isWanted) => {
    const url = listAddress(run, "subjects", query, { limit: PAGE, cursor: number * PAGE || null });
    try {
      const document = await ask(url);
      if (!isWanted()) return;
      const rows = document.data.map((one, place) => new Listed(one, `${url}#data[${place}]`));
      const mine = turn.current;
      setState((before) => ({ base, document, error: null, pages: new Map(before.base === base ? before.pages : []).set(number, { rows, turn: mine }) }));
    } catch (error) {
      if (isWanted()) setState((before) => ({ ...before, base, error, pages: before.base === base ? before.pages : new Map() }));
    }
  };
  const turn = useRef(0);
  const see = (first, last) => {
    sight.current = [first, last];
    if (state.base !== base || state.error !== null) return; // a refused list is not asked for again by itself
    const mine = turn.current;
    for (let number = Math.floor(first / PAGE); number * PAGE < Math.min(last, Number(state.document?.matched ?? 0)); number++) {
      if (state.pages.get(number)?.turn === mine || reading.current.has(number)) continue;
      reading.current.add(number);
      read(number, () => turn.current === mine).finally(() => reading.current.delete(number));
    }
  };
  useEffect(() => {
    turn.current += 1;
    reading.current = new Set();
    const mine = turn.current;
    if (state.base === base && state.error === null && state.document?.matched > 0) see(...sight.current);
    else read(0, () => turn.current === mine);
  }, [base, tick]);
  useEffect(() => see(...sight.current), [state]);
  const rowAt = (place) => state.pages.get(Math.floor(place / PAGE))?.rows[place % PAGE] ?? null;
  return { ...state, count: Number(state.document?.matched ?? 0), rowAt, see, isFresh: state.base === base };
}

/** The filters that an address has, and what changes them. */
const wantedOf = (query) => ({ ...NOTHING, words: query.q ?? "", regex: query.regex === "1", outcome: query.outcome ?? "", kind: query.only ?? "", basis: query.basis ?? "", flip: FLIPS[query.change] ?? "", odds: query.odds === "1",
  label: query.least || query.most ? query.label ?? "" : "", least: query.least ?? "", most: query.most ?? "" });

const KEYS = { words: ["q", String], regex: ["regex", (on) => (on ? "1" : "")], outcome: ["outcome", String], kind: ["only", String], basis: ["basis", String], odds: ["odds", (on) => (on ? "1" : "")],
  flip: ["change", (flip) => ({ gained: "fixed", lost: "regressed" }[flip] ?? "")], label: ["label", (label) => (label === "score" ? "" : label)], least: ["least", String], most: ["most", String] };

const want = (more) => alter(Object.fromEntries(Object.entries(more).map(([name, value]) => [KEYS[name][0], KEYS[name][1](value)])));

const sortOf = (query) => ({ key: query.sort === "score" ? "0:" : query.sort === "value" ? `0:${query.by}` : query.sort ?? "worst", down: query.down === "1" });

const left = new Map(); // `{top, row}`: where each list was left and which row was opened, by its address

/** `isComparing` is for a page about the change from the baseline of `query`. */
export function Rows({ run, query, tick, name, isComparing = false }) {
  const fault = faultOf(wantedOf(query));
  const found = useList(run, fault === null ? query : { ...query, q: "" }, tick); // the list of the other filters remains
  const narrow = useNarrow();
  const wanted = wantedOf(query);
  const sort = sortOf(query);
  const { document } = found;
  const labels = useMemo(() => (document?.labels ?? []).map((one) => one.label), [document]);
  const place = location.hash;
  const onSort = (key) => {
    const [, label] = key.split(/:(.*)/s);
    alter({ sort: label === undefined ? key : label === "" ? "score" : "value", by: label ?? "", down: sort.key === key && !sort.down ? "1" : "" });
  };
  if (found.error && document === null) return html`<${Problem} error=${found.error} /><p><button type="button" class="chip" onClick=${() => alter(Object.fromEntries(Object.keys(listOf(query)).map((key) => [key, ""])))}>Show the whole list</button></p>`;
  if (document === null) return html`<p class="empty" role="status">Reading the rows …</p>`;
  const counts = { ...Object.fromEntries(Object.entries(document.counts).map(([key, value]) => [key, Number(value)])), lost: Number(document.counts.regressed), gained: Number(document.counts.fixed) };
  const isCompared = document.baseline !== null;
  const columns = allColumns({ runs: [{ title: name }], labels, isUnscored: false, label: isCompared ? document.label : null, scoreLabel: document.score_label, isComparing });
  const chosen = query.columns === undefined ? null : query.columns.split(",").map(decodeURIComponent);
  const drawn = narrow ? narrowColumns(columns) : shownColumns(columns, chosen);
  const isRefused = fault !== null || found.error !== null;
  const isFiltered = JSON.stringify({ ...wanted, label: "" }) !== JSON.stringify(NOTHING);
  const open = (subject, row) => {
    left.set(place, { ...left.get(place), row });
    location.hash = ofSubject(subject.kind, subject.id, { ...(isComparing ? originOf({ ...query, from: "compare" }) : listOf(query)), run: String(document.run_id) });
  };
  return html`<div class=${found.isFresh ? "rows" : "rows earlier"} aria-busy=${found.isFresh ? undefined : "true"}>
    <${Toolbar} wanted=${wanted} want=${want} counts=${counts} kinds=${Object.entries(document.kinds)} bases=${Object.keys(document.bases)} labels=${labels} flips=${isCompared ? [["lost", "regressed"], ["gained", "fixed"]] : []}>
      ${labels.length > 1 ? html`<label class="pick">label <select value=${isCompared ? document.label : query.label ?? ""} onChange=${(event) => alter({ label: event.currentTarget.value })}>${isCompared ? null : html`<option value="">all labels</option>`}${labels.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>` : null}
      ${narrow ? null : html`<${Chooser} columns=${columns} chosen=${chosen} onChoose=${(keys) => alter({ columns: keys === null ? "" : keys.map(encodeURIComponent).join(",") })} />`}
      <p class="count"><span role="status">${found.error ? "The list was not read." : html`${fault === null ? "" : "The search was not carried out: "}${plain(found.count)} of ${plain(document.total)} shown${sort.key === "worst" ? ", the worst first" : ""}${found.isFresh ? "" : " …"}`}</span>
        ${isFiltered ? html` <button type="button" class="link" onClick=${() => want({ ...NOTHING, label: query.label ?? "" })}>clear</button>` : null}
        ${sort.key === "worst" ? null : html` <button type="button" class="link" onClick=${() => alter({ sort: "", by: "", down: "" })}>worst first</button>`}
        ${" "}${isRefused ? null : html`<${Export} name=${name} list=${found.base} count=${found.count} read=${(note, isWanted) => readAll(run, query, labels, name, note, isWanted)} />`}</p>
    </${Toolbar}>
    ${found.error ? html`<${Problem} error=${found.error} />` : found.count ? html`<${VirtualTable} columns=${drawn} count=${found.count} rowAt=${found.rowAt} list=${found.base} height=${narrow ? 72 : 44} sort=${sort} onSort=${onSort} label="Subjects" onRange=${found.see}
      start=${left.get(place)} onTop=${(top) => left.set(place, { top })} onOpen=${open} template=${drawn.map((column) => column.width).join(" ")} />` : html`<p class="empty">${Number(document.total) ? "No subject matches." : "This run has judged no subject yet."}</p>`}
  </div>`;
}

/** The records of the whole list, with whole texts. */
async function readAll(run, query, labels, name, note, isWanted) {
  const records = [];
  let cursor = null;
  do {
    const document = await ask(listAddress(run, "subjects", query, { limit: WHOLE, texts: "whole", cursor }));
    records.push(...document.data.map((one) => recordOf(new Listed(one, ""), [{ title: name }], labels)));
    note(records.length);
    cursor = document.next_cursor === null ? null : String(document.next_cursor);
  } while (cursor !== null && isWanted());
  return records;
}
