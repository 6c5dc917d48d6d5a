// The subjects of a run one after the other, for labels of people: one key a label, and the next subject is there.
import { html, useEffect, useState } from "../../html.js";
import { address, isPassing, useAnswer } from "../api.js";
import { Answer, TOOL, when } from "../parts.js";
import { useTitle } from "../title.js";
import { NameForm, savedName } from "./name.js";
import { Pick } from "./pick.js";
import { QUEUES } from "./queue.js";
import { Work } from "./work.js";

export function Label({ mayLabel, query, live }) {
  const [attempt, setAttempt] = useState(0);
  const runs = useAnswer(mayLabel ? address("/runs", { limit: 100, without_kind: TOOL }) : null, attempt);
  useEffect(() => {
    if (isPassing(runs.error)) setAttempt((count) => count + 1);
  }, [live.tick]);
  const [name, setName] = useState(savedName());
  const [isNaming, setNaming] = useState(false);
  useTitle(mayLabel && name !== null ? null : "Label");
  if (!mayLabel) return html`<h1>Label</h1><p class="lead">This token may read and not label. Start <code>dicast serve</code> with <code>--label-token-file FILE</code>, and open the address with the token of that file.</p>`;
  return html`<${Answer} answer=${runs} heading="Label">${({ data }) => {
    const run = data.find((one) => one.run_id === query.run) ?? data[0];
    if (run === undefined) return html`<h1>Label</h1><p class="empty">There is no run with subjects to label.</p>`;
    if (name === null || isNaming) return html`<h1>Label</h1><${NameForm} name=${name} onName=${(value) => { setName(value); setNaming(false); }} />`;
    const wanted = { run: run.run_id, queue: query.queue || QUEUES[0][0], seed: query.seed || "0", label: query.label || null, subject_kind: query.only || null, labeller: name };
    return html`<${Work} wanted=${wanted} run=${run} start=${Number(query.at) || 1} live=${live} onRename=${() => setNaming(true)} key=${JSON.stringify(wanted)}
      picks=${html`<${Pick} name="run" value=${run.run_id} options=${data.map((one) => [one.run_id, `${one.name} · ${when(one.started_at)} · ${one.run_id.slice(-6)}`])} />`} />`;
  }}</${Answer}>`;
}
