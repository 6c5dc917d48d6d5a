// Results of aggregates and comparisons: their words first, their figures as tables.
import { Prompts } from "../prompts.js";
import { html } from "../html.js";
import { at, Figure, Num, pValue } from "../figures.js";

const MOST = 30; // entries of a list or rows of a table that are shown
const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Num);
const ANSWERS = ["better", "worse", "no difference found", "cannot tell"];
const title = (key) => key.replaceAll("_", " ");

export function Findings({ name, found, path, folded = false, answers = {} }) {
  if (!isMap(found)) return html`<article class="card finding"><h3 dir="auto">${name}</h3><p>${value(found, path)}</p></article>`;
  const { words, sentences, ...figures } = found; // the sentences of a comparison are shown above its figures
  return html`<article class="card finding">
    <h3 dir="auto">${name}</h3>
    ${words && !sentences ? html`<p class="words" dir="auto">${words}</p>` : null}
    <${OtherAnswers} found=${found} answers=${answers} />
    ${folded ? html`${sentences ? null : html`<${Words} found=${found} />`}<details><summary>Figures</summary><${Members} found=${figures} path=${path} /></details>` : html`<${Members} found=${figures} path=${path} />`}
  </article>`;
}

/** The labels for which a test that ignores pairs has another answer than the first sentences, and the test that decides. */
function OtherAnswers({ found, answers }) {
  const tests = Object.entries(found.criteria ?? {}).filter(([name, test]) => answers[name] && isMap(test) && test.n_baseline !== undefined);
  const others = tests.filter(([name, test]) => { const word = String(test.words).split(":")[0]; return ANSWERS.includes(word) && word !== answers[name].answer; }).map(([name]) => name);
  return others.length ? html`<p class="note"><span dir="auto">${others.join(", ")}</span>: the answer of the first sentences decides, because they compare each subject with itself. This test ignores the pairs; it is for runs over different subjects.</p>` : null;
}

/** The words of each criterion, where its figures are folded. */
function Words({ found }) {
  const worded = Object.entries(found.criteria ?? found.categories ?? {}).filter(([, one]) => isMap(one) && one.words);
  return worded.slice(0, MOST).map(([name, one]) => html`<p class="words small" dir="auto"><strong>${name}</strong>: ${one.words}</p>`);
}

function Members({ found, path }) {
  const entries = Object.entries(found).filter(([, member]) => !(Array.isArray(member) && !member.length));
  const simple = entries.filter(([, member]) => !isMap(member) && !isTable(member));
  const nested = entries.filter(([, member]) => (isMap(member) && Object.keys(member).length) || isTable(member));
  return html`${simple.length ? html`<dl class="facts">${simple.map(([key, member]) => html`<div><dt dir="auto">${title(key)}</dt>
      <dd dir="auto">${value(member, at(path, key))}</dd></div>`)}</dl>` : null}
    ${nested.map(([key, member]) => html`<${Nested} key=${key} name=${key} found=${member} path=${at(path, key)} />`)}`;
}

const isTable = (member) => Array.isArray(member) && member.length > 0 && member.every(isMap);

