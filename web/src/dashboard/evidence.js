// The content of a subject: its conversation, or input, output, reference and context.
import { html } from "../html.js";
import { Num } from "../figures.js";
import { Conversation } from "../conversation.js";
import { Media, unseenOf, withoutMedia } from "../media.js";
import { Readable } from "../readable/readable.js";

/** The words of endpoints for an output that the limit or a filter ended. */
const CUT = /length|max_|limit|refus|filter|safety/i;

/** A value as text: a JSON value is indented. */
export const written = (value) => (typeof value === "string" ? value : value instanceof Num ? value.token : JSON.stringify(value, (_, each) => (each instanceof Num ? each.value : each), 2));

/** The text of a content, without its media; null where there is none. */
export const textOf = (value) => (value === null || value === undefined ? null : written(withoutMedia(value)[0]));

/** The conversation where there is one, with the subject's other content; no judge labels where *blind*. The output is folded where *isOutputShown*: the page has it already. */
export function Evidence({ data, id, kind, blind = true, isOutputShown = false }) {
  const turns = data.conversation;
  const content = data.content ?? {};
  const inside = turns !== null && kind !== "workload";
  const unseen = blind ? [] : unseenOf((data.evaluations ?? []).flatMap((one) => [[one.judge, one.signals], ...(one.scores ?? []).map((score) => [score.metric, score.signals])]), withoutMedia(content)[1]);
  if (!inside && Object.keys(content).length === 0) return html`<p class="note">The ledger does not hold the content of this subject: its <code>content</code> is not stored, or the run did not read this subject.</p>`;
  const output = html`<${Material} name=${data.made ? "Output (the task made it)" : "Output"} value=${content.output} unseen=${unseen} against=${[["reference", textOf(content.reference)]]} />`;
  return html`${inside && !data.made ? html`<${Conversation} turns=${turns} own=${kind === "session" ? null : id} follow=${isFar(turns, id)} />` : html`<${Material} name="Input" value=${content.input} unseen=${unseen} />${isOutputShown ? html`<details class="folded"><summary>The output by itself</summary>${output}</details>` : output}`}
    ${CUT.test(data.finish_reason ?? "") ? html`<p class="warnings" dir="auto">The output is incomplete: <code>${data.finish_reason}</code></p>` : null}
    <${Material} name="Reference" value=${content.reference} unseen=${unseen} />
    <${Context} context=${content.context ?? {}} unseen=${unseen} />`;
}

/** Whether the judged turn or call is so far down in its conversation that the page scrolls to it. */
const isFar = (turns, id) => turns.findIndex((turn) => turn.id === id || turn.messages.some((one) => one.id === id)) > 3;

function Material({ name, value, unseen, against = [] }) {
  if (value === null || value === undefined || value === "") return null;
  const [plain, media] = withoutMedia(value);
  return html`<section class="material"><${Readable} heading=${name} text=${written(plain)} json=${typeof plain === "object" ? plain : null} name=${name} against=${against} /><${Media} items=${media} unseen=${unseen} text=${written(plain)} /></section>`;
}

/** The context, folded, with its media before it. */
function Context({ context, unseen }) {
  if (!Object.keys(context).length) return null;
  const [plain, media] = withoutMedia(context);
  return html`${media.length ? html`<section class="material"><h3>Media</h3><${Media} items=${media} unseen=${unseen} /></section>` : null}
    <details class="material"><summary>Context</summary><${Readable} text=${written(plain)} json=${plain} name="Context" /></details>`;
}
