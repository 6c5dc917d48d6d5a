// The data in the page: the whole report, exact, at once; its rows, unpacked a moment later.
import { readColumn, readExactly } from "../figures.js";
import { loaded, unpack } from "../packed.js";

export const readReport = () => readExactly(document.getElementById("dicast-report").textContent);

/** The rows of all runs, joined by subject, for the table. `readTexts` adds the texts for search and for the panel. */
export async function readRows(report) {
  await loaded();
  const packed = await unpack("dicast-table");
  const runs = packed.map((run, number) => new RunRows(run, report.runs[number]));
  const subjects = new Map();
  runs.forEach((run, number) => {
    for (let place = 0; place < run.count; place++) {
      const key = `${run.kinds[place]}/${run.ids[place]}`;
      let subject = subjects.get(key);
      if (subject === undefined) {
        subject = new Subject(key, run.kinds[place], run.ids[place], runs.length);
        subjects.set(key, subject);
      }
      subject.rows[number] = new Row(run, place);
    }
  });
  return { runs, subjects: [...subjects.values()] };
}

/** Adds the content and the verdicts to the rows. */
export async function readTexts(rows) {
  for (const block of ["dicast-texts", "dicast-said"]) {
    (await unpack(block)).forEach((columns, number) => Object.assign(rows.runs[number], columns));
  }
  for (const subject of rows.subjects) subject.words = null;
}

/** The rows of one run, column by column. */
class RunRows {
  constructor(packed, run) {
    Object.assign(this, packed);
    this.run = run;
    this.count = packed.ids.length;
    this.scores = readColumn(packed.scores, this.count);
    this.was = packed.was === null ? null : new Map(Object.entries(packed.was).map(([label, column]) => [label, readColumn(column, this.count)]));
    this.label = run.flips?.label ?? null;
    this.values = new Map(packed.columns.map((column) => [column.label, readColumn(column.values, this.count)]));
  }

  /** The key of a session, or of its first row; null if the page has no row of it. */
  keyOf(session) {
    const places = [...this.ids.keys()].filter((place) => this.sessions[place] === session);
    const place = places.find((each) => this.kinds[each] === "session") ?? places[0];
    return place === undefined ? null : `${this.kinds[place]}/${this.ids[place]}`;
  }

  /** The labels of both runs, whose changes can be shown. */
  get compared() {
    return this.flips === null ? [] : Object.keys(this.flips);
  }

  /** The row of a turn, where the page has it. */
  byTurn(id) {
    this.turnPlaces ??= new Map(this.ids.map((each, place) => [this.kinds[place] === "turn" ? each : null, place]));
    const place = this.turnPlaces.get(id);
    return place === undefined ? null : new Row(this, place);
  }
}

/** One subject in one run. */
export class Row {
  constructor(run, place) {
    this.run = run;
    this.place = place;
  }

  get score() {
    return this.run.scores[this.place];
  }

  get outcome() {
    return this.run.outcomes[this.place];
  }

  get basis() {
    return this.run.bases[this.place];
  }

  get session() {
    return this.run.sessions[this.place];
  }

  get reason() {
    return this.run.reasons[this.place];
  }

  /** The value of the run's chosen label in the baseline; undefined without a baseline. */
  get was() {
    if (this.run.was === null) return undefined;
    return (this.run.was.get(this.run.label) ?? (this.isOfScore ? this.run.was.get("") : null))?.[this.place] ?? null;
  }

  /** The value of the chosen label less the baseline's; undefined without a baseline. */
  get change() {
    const [was, value] = [this.was, this.value(this.run.label) ?? (this.isOfScore ? this.score : null)];
    if (was === undefined) return undefined;
    return was === null || value === null ? null : Number((Number(value) - Number(was)).toFixed(12));
  }

  /** Whether the chosen label is the score's. */
  get isOfScore() {
    return this.run.label === this.run.run.main_label;
  }

  /** The subject's change from the baseline to this run under the chosen label: "gained", "lost" or "". */
  get flip() {
    return this.run.flips?.[this.run.label]?.[this.place] ?? "";
  }

  get path() {
    return `${this.run.run.prefix}rows[${this.run.ids[this.place]}]`;
  }

  value(label) {
    return this.run.values.get(label)?.[this.place] ?? null;
  }

