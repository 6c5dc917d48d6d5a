// Signs of an outcome: a word and a shape beside each colour.
import { html } from "./html.js";

export const OUTCOMES = {
  pass: { sign: "✓", word: "pass" },
  fail: { sign: "✗", word: "fail" },
  none: { sign: "!", word: "no score" },
  open: { sign: "·", word: "not judged" },
};

export function Mark({ outcome, word }) {
  const { sign, word: usual } = OUTCOMES[outcome] ?? OUTCOMES.open;
  return html`<span class=${`mark ${outcome}`}><span aria-hidden="true">${sign}</span> ${word ?? usual}</span>`;
}

/** The gate's three answers. */
export const answer = (passed) =>
  passed === true ? ["pass", "passed"] : passed === false ? ["fail", "failed"] : ["none", "undecided"];

const ON = {
  human: "humans",
  truth: "truth",
  model: "models that are not calibrated",
  heuristic: "heuristics",
  proxy: "proxies alone",
};
export const restingOn = (basis) => ON[basis] ?? basis;

/** A text that is shown once, with a button for the rest where it is long. */
export function Text({ text, className = "text" }) {
  return html`<div class=${className} dir="auto">${text}</div>`;
}
