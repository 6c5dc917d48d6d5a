// A person's verdict: a score, and a reason. It is written as a run of its own, under the entered judge name.
import { html, useRef, useState } from "../html.js";
import { address, send } from "./api.js";
import { savedName, saveName } from "./label/name.js";
import { Problem } from "./parts.js";

const QUICK = [["1", "Pass"], ["0.5", "Half"], ["0", "Fail"]];

export function LabelForm({ kind, id, run, blind, onBlind, onGiven }) {
  const [value, setValue] = useState(null);
  const [reason, setReason] = useState("");
  const [judge, setJudge] = useState(savedName() ?? "human");
  const [state, setState] = useState({ sending: false, error: null, done: false });
  const form = useRef(null);
  const give = async (event) => {
    event.preventDefault();
    if (value === null || state.sending) return;
    setState({ sending: true, error: null, done: false });
    saveName(judge);
    try {
      await send(address("/labels"), { subject_id: id, subject_kind: kind, run_id: run, score: Number(value), judge, ...(reason.trim() ? { reason: reason.trim() } : {}) });
      setState({ sending: false, error: null, done: true });
      setValue(null);
      setReason("");
      onGiven();
    } catch (error) {
      setState({ sending: false, error, done: false });
    }
  };
  return html`<form class="card label" onSubmit=${give} ref=${form} aria-label="Your verdict"><header class="verdict-head"><h3>Your verdict</h3>
      <label class="pick"><input type="checkbox" checked=${blind} onChange=${(event) => onBlind(event.currentTarget.checked)} /> blind</label></header>
    <div class="chips" role="group" aria-label="Score">${QUICK.map(([score, word]) => html`<button type="button" class="chip" aria-pressed=${value === score ? "true" : "false"} onClick=${() => setValue(score)}>${word}</button>`)}
      <label class="pick">score <input type="number" min="0" max="1" step="any" value=${value ?? ""} onInput=${(event) => setValue(event.currentTarget.value === "" ? null : event.currentTarget.value)} /></label></div>
    <label class="area">Why <textarea rows="2" maxlength="10000" value=${reason} onInput=${(event) => setReason(event.currentTarget.value)}></textarea></label>
    <div class="row"><label class="pick">as <input value=${judge} pattern="[A-Za-z0-9_.\\-]{1,100}" required maxlength="100" onInput=${(event) => setJudge(event.currentTarget.value)} /></label>
      <button class="action" type="submit" disabled=${value === null || state.sending}>${state.sending ? "Recording …" : "Give the verdict"}</button></div>
    <div role="status">${state.done ? html`<p class="small">Recorded in the ledger as a run of its own.</p>` : null}</div>
    ${state.error ? html`<${Problem} error=${state.error} />` : null}</form>`;
}
