// Work on a queue: the keys of `dicast label`, labels on their way, undo, progress and guidelines.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../html.js";
import { Figure, plain } from "../../figures.js";
import { Markdown } from "../../readable/markdown.js";
import { address } from "../api.js";
import { Problem } from "../parts.js";
import { alter } from "../router.js";
import { useTitle } from "../title.js";
import { Verdicts } from "../verdicts.js";
import { Case } from "./case.js";
import { useKeys } from "../keys.js";
import { useOutbox } from "./outbox.js";
import { People } from "./people.js";
import { Pick } from "./pick.js";
import { QUEUES, useQueue } from "./queue.js";

const WORDS = { single: ["Pass", "Fail", "Half"], pair: ["Pass", "Fail", "Tie"], both: ["First", "Second", "Tie"] };

/** The words for the scores 1, 0 and 0.5; two outputs are named after their order if the judge's evidence has one. */
const wordsOf = (data) => WORDS[data?.judged?.is_pair ? "both" : data?.is_pair ? "pair" : "single"];
const wordOf = (score, [pass, fail, half]) => ({ 1: pass, 0: fail, 0.5: half }[score] ?? `score ${score}`).toLowerCase();
const nameOf = (item) => item.subject_id;
const PAUSE = 500; // ms without a key after which keys count again
const TOLD = 5000; // ms that the number of refused keys stays on the page at least

