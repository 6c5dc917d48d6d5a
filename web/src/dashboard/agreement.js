// How far two judges, or a judge and people, agree, in all and day by day, within a window that is chosen here.
import { html, useEffect, useState } from "../html.js";
import { Figure, plain, score } from "../figures.js";
import { Id } from "../id.js";
import { address, useAnswer } from "./api.js";
import { Course } from "./course.js";
import { People } from "./label/people.js";
import { Answer, Tile } from "./parts.js";
import { alter, ofSubject, place } from "./router.js";

const ASKED = 50; // subjects that are furthest apart, of which the first are shown
const SHOWN = 5;
const CUT = 0.5; // the least passing score of `dicast agreement`
const PEOPLE = "*"; // the key of all people together, which no judge's name has

/** `gateLabel` is the label of the last gate, null without one, undefined until the runs are read. */
export function Agreement({ gateLabel, later, kind, judges, tick, query, mayLabel }) {
  const found = (judges.document?.data ?? []).filter((one) => one.subject_kind === kind);
  const names = [...new Set(found.map((one) => one.judge))];
  const [one, two] = pair(found, names, query, gateLabel);
  const isPooled = two === PEOPLE;
  const window_ = within(query.window);
  const asked = { judge: isPooled ? one : [one, two], subject_kind: kind, window: window_ };
  const enough = one !== null && two !== null && kind !== null && gateLabel !== undefined;
  useEffect(() => {
    if (enough && (query.one !== one || query.two !== two)) alter({ one, two }); // later runs do not change the pair then
  }, [enough, one, two, query.one, query.two]);
  const whole = useAnswer(enough && !later ? address("/analytics/agreement", { ...asked, gold: isPooled ? "people" : null, worst: ASKED }) : null, tick);
  const days = useAnswer(enough && !isPooled && !later ? address("/analytics/agreement/days", asked) : null, tick);
  return html`<${Tile} title="Agreement" id="agreement">${gateLabel === undefined ? html`<p class="empty" role="status">Reading …</p>` : !enough ? html`<p class="empty">Only one judge has judged these: there is nothing to compare. <a href=${place(["label"])}>Give verdicts of your own</a> to see how far you can trust it.</p>` : html`
    <div class="picks"><${Pick} word="of" names=${names} value=${one} name="one" /><${Pick} word="and" names=${names} value=${two} name="two" others=${found.some(hasLabels) ? [[PEOPLE, "people, all together"]] : []} /></div>
    <${Answer} answer=${whole}>${(document) => html`${isPooled ? html`<p class="head"><span class="big"><${Figure} value=${document.pass_agreement.agree} path=${whole.at("pass_agreement.agree")} form=${plain} /></span>
        <span class="soft"> of <${Figure} value=${document.pass_agreement.n} path=${whole.at("pass_agreement.n")} form=${plain} /> subjects pass or fail alike; <${Figure} value=${document.within} path=${whole.at("within")} form=${score} none="–" /> of them have scores within <${Figure} value=${document.window} path=${whole.at("window")} /></span></p>`
        : html`<p class="head"><span class="big"><${Figure} value=${document.within} path=${whole.at("within")} form=${score} none="–" /></span>
        <span class="soft"> of <${Figure} value=${document.n} path=${whole.at("n")} /> subjects within <${Figure} value=${document.window} path=${whole.at("window")} />; <${Figure} value=${document.pass_agreement.agree} path=${whole.at("pass_agreement.agree")} form=${plain} /> pass or fail alike</span></p>`}
      <${Slider} value=${window_} />
      ${isPooled ? null : html`<${Over} days=${days} />`}
      <p class="soft">alpha <${Figure} value=${document.alpha} path=${whole.at("alpha")} form=${score} />${document.alpha_ci === null ? null : html` (95 % interval <${Figure} value=${document.alpha_ci[0]} path=${whole.at("alpha_ci[0]")} form=${score} /> to <${Figure} value=${document.alpha_ci[1]} path=${whole.at("alpha_ci[1]")} form=${score} />)`},
        ${" "}kappa <${Figure} value=${document.kappa} path=${whole.at("kappa")} form=${score} />. At 1 they agree always, at 0 as often as by chance.</p>
      ${document.people ? html`<${Pooled} document=${document} at=${whole.at} />` : null}
      <${Cautions} document=${document} />
      <${Worst} document=${document} at=${whole.at} />`}</${Answer}>
    ${found.some(hasLabels) ? html`<${People} tick=${tick} onDecide=${mayLabel ? () => { location.hash = place(["label"], { queue: "differ" }); } : null} />` : null}
    ${mayLabel ? html`<p><a href=${place(["label"])}>Give verdicts of your own</a></p>` : null}`}</${Tile}>`;
}

/** Whether people have labeled subjects of a judge. */
const hasLabels = (judge) => Number(judge.labeled) > 0;

