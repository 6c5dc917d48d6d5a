// The list of a run's subjects, as an address has it: filters, search, order. A subject keeps the list that a reader came from.
import { address } from "./api.js";
import { ofRun, place } from "./router.js";

const LISTED = ["q", "regex", "outcome", "change", "odds", "only", "basis", "label", "least", "most", "sort", "by", "down", "baseline"];

/** The part of an address that selects and sorts subjects. */
export const listOf = (query) => Object.fromEntries(LISTED.filter((key) => query[key]).map((key) => [key, query[key]]));

/** The part of a subject's address that says which list a reader came from: its selection, and `from=compare` for the list of Compare. */
export const originOf = (query) => ({ ...listOf(query), from: query.from, any: query.any });

/** Whether the reader of a subject came from Compare. */
export const isFromCompare = (query) => query.from === "compare" && Boolean(query.baseline);

/** The address of the list that the reader of a subject came from. */
export function listPlace(run, query) {
  const { baseline, ...list } = listOf(query);
  return isFromCompare(query) ? place(["compare"], { a: baseline, b: run, any: query.any, ...list }) : ofRun(run, listOf(query));
}

const yes = (value) => (value === "1" ? "true" : null);

/** The address of an answer about the list in a run: `what` is `subjects` or `neighbors`. */
export function listAddress(run, what, query, more = {}) {
  const { q, outcome, change, basis, label, sort, by, baseline, least, most } = query;
  const chosen = { q, regex: q ? yes(query.regex) : null, outcome, change: baseline ? change : null, odds: yes(query.odds), subject_kind: query.only, basis, label };
  return address(`/runs/${encodeURIComponent(run)}/${what}`, { ...chosen, min_value: least, max_value: most, sort: sort === "change" && !baseline ? null : sort, by, down: yes(query.down), baseline, ...more });
}
