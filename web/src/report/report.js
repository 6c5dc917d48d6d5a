// The report of one run, or of several side by side.
import { decoded } from "../decoded.js";
import { html, render, useCallback, useEffect, useState } from "../html.js";
import { Figure } from "../figures.js";
import { ThemeToggle } from "../theme.js";
import { readReport, readRows, readTexts } from "./data.js";
import { Aggregates, Comparison } from "./findings.js";
import { Headline } from "./headline.js";
import { Costs, Labels } from "./labels.js";
import { Provenance } from "./provenance.js";
import { Rows } from "./rows.js";
import { Sides } from "./sides.js";
import { SubjectDrawer } from "./subject.js";
import { Trust } from "./trust.js";
import { Distribution } from "./distribution.js";

const LINK = "#row=";

function Report({ report }) {
  const [rows, setRows] = useState(null);
  const [whole, setWhole] = useState(false);
  const [broken, setBroken] = useState(null);
  const [chosen, choose] = useState(0);
  const [ask, setAsk] = useState(null);
  const [open, setOpen] = useState(location.hash);
  const [order, setOrder] = useState([]);
  const run = report.runs[chosen];

  useEffect(() => {
    const read = async () => {
      const found = await readRows(report);
      setRows(found);
      await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
      await readTexts(found);
      setWhole(true);
    };
    read().catch((error) => setBroken(String(error)));
    const moved = () => setOpen(location.hash);
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  const show = useCallback((subject, among) => {
    if (among) setOrder(among);
    location.hash = LINK + encodeURIComponent(subject.key);
  }, []);
  const close = useCallback(() => {
    history.replaceState(null, "", "#");
    setOpen("");
  }, []);
  const key = open.startsWith(LINK) ? decoded(open.slice(LINK.length)) : null;
  const subject = key === null || rows === null || !whole ? null : rows.subjects.find((one) => one.key === key) ?? null;
  const step = (by) => {
    const among = order.includes(subject) ? order : rows.subjects;
    const next = among[among.indexOf(subject) + by];
    if (next) show(next);
  };
  const flips = (flip) => {
    setAsk({ flip });
    document.getElementById("rows").scrollIntoView();
  };

  return html`<a class="skip" href="#rows">Skip to the rows</a>
    <header class="page-head"><div><p class="brand">dicast report</p><h1 dir="auto">${report.title}</h1>
      <p class="small">${report.runs.length > 1 ? html`<${Figure} value=${report.runs.length} /> runs` : html`run <code>${run.document.run_id}</code>, started ${when(run.started_at)}`}</p></div><${ThemeToggle} /></header>
    <main>
      ${report.runs.length > 1 ? html`<${Sides} runs=${report.runs} chosen=${chosen} onChoose=${choose} />
        <h2 class="of-run" dir="auto">${run.title} <span class="soft">run <code>${run.document.run_id}</code>, started ${when(run.started_at)}</span></h2>` : null}
      <${Headline} run=${run} key=${run.key} />
      <${Distribution} run=${run} />
      ${run.document.score ? null : html`<${Labels} run=${run} />`}
      <${Comparison} run=${run} onFlips=${flips} />
      <section id="rows" class="rows-section" aria-labelledby="rows-title" tabindex="-1"><h2 id="rows-title">Rows</h2>
        <${Sample} report=${report} />
        ${broken ? html`<p class="warnings" role="alert">The rows cannot be read: ${broken}</p>` : rows === null ? html`<p class="empty" role="status">Reading the rows …</p>`
          : html`<${Rows} report=${report} rows=${rows} whole=${whole} ask=${ask} onOpen=${show} />`}</section>
      ${run.document.score ? html`<${Labels} run=${run} />` : null}
      <${Trust} run=${run} />
      <${Aggregates} run=${run} />
      <${Costs} run=${run} />
      <${Provenance} run=${run} made=${report.made} />
    </main>
    ${subject ? html`<${SubjectDrawer} subject=${subject} report=${report} onClose=${close} onStep=${step} />` : null}`;
}

const when = (time) => (time ? `${time.slice(0, 10)} ${time.slice(11, 16)} UTC` : "");

/** A note on the shown rows, where the page does not have all. */
function Sample({ report }) {
  const cut = report.runs.filter((run) => Number(run.rows.shown) < Number(run.rows.total));
  const hidden = report.runs.some((run) => !run.rows.content);
  return html`${cut.map((run) => html`<p class="note">${report.runs.length > 1 ? `${run.title}: ` : ""}<${Figure} value=${run.rows.shown} /> of <${Figure} value=${run.rows.total} /> rows are in this page:${" "}
      <${Figure} value=${run.rows.unscored} /> without a score, the <${Figure} value=${run.rows.worst} /> with the lowest scores, and <${Figure} value=${run.rows.drawn} /> drawn at random from the others.
      All figures above and below the rows are of the whole run.</p>`)}
    ${hidden ? html`<p class="note">The content of the subjects is not in this page: it was left out, or the ledger does not store it.</p>` : null}`;
}

const report = readReport();
document.title = `${report.title} · dicast report`;
render(html`<${Report} report=${report} />`, document.getElementById("report"));
