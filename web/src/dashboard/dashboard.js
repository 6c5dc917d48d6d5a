// The dashboard: the verdicts and figures of a ledger, as it grows.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "../html.js";
import { ThemeToggle } from "../theme.js";
import { choose, chosen, useAnswer, useHealth } from "./api.js";
import { Compare } from "./compare.js";
import { Label } from "./label/label.js";
import { useLive } from "./live.js";
import { Overview } from "./overview.js";
import { place, scrollBack, usePlace } from "./router.js";
import { Run, Runs } from "./runs.js";
import { Subject } from "./subject.js";
import { useTitle } from "./title.js";

const VIEWS = [["", "Today"], ["runs", "Runs"], ["compare", "Compare"], ["label", "Label"]];
const STATES = { opening: ["none", "connecting"], live: ["pass", "live"], connecting: ["none", "not connected, trying again"], closed: ["fail", "refused, trying again"] };

function Dashboard() {
  const here = usePlace();
  const [name = "", ...rest] = here.path;
  if (here.query.ledger !== undefined) choose(here.query.ledger);
  const live = useLive(chosen());
  const session = useAnswer("/session");
  const mayLabel = session.document?.may_label === true;
  const main = useRef(null);
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) {
      main.current?.focus({ preventScroll: true });
      scrollBack();
    }
    first.current = false;
  }, [here.path.join("/")]);
  useTitle(["run", "subject", "compare", "label"].includes(name) ? null : (VIEWS.find(([key]) => key === name)?.[1] ?? "no such page"));
  const runCommand = session.document?.run_command ?? "dicast run pipeline.yaml";
  const view = { live, mayLabel, runCommand, query: here.query };
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the content</a>
    <header class="bar"><a class="brand" href=${place([])}>dicast</a>
      <nav aria-label="Views">${VIEWS.map(([key, word]) => html`<a href=${place(key ? [key] : [])} aria-current=${isIn(name, key) ? "page" : undefined}>${word}</a>`)}</nav>
      <div class="bar-end"><${Ledgers} tick=${live.tick} /><${State} state=${live.state} /><${ThemeToggle} /></div></header>
    <${Old} />
    <main id="main" tabindex="-1" ref=${main}><${Drawn} name=${name} rest=${rest} view=${view} key=${here.path.join("/")} /></main>`;
}

/** The view of a place. A view that fails on content of the ledger that no run wrote shows a message, and the other views still work. */
function Drawn({ name, rest, view }) {
  const [error] = useErrorBoundary();
  return error ? html`<h1>This cannot be shown</h1><p class="warnings" role="alert">The ledger holds content that this page cannot read. <code>dicast ledger verify</code> checks whether the ledger was changed.</p>` : shown(name, rest, view);
}

const TROUBLES = {
  gone: (since) => html`The server has not answered since ${since}. The page tries again every few seconds; <code>dicast serve</code> starts it.`,
  token: (since) => html`The server does not accept the token of this page since ${since}: it has another one now. Open the address that <code>dicast serve</code> has printed, or <code>${location.origin}/?token=TOKEN</code> with the token of its file, before a <code>#</code>.`,
  unreadable: (since) => html`The server cannot read the ledger since ${since}. <code>dicast ledger verify</code> on the server gives the reason.`,
};

/** Why the figures may be old, and when they were read. */
function Old() {
  const { trouble, since, readAt } = useHealth();
  const clock = (time) => `${time.toISOString().slice(11, 19)} UTC`;
  return html`<div class="old" role="status">${trouble === null ? null : html`<p>${TROUBLES[trouble](clock(since))}${readAt === null ? "" : html` The figures are of <strong>${clock(readAt)}</strong> or older.`}</p>`}</div>`;
}

const isIn = (name, key) => name === key || (key === "runs" && name === "run");

function shown(name, rest, view) {
  if (name === "") return html`<${Overview} ...${view} />`;
  if (name === "runs") return html`<${Runs} ...${view} />`;
  if (name === "run" && rest.length) return html`<${Run} id=${rest[0]} key=${rest[0]} ...${view} />`;
  if (name === "compare") return html`<${Compare} ...${view} />`;
  if (name === "label") return html`<${Label} ...${view} />`;
  if (name === "subject" && rest.length > 1) return html`<${Subject} kind=${rest[0]} id=${rest.slice(1).join("/")} key=${rest.join("/")} ...${view} />`;
  return html`<h1>There is no such page</h1><p><a href=${place([])}>Go to the first page</a></p>`;
}

function State({ state }) {
  const [outcome, word] = STATES[state];
  return html`<span class=${`state ${outcome}`} role="status"><span class="lamp" aria-hidden="true"></span>${word}</span>`;
}

/** The served ledgers; nothing for a single ledger. */
function Ledgers() {
  const { document } = useAnswer("/ledgers");
  const ledgers = document?.data ?? [];
  const [now, setNow] = useState(chosen() ?? "");
  useEffect(() => {
    if (ledgers.length > 1 && chosen() === null) choose(ledgers[0].name); // addresses name the ledger then
  }, [ledgers.length]);
  if (ledgers.length < 2) return null;
  const pick = (event) => {
    setNow(event.currentTarget.value);
    choose(event.currentTarget.value);
    location.hash = place([], { ledger: event.currentTarget.value });
  };
  return html`<label class="pick">ledger <select value=${now || ledgers[0].name} onChange=${pick}>${ledgers.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select></label>`;
}

render(html`<${Dashboard} />`, document.getElementById("dashboard"));