export function Work({ wanted, run, start, live, picks, onRename }) {
  const [tick, setTick] = useState(0);
  const [blind, setBlind] = useState(true);
  const [isRecorded, setRecorded] = useState(false); // the view of subjects, kept for the next
  const [reason, setReason] = useState("");
  const [said, setSaid] = useState("");
  const past = useRef([]); // labels and skips of this page, the newest last
  const waiting = useRef(null); // the retracted label after a reload, until the ledger has the retraction
  const queue = useQueue(wanted, start, blind, tick, live.tick);
  const outbox = useOutbox((job) => {
    setTick((count) => count + 1);
    if (job === waiting.current?.job) queue.back(waiting.current.item);
  });
  const { item, shown } = queue;
  const data = shown?.document ?? null;
  const isDeciding = wanted.queue === "differ";
  const words = wordsOf(data);
  useEffect(() => {
    if (item !== null) alter({ at: String(item.place) });
  }, [item]);
  useTitle(`Label ${item === null ? "" : `${nameOf(item)} · `}${run.name} ${run.run_id.slice(-6)}`);
  const top = useTop(item);
  const [refused, setRefused] = useState(0); // keys that were not taken
  const refusedAt = useRef(-PAUSE);
  /** Whether a key counts: its subject is on the page. After a refusal it counts once no key was pressed for a while, since the keys of somebody who types ahead are not about the subject that appears meanwhile. */
  const isTaken = (isShown) => {
    const apart = performance.now() - refusedAt.current;
    if (isShown && apart > PAUSE) {
      if (apart > TOLD) setRefused(0);
      return true;
    }
    refusedAt.current = performance.now();
    setRefused((count) => count + 1);
    return false;
  };
  const label = (score) => {
    if (!isTaken(item !== null && data !== null)) return;
    const expected = data.own === null ? "" : data.own.run_id;
    const body = { subject_id: data.subject_id, subject_kind: data.subject_kind, run_id: data.run_id, score, judge: wanted.labeller, blind, expected };
    if (queue.document.drawn !== null) body.drawn = queue.document.drawn;
    if (reason.trim()) body.reason = reason.trim();
    if (isDeciding) body.adjudicated = true;
    past.current.push({ item, shown, reason, job: outbox.add(address("/labels"), body) });
    setReason("");
    setSaid(`${nameOf(item)}: ${wordOf(score, words)}`);
    queue.next();
  };
  const skip = () => {
    if (!isTaken(item !== null && shown !== null && (data !== null || shown.error !== null))) return;
    past.current.push({ item, shown, reason, job: null });
    setReason("");
    setSaid(`${nameOf(item)}: skipped`);
    queue.next();
  };
  const undo = () => {
    const step = past.current.pop();
    if (step === undefined) return undoLast();
    if (step.job !== null && !step.job.isDropped && !outbox.remove(step.job)) outbox.add(address("/labels/retractions"), retractionOf(step, wanted.labeller));
    setReason(step.reason);
    setSaid(`${nameOf(step.item)}: ${step.job === null ? "shown again" : "label taken back"}`);
    queue.back(step.item, step.shown);
    return undefined;
  };
  const undoLast = () => {
    const last = queue.document?.last ?? null;
    if (last === null || waiting.current?.run === last.run_id) return;
    const body = { subject_id: last.subject_id, subject_kind: last.subject_kind, run_id: last.run_id, judge: wanted.labeller };
    waiting.current = { run: last.run_id, item: { subject_id: last.subject_id, subject_kind: last.subject_kind } };
    waiting.current.job = outbox.add(address("/labels/retractions"), body);
    setSaid(`${nameOf(last)}: label taken back`);
  };
  const [isKeysShown, setKeysShown] = useState(false);
  const why = useRef(null);
  const number = useRef(null);
  const guide = useRef(null);
  useKeys({ y: () => label(1), 1: () => label(1), n: () => label(0), 0: () => label(0), t: () => label(0.5), s: skip, u: undo, r: () => why.current?.focus(), "=": () => number.current?.focus(),
    v: () => setBlind(!blind), g: () => { if (guide.current) guide.current.open = !guide.current.open; }, "?": () => setKeysShown(!isKeysShown) });
  const actions = { label, skip, undo };
  return html`<div class="top"><h1>Label</h1><div class="picks">${picks}<${Picks} wanted=${wanted} document=${queue.document} /></div></div>
    ${queue.error ? html`<${Problem} error=${queue.error} />${queue.error.errors?.some((one) => one.parameter === "labeller" || one.parameter === "judge") ? html`<p><button type="button" class="chip" onClick=${onRename}>Change the name</button></p>` : null}` : null}
    ${queue.document ? html`<${Progress} document=${queue.document} at=${queue.at} wanted=${wanted} waiting=${outbox.waiting} onRename=${onRename} />` : queue.error ? null : html`<p class="empty" role="status">Reading …</p>`}
    ${queue.document?.guidelines.length ? html`<details class="guide" ref=${guide} open=${isNew(queue.document.guidelines)} onToggle=${(event) => { if (!event.currentTarget.open) markRead(queue.document.guidelines); }}><summary>Guidelines <kbd>g</kbd></summary>${queue.document.guidelines.map((one) => html`<section><h2>${one.title}</h2><${Markdown} text=${one.text} /></section>`)}</details>` : null}
    <p class="hidden" role="status">${said}</p>
    <${Unsent} outbox=${outbox} labeller=${wanted.labeller} />
    <div role="status">${refused === 0 ? null : html`<p class="warnings refused">${plain(refused)} ${refused === 1 ? "key was" : "keys were"} not taken: the subject was not shown yet. Wait half a second, and go on with the subject on the page.</p>`}</div>
    ${queue.isEnd ? html`<${End} document=${queue.document} skipped=${past.current.filter((step) => step.job === null).length} undo=${undo} />` : null}
    ${item === null ? null : html`<div class="story labeling"><div class="what"><h2 class="id" dir="auto" tabindex="-1" ref=${top}>${nameOf(item)}</h2>
      ${shown?.error ? html`<${Problem} error=${shown.error} />` : data === null ? html`<p class="empty" role="status">Reading …</p>` : html`<${Case} data=${data} isRecorded=${isRecorded} onRecorded=${setRecorded} key=${JSON.stringify([data.subject_kind, data.subject_id])} />`}</div>
      <div class="said-of"><${Form} actions=${actions} isReady=${data !== null} words=${words} given=${data?.given ?? null} own=${data?.own ?? null} reason=${reason} onReason=${setReason} why=${why} number=${number} blind=${blind} onBlind=${setBlind} isKeysShown=${isKeysShown} onKeys=${setKeysShown} isDeciding=${isDeciding} said=${said} canUndo=${past.current.length > 0 || (queue.document?.last ?? null) !== null} />
        ${data?.evaluations ? html`<${Verdicts} data=${data} at=${(path) => shown.at(path.replace(/^data\./, ""))} />` : null}</div></div>`}
    <${People} tick=${tick} onDecide=${() => alter({ queue: "differ", at: "" })} />`;
}

