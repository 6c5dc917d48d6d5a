// Charts as SVG: scales and lines are d3's; every bar has its number. They follow the theme, print, and need no canvas.
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { html } from "./html.js";
import { plain } from "./figures.js";

const WIDTH = 600;

/** How values are spread: one bar for each of equally wide bins from `low` to `high`, with a line at `cut`. */
export function Histogram({ bins, low = 0, high = 1, cut = null, label, height = 150 }) {
  const most = Math.max(1, ...bins.map(Number));
  const bottom = height - 22;
  const x = scaleLinear([Number(low), Number(high)], [0, WIDTH]);
  const y = scaleLinear([0, most], [bottom, 14]);
  const step = WIDTH / bins.length;
  const edge = (place) => plain(Number((x.invert(place * step)).toPrecision(4)));
  const last = bins.length - 1;  // the last bar holds values of high itself
  const failing = (place) => cut !== null && x.invert((place + 0.5) * step) < cut && !(place === last && cut <= Number(high));
  return html`<svg class="chart" viewBox=${`0 0 ${WIDTH} ${height}`} role="img" aria-label=${label} preserveAspectRatio="none">
    ${bins.map((count, place) => {
      const top = Number(count) === 0 ? bottom : Math.min(y(Number(count)), bottom - 2);
      return html`<rect class=${failing(place) ? "bar fail" : "bar"} x=${place * step + 1} y=${top} width=${step - 2}
        height=${bottom - top} rx="1.5" data-value=${String(count)}><title>${`${edge(place)} to ${edge(place + 1)}: ${plain(count)}`}</title></rect>`;
    })}
    <line class="axis" x1="0" x2=${WIDTH} y1=${bottom} y2=${bottom} />
    ${cut === null ? null : html`<line class="cut" x1=${x(cut)} x2=${x(cut)} y1="4" y2=${bottom} />`}
  </svg>`;
}

/** The ends of a chart's axis, as text that does not stretch with the chart. */
export function Axis({ low = 0, high = 1, middle = null }) {
  return html`<div class="axis-labels" aria-hidden="true"><span>${plain(low)}</span>
    ${middle === null ? null : html`<span>${middle}</span>`}<span>${plain(high)}</span></div>`;
}

/** A value in [low, high] with its interval, drawn as a dot on a bar. */
export function Interval({ value, from = null, to = null, low = 0, high = 1, cut = null, label }) {
  const x = scaleLinear([low, high], [5, 195]).clamp(true);
  return html`<svg class="interval" viewBox="0 0 200 20" preserveAspectRatio="xMinYMid meet" role="img" aria-label=${label}>
    <line class="axis" x1="5" x2="195" y1="10" y2="10" />
    ${cut === null ? null : html`<line class="cut" x1=${x(cut)} x2=${x(cut)} y1="2" y2="18" />`}
    ${from === null ? null : html`<rect class="range" x=${x(from)} y="2" width=${Math.max(2, x(to) - x(from))} height="16" rx="2" />`}
    ${value === null ? null : html`<circle class="dot" cx=${x(value)} cy="10" r="4" />`}
  </svg>`;
}

/** Shares of a whole as one bar; `parts` are `{name, count, kind}`. */
export function Shares({ parts, label }) {
  const total = parts.reduce((sum, part) => sum + Number(part.count), 0);
  let left = 0;
  return html`<svg class="shares" viewBox="0 0 600 12" role="img" aria-label=${label} preserveAspectRatio="none">
    ${parts.map((part) => {
      const width = total ? (600 * Number(part.count)) / total : 0;
      const x = left;
      left += width;
      return html`<rect class=${`share ${part.kind}`} x=${x} y="0" width=${Math.max(0, width - 1)} height="12">
        <title>${`${part.name}: ${plain(part.count)}`}</title></rect>`;
    })}
  </svg>`;
}

/** Confidence against the share that agrees with labels; `bins` are `{confidence, agree, n, ci_low, ci_high}`. */
export function Reliability({ bins, label }) {
  const x = scaleLinear([0, 1], [34, 296]);
  const y = scaleLinear([0, 1], [266, 8]);
  const most = Math.max(...bins.map((bin) => Number(bin.n)));
  const draw = line((bin) => x(Number(bin.confidence)), (bin) => y(Number(bin.agree)));
  return html`<svg class="reliability" viewBox="0 0 310 300" role="img" aria-label=${label}>
    <rect class="frame" x=${x(0)} y=${y(1)} width=${x(1) - x(0)} height=${y(0) - y(1)} />
    <line class="ideal" x1=${x(0)} y1=${y(0)} x2=${x(1)} y2=${y(1)} />
    ${[0, 0.5, 1].map((tick) => html`<text class="tick" x=${x(tick)} y="282" text-anchor="middle">${tick}</text>
      <text class="tick" x="28" y=${y(tick) + 4} text-anchor="end">${tick}</text>`)}
    <text class="tick" x="165" y="297" text-anchor="middle">confidence</text>
    <path class="curve" d=${draw(bins)} />
    ${bins.map((bin) => html`<line class="whisker" x1=${x(Number(bin.confidence))} x2=${x(Number(bin.confidence))}
        y1=${y(Number(bin.ci_low))} y2=${y(Number(bin.ci_high))} />
      <circle class="dot" cx=${x(Number(bin.confidence))} cy=${y(Number(bin.agree))} r=${3 + 4 * Math.sqrt(Number(bin.n) / most)}
        data-value=${String(bin.agree)}><title>${`confidence ${plain(bin.confidence)}: ${plain(bin.agree)} agree, of ${plain(bin.n)}`}</title></circle>`)}
  </svg>`;
}
