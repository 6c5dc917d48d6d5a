// Charts over time: one dot for each day or run, and a line through them.
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { plain } from "../figures.js";
import { html } from "../html.js";

const WIDTH = 600;
const HEIGHT = 140;
const LEFT = 52; // pixels of the numbers on the axis
const TARGET = 48; // width and height of the area of a dot that opens its run: 24 pixels in a chart of 300
const NAMED = 10; // points that have their values beside them

/**
 * `points` are `{value, low, high, path, title, kind, href}` from the oldest to the newest, with values from 0 to 1; `cut` draws a line, `isWhole` asks for a scale from 0 to 1, `form` writes a value and `axis` one of the axis, and an interval from `low` to
 * `high` is a bar. Each dot has the token of its number, and its title says it.
 */
export function Course({ points, cut = null, label, isWhole = false, form = plain, axis = plain }) {
  const x = scaleLinear([0, Math.max(1, points.length - 1)], points.length > 1 ? [LEFT + 10, WIDTH - 20] : [WIDTH / 2, WIDTH - 20]);
  const y = heights(points, cut, isWhole);
  const drawn = points.map((point, number) => ({ ...point, number })).filter((point) => point.value !== null);
  const draw = line((point) => x(point.number), (point) => y(Number(point.value)));
  return html`<svg class="course" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label=${label}>
    ${y.ticks(3).map((tick) => html`<line class="grid" x1=${LEFT} x2=${WIDTH - 8} y1=${y(tick)} y2=${y(tick)} /><text class="tick" x=${LEFT - 4} y=${y(tick) + 4} text-anchor="end">${axis(tick)}</text>`)}
    ${cut === null ? null : html`<line class="cut" x1=${LEFT} x2=${WIDTH - 8} y1=${y(cut)} y2=${y(cut)} />`}
    ${drawn.filter((point) => point.low !== null && point.low !== undefined).map((point) => html`<line class="spread" x1=${x(point.number)} x2=${x(point.number)} y1=${y(Number(point.low))} y2=${y(Number(point.high))} />`)}
    <path class="curve" d=${draw(drawn)} />
    ${drawn.map((point) => html`<${Dot} point=${point} x=${x(point.number)} y=${y(Number(point.value))} width=${Math.min(TARGET, x(1) - x(0))} />`)}
    ${drawn.length > NAMED ? null : drawn.map((point) => html`<text class="tick" x=${x(point.number)} y=${Math.max(10, y(Number(point.value)) - 9)} text-anchor="middle" aria-hidden="true">${form(point.value)}</text>`)}
  </svg>`;
}

/** The scale of the values: about the values, their intervals and the line; from 0 to 1 where they span much of it, or for a reader who asks. */
function heights(points, cut, isWhole) {
  const values = [...points.flatMap((point) => [point.value, point.low, point.high]), cut].filter((value) => value !== null && value !== undefined).map(Number);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const whole = isWhole || values.length === 0 || most - least > 0.5;
  const pad = Math.max(0.005, (most - least) * 0.1);
  const domain = whole ? [0, 1] : scaleLinear([Math.max(0, least - pad), Math.min(1, most + pad)], [0, 1]).nice(3).domain();
  return scaleLinear(domain, [HEIGHT - 12, 16]);
}

function Dot({ point, x, y, width }) {
  const dot = html`<circle class=${`dot ${point.kind ?? ""}`} cx=${x} cy=${y} r="5" data-value=${String(point.value)} data-path=${point.path}><title>${point.title}</title></circle>`;
  return point.href ? html`<a href=${point.href} aria-label=${point.title}><rect class="hit" x=${x - width / 2} y=${y - TARGET / 2} width=${width} height=${TARGET} />${dot}</a>` : dot;
}