/** The body of a retraction: its label's run is known once the label is recorded; a label that was not recorded needs none. */
const retractionOf = (step, labeller) => {
  const body = () => (step.job.result === null ? null : { subject_id: step.item.subject_id, subject_kind: step.item.subject_kind, run_id: step.job.result.run_id, judge: labeller });
  return step.job.result === null ? body : body();
};

/** The heading of the current subject: a new subject starts at the top, and the focus stays in the page. */
function useTop(item) {
  const heading = useRef(null);
  const first = useRef(true);
  useLayoutEffect(() => {
    if (item === null) return;
    if (!first.current) {
      if (heading.current.getBoundingClientRect().top < 0) heading.current.scrollIntoView({ block: "start" });
      if (document.activeElement === document.body) heading.current.focus({ preventScroll: true });
    }
    first.current = false;
  }, [item]);
  return heading;
}

const READ = "dicast.guidelines"; // the guidelines that this browser has folded, so that they are open when they change
const textOf = (guidelines) => JSON.stringify(guidelines.map((one) => [one.title, one.text.length]));
const isNew = (guidelines) => localStorage.getItem(READ) !== textOf(guidelines);
const markRead = (guidelines) => localStorage.setItem(READ, textOf(guidelines));

function Picks({ wanted, document }) {
  const labels = document?.labels ?? [];
  const kinds = Object.keys(document?.kinds ?? {});
  const isRandom = wanted.queue === "random" || wanted.queue === "odds";
  return html`<${Pick} name="queue" value=${wanted.queue} options=${QUEUES} />
    ${labels.length && wanted.queue !== "differ" ? html`<${Pick} name="label" value=${document?.label ?? ""} options=${[...(wanted.queue === "label" ? [] : [["", "any"]]), ...labels.map((one) => [one, one])]} />` : null}
    ${kinds.length > 1 ? html`<${Pick} name="kind" param="only" value=${wanted.subject_kind ?? ""} options=${[["", "any"], ...kinds.map((one) => [one, one.replaceAll("_", " ")])]} />` : null}
    ${isRandom ? html`<label class="pick">seed <input type="number" min="0" step="1" value=${wanted.seed} onChange=${(event) => alter({ seed: event.currentTarget.value, at: "" })} /></label>` : null}`;
}

function Progress({ document, at, wanted, waiting, onRename }) {
  const { queue } = document;
  const others = Object.entries(document.labellers).filter(([name]) => name !== wanted.labeller);
  const count = queue === "differ" ? "decided" : queue === "unlabeled" ? "labeled" : "own";
  const you = html`<b dir="auto">${wanted.labeller}</b> (<button type="button" class="link" onClick=${onRename}>change</button>)`;
  const word = { decided: html`decided · you are ${you}`, labeled: html`labeled by anybody · you are ${you}`, own: html`labeled by ${you}` }[count];
  return html`<div class="progress"><progress max=${Math.max(1, Number(document.n))} value=${Number(document[count])} aria-label="Progress"></progress>
    <p class="small"><${Figure} value=${document[count]} path=${at(count)} form=${plain} /> of <${Figure} value=${document.n} path=${at("n")} form=${plain} /> ${word}${count === "own" ? html` · <${Figure} value=${document.labeled} path=${at("labeled")} form=${plain} /> by anybody` : null}${others.map(([name, n]) => html` · <span dir="auto">${name}</span> <${Figure} value=${n} path=${at(`labellers[${JSON.stringify(name)}]`)} form=${plain} />`)}${waiting === 0 ? null : html` · <span class="unsaved">${plain(waiting)} being saved</span>`}</p>
    ${queue === "random" || queue === "differ" ? null : html`<p class="note">Labels of this queue do not represent the run, so <code>dicast calibrate</code> does not use them; those drawn at random do.</p>`}</div>`;
}

