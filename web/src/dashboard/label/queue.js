// The subjects of a queue, the current one, and the cases of the next, which are loaded ahead.
import { useEffect, useRef, useState } from "../../html.js";
import { address, ask, isPassing } from "../api.js";

const FEW = 20; // subjects, with their cases, that are read at once: a label is one key, and an answer takes longer than a key
const AHEAD = 20; // subjects that the page has after the current one, before more are read
const KEPT = 100; // cases that the page keeps
const SINGLE = 3; // cases that are read by themselves, the current and the next: they did not come with the queue, or came without verdicts

/** The queues, with their words; the first is the default. */
export const QUEUES = [
  ["random", "at random"], ["unlabeled", "unlabeled"], ["odds", "labels disagree"], ["failed", "failed"], ["label", "one label, lowest first"], ["differ", "people differ: decide"],
];

const keyOf = (item) => JSON.stringify([item.subject_kind, item.subject_id]);

/**
 * `{document, at, error, item, shown, isEnd, next, back}`: the answer about the queue, the current item with its case in `shown` (`null` while it loads), and the ways to others.
 * `wanted` are the parameters of the queue; `start` is the place of the first item; `tick` reads the progress again, and `round` what was not read while the server was gone.
 */
export function useQueue(wanted, start, blind, tick, round) {
  const url = (more) => address("/labels/queue", { ...wanted, ...more });
  const base = url({});
  const [state, setState] = useState({ base: null, items: [], index: 0, document: null, url: null, error: null, isDone: false });
  const cases = useRef(new Map());
  const [, draw] = useState(0);
  const [attempts, setAttempts] = useState({ first: 0, more: 0 }); // of reading the first subjects and later ones
  const page = () => ({ limit: FEW, cases: FEW, blind: String(blind) });
  const hold = (key, value) => {
    cases.current.set(key, value);
    if (cases.current.size > KEPT) cases.current.delete(cases.current.keys().next().value);
  };
  /** Keeps the cases of a page of the queue. A case that could not be read with the page is read by itself, for its error. */
  const keep = (answer, from) => answer.data.forEach((one, place) => {
    const document = answer.cases[place] ?? null;
    if (document !== null) hold(`${blind}${keyOf(one)}`, { document, at: (path) => `${from}#cases[${place}].${path}`, error: null });
  });
  const failed = (error) => setState((before) => ({ ...before, base, error }));
  useEffect(() => {
    let isWanted = true;
    const first = url({ ...page(), cursor: Math.max(0, start - 1) });
    cases.current.clear();
    setState({ base: null, items: [], index: 0, document: null, url: null, error: null, isDone: false });
    ask(first).then((document) => {
      if (!isWanted) return;
      keep(document, first);
      setState({ base, items: document.data, index: 0, document, url: first, error: null, isDone: document.next_cursor === null });
    }, failed);
    return () => {
      isWanted = false;
    };
  }, [base, attempts.first]);
  useEffect(() => { // the progress after labels
    if (state.base !== base || tick === 0) return undefined;
    const progress = url({ limit: 1 });
    const timer = setTimeout(() => ask(progress).then((document) => setState((before) => (before.base === base ? { ...before, document, url: progress } : before)), () => {}), 400);
    return () => clearTimeout(timer);
  }, [tick, state.base === base]);
  const isHere = state.base === base;
  const item = isHere ? state.items[state.index] ?? null : null;
  useEffect(() => { // more subjects before the last is reached
    if (!isHere || state.document === null || state.isDone || state.items.length - state.index > AHEAD + 1) return;
    const last = state.items.at(-1);
    const more = url({ ...page(), cursor: last === undefined ? 0 : String(last.place) });
    ask(more).then((document) => {
      keep(document, more);
      setState((before) => {
        if (before.base !== base || before.items.at(-1) !== last) return before;
        return { ...before, items: [...before.items, ...document.data], isDone: document.next_cursor === null };
      });
    }, failed);
  }, [isHere, state.index, state.items.length, attempts.more]);
  useEffect(() => { // the server answers again
    for (const [key, one] of cases.current) if (isPassing(one.error)) cases.current.delete(key);
    draw((count) => count + 1);
    if (!isPassing(state.error)) return;
    const part = state.document === null ? "first" : "more";
    setState((before) => ({ ...before, error: null }));
    setAttempts((before) => ({ ...before, [part]: before[part] + 1 }));
  }, [round]);
  const run = state.document?.run_id ?? null;
  const load = (one) => {
    const key = `${blind}${keyOf(one)}`;
    if (cases.current.has(key)) return;
    hold(key, { document: null, error: null });
    const values = { run, kind: one.subject_kind, subject: one.subject_id, labeller: wanted.labeller, label: wanted.label, blind: String(blind), people: wanted.queue === "differ" ? "true" : null };
    const caseUrl = address("/labels/case", values);
    ask(caseUrl).then(
      (document) => cases.current.set(key, { document, at: (path) => `${caseUrl}#${path}`, error: null }),
      (error) => cases.current.set(key, { document: null, error }),
    ).finally(() => draw((count) => count + 1));
  };
  useEffect(() => {
    if (isHere && run !== null) state.items.slice(state.index, state.index + SINGLE).forEach(load);
  }, [isHere, run, state.index, state.items.length, blind, item && cases.current.has(`${blind}${keyOf(item)}`)]);
  const move = (index) => setState((before) => ({ ...before, index }));
  return {
    document: isHere ? state.document : null,
    at: (path) => `${state.url}#${path}`,
    error: state.error,
    item,
    isEnd: isHere && item === null && state.isDone,
    shown: item === null ? null : cases.current.get(`${blind}${keyOf(item)}`) ?? null,
    next: () => move(state.index + 1),
    /** Shows a subject again, with the case that it had, or with a new answer for null. */
    back: (one, before = null) => {
      for (const hidden of [true, false]) cases.current.delete(`${hidden}${keyOf(one)}`);
      if (before !== null) cases.current.set(`${blind}${keyOf(one)}`, before);
      const place = state.items.findIndex((each) => keyOf(each) === keyOf(one));
      if (place >= 0) move(place);
      else setState((before) => ({ ...before, items: [...before.items.slice(0, before.index), { ...one, place: before.items[before.index]?.place ?? 1 }, ...before.items.slice(before.index)] }));
    },
  };
}