  /** The scores that other tools recorded of it. */
  get recorded() {
    return [...this.run.values].filter(([label]) => label.startsWith("recorded/")).map(([, values]) => values[this.place]);
  }

  text(name) {
    return this.run[name]?.[this.place] ?? null;
  }

  /** The images, sounds and files in one of the row's texts: input, output, reference or context, by number. */
  media(where) {
    return (this.run.media?.[this.place] ?? []).filter((item) => item.where === where).map((item) => this.drawn(item));
  }

  drawn(item) {
    return { ...item, src: item.picture === undefined ? null : this.run.pictures[item.picture] };
  }

  /** The exact verdicts on the subject, by label. */
  get ended() {
    return readExactly(this.run.ended[this.place]);
  }

  get record() {
    const text = this.run.records[this.place];
    return text === null ? null : readExactly(text);
  }

  /** The file that it was read from, with the line where it is known. */
  get file() {
    return this.run.places?.[this.place] ?? null;
  }

  /** The user's first message in the row's conversation. */
  get opening() {
    const messages = (this.turns ?? []).flatMap((turn) => turn.messages);
    return messages.find((message) => message.role === "user")?.text ?? "";
  }

  /** The session that started the row's session, or its workload; null if it has none. */
  get parent() {
    return this.run.parents?.[this.session] ?? null;
  }

  get turns() {
    return this.session === null || this.run.kinds[this.place] === "row" ? null : this.turnsOf(this.session);
  }

  /** The turns of a session in the page, null if the page does not have it. */
  turnsOf(session) {
    const turns = Object.hasOwn(this.run.conversations ?? {}, session) ? this.run.conversations[session] : null;
    return turns === null ? null : turns.map((turn) => ({ ...turn, messages: turn.messages.map((message) => (message.media ? { ...message, media: message.media.map((item) => this.drawn(item)) } : message)) }));
  }
}

const ORDER = { none: 0, fail: 1, pass: 2, open: 3 };

/** A subject with its row in each run, null where a run does not show it. */
export class Subject {
  constructor(key, kind, id, runs) {
    this.key = key;
    this.kind = kind;
    this.id = id;
    this.rows = Array(runs).fill(null);
    this.words = null;
  }

  get first() {
    return this.rows.find((row) => row !== null);
  }

  /** The worst outcome in any run. */
  get outcome() {
    return this.rows.reduce((worst, row) => (row !== null && ORDER[row.outcome] < ORDER[worst] ? row.outcome : worst), "open");
  }

  /** How bad it is: failures first, then rows that fail, each by the lowest score, its own or another tool's; equal ones by the own score. */
  get badness() {
    if (this.outcome === "none") return -1;
    const rows = this.rows.filter((row) => row !== null);
    const own = least(rows.map((row) => row.score));
    if (this.outcome === "open" && own === NO_SCORE) return 3 * NO_SCORE;
    return (this.outcome === "fail" ? 0 : 1.5 * NO_SCORE) + Math.min(own, least(rows.flatMap((row) => row.recorded))) + own * 1e-6;
  }

  /** Whether it passes in one run and not in another, or did not in the baseline. */
  get flipped() {
    const outcomes = new Set(this.rows.filter((row) => row !== null).map((row) => row.outcome));
    return this.rows.some((row) => row?.flip) || (outcomes.has("pass") && (outcomes.has("fail") || outcomes.has("none")));
  }

  /** Whether one label passes it in a run, and another does not. */
  get odds() {
    return this.rows.some((row) => row?.run.odds?.[row.place]);
  }

  /** All its texts, in lower case, for searching. */
  get haystack() {
    this.words ??= [this.id, ...this.rows
      .filter((row) => row !== null)
      .flatMap((row) => [
        row.text("inputs"),
        row.text("outputs"),
        row.text("references"),
        row.text("old"),
        row.reason,
        row.file,
        ...(this.kind === "session" && row.turns
          ? row.turns.flatMap((turn) => turn.messages.map((each) => `${each.text ?? ""} ${each.name ?? ""} ${each.arguments ?? ""} ${each.result ?? ""}`))
          : []),
      ])]
      .join("\n")
      .toLowerCase();
    return this.words;
  }
}

const NO_SCORE = 2;

function least(scores) {
  const known = scores.filter((score) => score !== null && score !== undefined).map(Number);
  return known.length ? Math.min(...known) : NO_SCORE;
}