/** Labels that the ledger does not have yet, with the reason and the choices. */
function Unsent({ outbox, labeller }) {
  const { error, waiting, first } = outbox;
  if (error === null) return null;
  const other = error.errors.find((one) => one.parameter === "expected");
  return html`<div class="warnings" role="alert"><p dir="auto">${plain(waiting)} ${waiting === 1 ? "label is" : "labels are"} not recorded${first?.body?.subject_id ? html`, first <code>${first.body.subject_id}</code>` : null}: ${error.message}</p>
    ${other ? html`<p class="row"><button type="button" class="chip" onClick=${outbox.drop}>Keep the label of the other tab</button><button type="button" class="chip" onClick=${() => outbox.replace({ expected: other.value })}>Replace it, as ${labeller}</button></p>`
      : html`<p class="row"><button type="button" class="chip" onClick=${outbox.again}>Try again</button>${error.status > 0 ? html`<button type="button" class="chip" onClick=${outbox.drop}>Drop the label</button>` : html`<span>${waiting === 1 ? "It is" : "They are"} sent as soon as the server answers.</span>`}</p>`}</div>`;
}

function End({ document, skipped, undo }) {
  const nothing = Number(document.n) === 0;
  return html`<div class="card end"><h2>${nothing ? "This queue is empty." : "This queue is done."}</h2>
    <p>${Number(document.left) && skipped ? html`${plain(skipped)} skipped: <button type="button" class="link" onClick=${() => location.reload()}>show them again</button>. ` : null}<button type="button" class="chip" onClick=${undo}>Undo <kbd>u</kbd></button></p></div>`;
}

const KEYS = [["y, 1", "pass"], ["n, 0", "fail"], ["t", "tie, or half good"], ["=", "type a score, and Enter"], ["r", "write a reason, Escape returns"], ["s", "skip"], ["u", "undo"], ["g", "guidelines"], ["v", "show or hide the verdicts"], ["?", "these keys"]];

function Form({ actions, isReady, words, given, own, reason, onReason, why, number, blind, onBlind, isKeysShown, onKeys, isDeciding, said, canUndo }) {
  const leave = (event) => {
    if (event.key === "Escape") event.currentTarget.blur();
  };
  const typed = (event) => {
    leave(event);
    if (event.key !== "Enter") return;
    event.preventDefault();
    const score = event.currentTarget.valueAsNumber;
    if (!(score >= 0 && score <= 1)) return event.currentTarget.reportValidity();
    event.currentTarget.value = "";
    event.currentTarget.blur();
    actions.label(score);
    return undefined;
  };
  const button = (key, word, act, className = "", off = !isReady) => html`<button type="button" class=${`action ${className}`} aria-keyshortcuts=${key} disabled=${off} onClick=${act}>${word} <kbd aria-hidden="true">${key}</kbd></button>`;
  return html`<section class="card label-form" aria-label=${isDeciding ? "Your decision" : "Your label"}>
    ${given === null ? null : html`<p class="given">${given.map((one) => html`<span class="flag plain"><span dir="auto">${one.labeller}</span> ${plain(one.score)}</span> `)}</p>`}
    <div class="buttons">${button("y", words[0], () => actions.label(1), "pass")}${button("n", words[1], () => actions.label(0), "fail")}${button("t", words[2], () => actions.label(0.5))}${button("s", "Skip", actions.skip, "", false)}${button("u", "Undo", actions.undo, "", !canUndo)}</div>
    ${own === null ? null : html`<p class="small">Your label so far: ${plain(own.score)}. A new one replaces it.</p>`}
    <div class="roomy"><label class="area">Why <kbd aria-hidden="true">r</kbd><textarea ref=${why} rows="2" maxlength="10000" value=${reason} onKeyDown=${leave} onInput=${(event) => onReason(event.currentTarget.value)}></textarea></label></div>
    <div class="row"><label class="pick roomy">score <kbd aria-hidden="true">=</kbd> <input ref=${number} type="number" min="0" max="1" step="any" onKeyDown=${typed} /></label>
      <label class="pick"><input type="checkbox" checked=${blind} onChange=${(event) => onBlind(event.currentTarget.checked)} /> hide the verdicts</label>
      <button type="button" class="link" aria-expanded=${isKeysShown ? "true" : "false"} onClick=${() => onKeys(!isKeysShown)}>keys</button></div>
    ${isKeysShown ? html`<dl class="facts keys">${KEYS.map(([key, word]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${word}</dd></div>`)}</dl>` : null}
    ${said ? html`<p class="small" dir="auto">${said}</p>` : null}</section>`;
}
