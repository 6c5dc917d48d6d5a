// Charts over time: one dot for each day or run, and a line through them.
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { html } from "../html.js";

const WIDTH = 600;
const HEIGHT = 140;

/**
 * `points` are `{value, low, high, path, title, kind, href}` from the oldest to the newest, with values from 0 to 1; `cut` draws a line, and an interval from `low` to
 * `high` is a bar. Each dot has the token of its number, and its title says it.
 */
export function Course({ points, cut = null, label }) {
  const x = scaleLinear([0, Math.max(1, points.length - 1)], points.length > 1 ? [34, WIDTH - 12] : [WIDTH / 2, WIDTH - 12]);
  const y = scaleLinear([0, 1], [HEIGHT - 12, 12]);
  const drawn = points.map((point, number) => ({ ...point, number })).filter((point) => point.value !== null);
  const draw = line((point) => x(point.number), (point) => y(Number(point.value)));
  return html`<svg class="course" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label=${label}>
    ${[0, 0.5, 1].map((tick) => html`<line class="grid" x1="34" x2=${WIDTH - 8} y1=${y(tick)} y2=${y(tick)} /><text class="tick" x="30" y=${y(tick) + 4} text-anchor="end">${tick}</text>`)}
    ${cut === null ? null : html`<line class="cut" x1="34" x2=${WIDTH - 8} y1=${y(cut)} y2=${y(cut)} />`}
    ${drawn.filter((point) => point.low !== null && point.low !== undefined).map((point) => html`<line class="spread" x1=${x(point.number)} x2=${x(point.number)} y1=${y(Number(point.low))} y2=${y(Number(point.high))} />`)}
    <path class="curve" d=${draw(drawn)} />
    ${drawn.map((point) => html`<${Dot} point=${point} x=${x(point.number)} y=${y(Number(point.value))} />`)}
  </svg>`;
}

function Dot({ point, x, y }) {
  const dot = html`<circle class=${`dot ${point.kind ?? ""}`} cx=${x} cy=${y} r="5" data-value=${String(point.value)} data-path=${point.path}><title>${point.title}</title></circle>`;
  return point.href ? html`<a href=${point.href} aria-label=${point.title}>${dot}</a>` : dot;
}
