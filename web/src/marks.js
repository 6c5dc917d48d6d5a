// Signs of an outcome: a word and a shape next to each color.
import { html } from "./html.js";

export const OUTCOMES = {
  pass: { sign: "✓", word: "pass", title: "Every deciding label reaches its line" },
  fail: { sign: "✗", word: "fail", title: "A deciding label is below its line" },
  none: { sign: "!", word: "no score", title: "The task gave no output, or a deciding judge or metric failed; the reason names the kind" },
  open: { sign: "·", word: "open", title: "No deciding label has judged the subject, or none has a line" },
};

export function Mark({ outcome, word }) {
  const { sign, word: usual } = OUTCOMES[outcome] ?? OUTCOMES.open;
  return html`<span class=${`mark ${outcome}`}><span aria-hidden="true">${sign}</span> ${word ?? usual}</span>`;
}

/** The gate's three answers. */
export const answer = (passed) =>
  passed === true ? ["pass", "passed"] : passed === false ? ["fail", "failed"] : ["none", "undecided"];

/** The answer of a run's document: its gate's answer; without a gate, that there is none or that the run is undecided. */
export function gateOf(document) {
  if (document.gate) return { reasons: document.gate.reasons, outcome: answer(document.gate.passed)[0], word: `gate ${answer(document.gate.passed)[1]}`, clauses: document.gate.clauses ?? [] };
  const reasons = document.undecided ?? [];
  return { reasons, outcome: reasons.length ? "none" : "open", word: reasons.length ? "undecided" : "no gate", clauses: [] };
}

/** Whether a clause of the gate is on the label. */
export const inGate = (document, label) => (document.gate?.clauses ?? []).some((clause) => clause.on === label);

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