function Nested({ name, found, path }) {
  const rows = Array.isArray(found)
    ? found.map((member, number) => [String(number + 1), member, at(path, number)])
    : Object.entries(found).map(([key, member]) => [key, member, at(path, key)]);
  if (!rows.every(([, member]) => isMap(member))) {
    return html`<div class="nested"><h4 dir="auto">${title(name)}</h4><${Members} found=${found} path=${path} /></div>`;
  }
  const words = rows.filter(([, member]) => member.words);
  const heads = [...new Set(rows.flatMap(([, member]) => Object.keys(member)))].filter(
    (head) => head !== "words" && rows.some(([, member]) => !isMap(member[head]) && !isTable(member[head]) && member[head] !== undefined),
  );
  const inside = rows.flatMap(([key, member, place]) =>
    Object.entries(member).filter(([, deep]) => (isMap(deep) && Object.keys(deep).length) || isTable(deep)).map(([head, deep]) => [key, head, deep, at(place, head)]));
  return html`<div class="nested"><h4 dir="auto">${title(name)}</h4>
    ${words.slice(0, MOST).map(([key, member]) => html`<p class="words" dir="auto">${Array.isArray(found) ? "" : html`<strong>${key}</strong>: `}${member.words}</p>`)}
    ${heads.length ? html`<div class="scroll" tabindex="0" role="group" aria-label=${title(name)}><table>
      <thead><tr>${Array.isArray(found) ? null : html`<th scope="col"><span class="hidden">name</span></th>`}${heads.map((head) => html`<th scope="col" class="num">${title(head)}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, MOST).map(([key, member, place]) => html`<tr>${Array.isArray(found) ? null : html`<th scope="row" dir="auto">${key}</th>`}${heads.map((head) =>
        html`<td class="num" dir="auto">${value(member[head], at(place, head))}</td>`)}</tr>`)}</tbody></table></div>` : null}
    ${rows.length > MOST ? html`<p class="small">the first ${MOST} of ${rows.length}; the run's document has all</p>` : null}
    ${inside.slice(0, MOST).map(([key, head, deep, place]) => html`<details><summary dir="auto">${Array.isArray(found) ? "" : `${key}: `}${title(head)}</summary>
      <${Nested} name=${head} found=${deep} path=${place} /></details>`)}
  </div>`;
}

function value(member, path) {
  if (member === null || member === undefined) return "–";
  if (member instanceof Num) return html`<${Figure} value=${member} path=${path} form=${path.endsWith("p_value") ? pValue : undefined} />`;
  if (typeof member === "boolean") return member ? "yes" : "no";
  if (Array.isArray(member)) {
    return html`${member.slice(0, MOST).map((each, number) => html`${number ? ", " : ""}${value(each, at(path, number))}`)}${member.length > MOST ? ` … (${member.length})` : ""}`;
  }
  if (isMap(member)) return html`${Object.entries(member).map(([key, each], number) => html`${number ? ", " : ""}${title(key)} ${value(each, at(path, key))}`)}`;
  return member;
}

export function Aggregates({ run }) {
  const found = Object.entries(run.document.aggregates ?? {});
  if (!found.length) return null;
  return html`<section aria-labelledby=${`aggregates-${run.key}`}>
    <h2 id=${`aggregates-${run.key}`}>Aggregates</h2>
    <div class="stack">${found.map(([name, one]) => html`<${Findings} name=${name} found=${one} path=${at(run.prefix, "aggregates", name)} />`)}</div>
  </section>`;
}

/** How many subjects only one of two runs has. */
const unpaired = (one) => Number(one.unpaired_a) + Number(one.unpaired_b);

/** How a run compares with its baseline: the sentence of each label, who passes in one run alone, and the figures. */
export function Comparison({ run, onFlips }) {
  const { comparison, baseline } = run.document;
  const compared = run.compared;
  const flips = run.flips;
  if (!comparison && !compared && !flips) {
    if (!baseline) return null;
    return html`<section><h2>Against the baseline</h2><p>compared with nothing: no run of ${run.document.name} has ended before this one
      (baseline: ${baseline.run})</p></section>`;
  }
  const found = Object.entries(compared ? compared.comparisons : comparison ?? {});
  const path = compared ? `${run.prefix}compare.comparisons` : at(run.prefix, "comparison");
  const differs = compared ? compared.faults ?? [] : baseline?.faults ?? (baseline?.differs ?? []).filter((section) => section !== "task");
  const sentences = (one) => one?.sentences ?? (one?.words ? [one.words] : []);
  const words = [...new Set([...sentences(compared), ...found.flatMap(([, one]) => sentences(one))])];
  const counts = Object.entries(flips?.passes ?? baseline?.passes ?? {});
  return html`<section aria-labelledby=${`baseline-${run.key}`}>
    <h2 id=${`baseline-${run.key}`}>Against the baseline</h2>
    <p class="lead">A is the baseline, run <code>${flips?.run_id ?? baseline?.run_id ?? compared.a.run_id}</code> (${flips?.name ?? baseline?.name ?? compared.a.name}); B is this run.
      Differences are B less A.</p>
    ${differs.length ? html`<p class="warnings">not comparable: ${differs.join(", ")}</p>` : null}
    ${words.map((text) => html`<p class="words" dir="auto">${text}</p>`)}
    <${Prompts} before=${run.baseline_prompts} after=${run.prompts} />
    ${counts.map(([label, one]) => flips && label === flips.label ? html`<div class="flips"><strong dir="auto">${label}</strong>
      <button type="button" class="chip pass" onClick=${() => onFlips("gained")}><${Figure} value=${one.b} /> pass in B alone</button>
      <button type="button" class="chip fail" onClick=${() => onFlips("lost")}><${Figure} value=${one.a} /> pass in A alone</button>
      <span class="small">of <${Figure} value=${one.known} /> subjects with an answer in both runs${Number(one.open) ? html`; <${Figure} value=${one.open} /> open` : null}${unpaired(one) ? html`; ${unpaired(one)} in one run only` : null}</span></div>`
    : html`<p class="words" dir="auto">${one.words}</p>`)}
    ${found.length ? html`<div class="stack">${found.map(([name, one]) => html`<${Findings} name=${name} found=${one} path=${at(path, name)} answers=${compared?.answers ?? baseline?.answers ?? {}} folded />`)}</div>` : null}
  </section>`;
}
