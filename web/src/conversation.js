// A conversation: its messages by role, its tool calls with their arguments, and the conversations of its sub-agents, folded.
import { html, useEffect, useRef, useState } from "./html.js";
import { plain } from "./figures.js";
import { Mark } from "./marks.js";
import { Media } from "./media.js";
import { Readable } from "./readable/readable.js";

const WHOLE = 120; // turns of a conversation that is drawn at once
const NEAR = 40; // turns before and after the marked one that are drawn of a longer conversation
const MORE = 200; // turns that a button adds

const WHO = { user: "User", assistant: "Assistant", system: "Policy", developer: "Policy", model: "Model input" };

/**
 * `turns` are `{id, messages}` with messages `{kind: said|call|note|agent, role?, text?, reasoning?, name?, arguments?, result?, failed?, agents?, session?}`.
 * A sub-agent is `{session, turns?}`: in `agents` of the call that started it, or a message; without `turns`, `turnsOf(session)` has them.
 * Of a long conversation the turns near `own` are drawn, and buttons add others. The turn or the call that is `own` is marked, and, unless `follow` is false, scrolled to. `verdict(id)` returns the verdict on a turn, or null.
 */
export function Conversation({ turns, own = null, verdict = () => null, follow = true, turnsOf = () => null, label = "Conversation" }) {
  const marked = useRef(null);
  useEffect(() => {
    // A panel is shown only after its content is drawn.
    if (!follow) return undefined;
    const later = requestAnimationFrame(() => marked.current?.scrollIntoView({ block: "start" }));
    return () => cancelAnimationFrame(later);
  }, [own]);
  const [[first, end], setShown] = useState(() => shownAround(turns, own));
  const inside = { verdict, turnsOf };
  const later = turns.length - end;
  return html`${first > 0 ? html`<p class="more-turns"><button class="chip" type="button" onClick=${() => setShown([Math.max(0, first - MORE), end])}>Show ${plain(Math.min(MORE, first))} of ${plain(first)} earlier turns</button></p>` : null}
  <ol class="conversation" aria-label=${label}>
    ${turns.slice(first, end).map((turn) => {
      const isOwn = own !== null && turn.id === own;
      return html`<li class=${isOwn ? "turn own" : "turn"} ref=${isOwn ? marked : null} aria-current=${isOwn ? "true" : undefined}>
        ${turn.id === null ? null : html`<div class="turn-head"><span dir="auto">${turn.id}</span>${verdict(turn.id)}</div>`}
        ${turn.messages.map((message) => html`<${Message} message=${message} own=${own} inside=${inside} />`)}
      </li>`;
    })}
  </ol>
  ${later > 0 ? html`<p class="more-turns"><button class="chip" type="button" onClick=${() => setShown([first, end + MORE])}>Show ${plain(Math.min(MORE, later))} of ${plain(later)} later turns</button></p>` : null}`;
}

/** The first turn that is drawn, and the one after the last. */
function shownAround(turns, own) {
  if (turns.length <= WHOLE) return [0, Infinity];
  const at = own === null ? 0 : Math.max(0, turns.findIndex((turn) => turn.id === own || turn.messages.some((one) => one.id === own)));
  return [Math.max(0, at - NEAR), Math.min(turns.length, at + NEAR + 1)];
}

function Message({ message, own, inside }) {
  if (message.kind === "call") return html`<${Call} call=${message} own=${own} />${message.agents?.map((agent) => html`<${Agent} agent=${agent} inside=${inside} key=${agent.session} />`)}`;
  if (message.kind === "agent") return html`<${Agent} agent=${message} inside=${inside} />`;
  if (message.kind === "note") return html`<p class="note" dir="auto">${message.text}</p>`;
  if (message.role === "system" || message.role === "developer") {
    return html`<details class="policy"><summary>${WHO[message.role]}</summary><div class="text" dir="auto">${message.text}</div></details>`;
  }
  return html`<div class=${`said ${message.role === "user" ? "user" : "assistant"}`}>
    <div class="who">${WHO[message.role] ?? message.role}</div>${message.reasoning ? html`<details class="reasoning"><summary>Reasoning</summary><div class="text" dir="auto">${message.reasoning}</div></details>` : null}<div class="text" dir="auto">${message.text}</div><${Media} items=${message.media} text=${message.text} /></div>`;
}

/** The conversation of a sub-agent, which is drawn once it is opened. */
function Agent({ agent, inside }) {
  const [opened, setOpened] = useState(false);
  const turns = agent.turns ?? inside.turnsOf(agent.session);
  const name = html`Sub-agent <code dir="auto">${agent.session}</code>`;
  if (!turns) return html`<p class="note">${name}: its conversation is on its own page</p>`;
  return html`<details class="agent" onToggle=${(event) => event.currentTarget.open && setOpened(true)}>
    <summary>${name}</summary>${opened ? html`<${Conversation} turns=${turns} follow=${false} label=${`Conversation of sub-agent ${agent.session}`} ...${inside} />` : null}
  </details>`;
}

/** A tool's call, whose arguments and result are drawn once it is opened. */
function Call({ call, own }) {
  const isOwn = own !== null && call.id === own;
  const [opened, setOpened] = useState(isOwn);
  const outcome = call.failed ? "fail" : call.result === undefined ? "open" : "pass";
  const word = call.failed ? "failed" : call.result === undefined ? "no result" : "returned";
  const part = (name, text) => (text === undefined ? null : html`<${Readable} heading=${name} text=${text} name=${`${name} of ${call.name}`} />`);
  return html`<details class=${isOwn ? "call own" : "call"} open=${isOwn} onToggle=${(event) => event.currentTarget.open && setOpened(true)}>
    <summary><span class="tool" dir="auto">${call.name}</span><span class="brief" dir="auto">${call.arguments ?? ""}</span><${Mark} outcome=${outcome} word=${word} /></summary>
    ${opened ? html`<div class="call-parts">${part("Arguments", call.arguments)}${part(call.failed ? "Error" : "Result", call.result)}${call.result === undefined ? null : html`<${Media} items=${call.media} text=${call.result} />`}</div>` : null}
  </details>`;
}
