// A subject as its judge saw it, and as it was recorded; without a verdict of a judge.
import { html } from "../../html.js";
import { plain } from "../../figures.js";
import { Media, withoutMedia } from "../../media.js";
import { Readable } from "../../readable/readable.js";
import { Evidence } from "../evidence.js";

export function Case({ data, isRecorded, onRecorded }) {
  const judged = data.judged !== null && data.judged.sections.length > 0 ? data.judged : null;
  const view = judged === null || isRecorded ? "recorded" : "judged";
  const session = data.session_id !== null && data.subject_kind !== "session" ? html` of session <code dir="auto">${data.session_id}</code>` : null;
  return html`<p class="small">${data.subject_kind.replaceAll("_", " ")}${session}${data.place ? html`, from <code dir="auto">${data.place}</code>` : null}</p>
    ${judged === null ? null : html`<div class="chips" role="group" aria-label="View of the subject"><button type="button" class="chip small" aria-pressed=${view === "judged" ? "true" : "false"} onClick=${() => onRecorded(false)}>as the judge saw it</button><button type="button" class="chip small" aria-pressed=${view === "recorded" ? "true" : "false"} onClick=${() => onRecorded(true)}>as recorded</button></div>`}
    ${data.is_same_judge === false ? html`<p class="note">The judges of the file in <code>--judges</code> are not those of this run: they may show other parts.</p>` : null}
    ${view === "judged" ? html`<${Judged} judged=${judged} content=${data.content ?? {}} />` : html`<${Evidence} data=${data} id=${data.subject_id} kind=${data.subject_kind} />`}`;
}

function Judged({ judged, content }) {
  const [, media] = withoutMedia(content);
  return html`${Number(judged.chars) < Number(judged.total_chars) ? html`<p class="note">Cut as for the judge: ${plain(judged.chars)} of ${plain(judged.total_chars)} characters.</p>` : null}
    ${judged.sections.map((section) => html`<${Section} section=${section} />`)}
    ${media.length ? html`<section class="material"><h3>Media</h3><${Media} items=${media} unseen=${[]} /></section>` : null}
    ${judged.agents.map((agent) => html`<details class="material"><summary>Sub-agent <code dir="auto">${agent.session_id}</code></summary>${agent.sections.map((section) => html`<${Section} section=${section} />`)}</details>`)}
    ${Number(judged.thoughts) ? html`<p class="note">${plain(judged.thoughts)} texts of its reasoning are not shown to the judge; <em>as recorded</em> has them.</p>` : null}`;
}

const FENCED = /^[0-9a-f]{12} \d+ \w+:/m; // the start of a message in a conversation as judges get it

function Section({ section }) {
  return html`<section class="material"><${Readable} heading=${section.title} name=${section.title} text=${section.text} />${FENCED.test(section.text) ? html`<p class="small">Each message begins with a word that is new for each judgment, its number, and its role. So no judged text can imitate the start of a message.</p>` : null}${section.cut.length ? html`<p class="small">cut: ${section.cut.join("; ")}</p>` : null}</section>`;
}
