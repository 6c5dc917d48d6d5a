// The list of a run's subjects, as an address has it: filters, search, order. A subject keeps the list that a reader came from.
import { address } from "./api.js";

const LISTED = ["q", "regex", "outcome", "change", "odds", "only", "basis", "label", "least", "most", "sort", "by", "down", "baseline"];

/** The part of an address that selects and sorts subjects. */
export const listOf = (query) => Object.fromEntries(LISTED.filter((key) => query[key]).map((key) => [key, query[key]]));

const yes = (value) => (value === "1" ? "true" : null);

/** The address of an answer about the list in a run: `what` is `subjects` or `neighbors`. */
export function listAddress(run, what, query, more = {}) {
  const { q, outcome, change, basis, label, sort, by, baseline, least, most } = query;
  const chosen = { q, regex: q ? yes(query.regex) : null, outcome, change: baseline ? change : null, odds: yes(query.odds), subject_kind: query.only, basis, label };
  return address(`/runs/${encodeURIComponent(run)}/${what}`, { ...chosen, min_value: least, max_value: most, sort: sort === "change" && !baseline ? null : sort, by, down: yes(query.down), baseline, ...more });
}