const FEW = 10; // fewer subjects are too few for a conclusion
const TENTATIVE = 0.667; // the least alpha of a conclusion (Krippendorff, Content Analysis, 2004, 11.4.4)

/** The cautions of `dicast agreement`. */
function Cautions({ document }) {
  const { n, alpha, different_content: different, several_contents: several } = document;
  const cautions = [
    ...(Number(n) < FEW ? [`${plain(n)} subjects are too few for a conclusion`] : alpha !== null && Number(alpha) < TENTATIVE ? ["alpha is too little to rely on"] : []),
    ...(Number(different) ? [`different content: ${plain(different)} subjects have verdicts on other contents, which are not compared`] : []),
    ...(Number(several) ? [`${plain(several)} of the compared subjects were also read with another input or output: check in their runs that the verdicts are about the same one`] : [])];
  return cautions.length ? html`<ul class="warnings">${cautions.map((text) => html`<li>${text}</li>`)}</ul>` : null;
}

/** The judges to compare: the chosen ones, else the judge of the gate's label first; else all people together with the judge of most verdicts, else a person with it, else the two judges of most verdicts. */
function pair(found, names, query, gateLabel) {
  const persons = found.filter((one) => one.judge_kind === "human").map((one) => one.judge);
  const first = names.includes(query.one) ? query.one : names.includes(gateLabel) ? gateLabel : (names.find((name) => !persons.includes(name)) ?? names[0] ?? null);
  const others = names.filter((name) => name !== first);
  const isLabeled = !persons.includes(first) && found.some((one) => one.judge === first && hasLabels(one));
  const second = others.includes(query.two) || query.two === PEOPLE ? query.two : isLabeled ? PEOPLE : (others.find((name) => persons.includes(name)) ?? others[0] ?? null);
  return [first, second];
}

const within = (text) => (text !== undefined && Number(text) >= 0 && Number(text) <= 1 ? String(Number(text)) : "0.15");

/** The labels of people that were compared, and the rule by which they were put together. */
function Pooled({ document, at }) {
  const { people } = document;
  const count = (name) => html`<${Figure} value=${people[name]} path=${at(`people.${name}`)} form=${plain} />`;
  return html`<p class="small">Labels: ${Object.entries(people.labellers).map(([name, n], number) => html`${number ? ", " : ""}<span dir="auto">${name}</span> <${Figure} value=${n} path=${at(`people.labellers[${JSON.stringify(name)}]`)} form=${plain} />`)}. Labeled outputs: ${count("equal")} with equal labels, ${count("majority")} by majority, ${count("adjudicated")} decided, ${count("ties")} left out.</p>
    <p class="fine">For each output: ${people.rule}.</p>`;
}

function Pick({ word, names, value, name, others = [] }) {
  return html`<label class="pick">${word} <select value=${value} onChange=${(event) => alter({ [name]: event.currentTarget.value })}>${others.map(([key, text]) => html`<option value=${key}>${text}</option>`)}${names.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>`;
}

function Slider({ value }) {
  const [moved, move] = useState(null);
  const now = moved ?? value;
  return html`<label class="slider"><span>window ${Number(now).toFixed(2)}</span><input type="range" min="0" max="0.5" step="0.01" value=${now}
    onInput=${(event) => move(event.currentTarget.value)} onChange=${(event) => { alter({ window: event.currentTarget.value }); move(null); }} /></label>`;
}

function Over({ days }) {
  if (days.error || !days.document || days.document.data.length === 0) return null;
  return html`<${Course} form=${score} label="Agreement by day" points=${days.document.data.map((one, number) => ({ value: one.within, path: days.at(`data[${number}].within`), title: `${one.day}: ${score(one.within)} of ${one.n}` }))} />
    <div class="ends"><span>${days.document.data[0].day}</span>${days.document.data.length > 1 ? html`<span>${days.document.data.at(-1).day}</span>` : null}</div>`;
}

function Worst({ document, at }) {
  if (document.worst.length === 0) return null;
  const differ = (one) => { const sides = Object.values(one.scores).map((value) => Number(value) >= CUT); return sides.includes(true) && sides.includes(false); };
  const listed = document.worst.map((one, number) => [one, number]).sort(([one], [other]) => differ(other) - differ(one)).slice(0, SHOWN);
  return html`<details><summary>Furthest apart</summary><ol class="lines">${listed.map(([one, number]) => html`<li><a class="line" href=${ofSubject(one.subject_kind, one.subject_id)}>
    <${Id} id=${one.subject_id} className="line-id" />${Object.entries(one.scores).map(([judge, value]) => html`<span class="soft"><span dir="auto">${judge}</span> <${Figure} value=${value} path=${at(`worst[${number}].scores[${JSON.stringify(judge)}]`)} form=${score} /></span>`)}</a></li>`)}</ol></details>`;
}
