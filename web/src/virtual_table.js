// A table of any length: only the rows in sight are in the page. Arrow keys move, Enter opens, a head sorts.
import { html, useLayoutEffect, useRef, useState } from "./html.js";

const BESIDE = 4; // rows that are drawn above and below those in sight
const HEAD = 36; // height of the head
const TALLEST = 12_000_000; // pixels of the rows together; browsers cut taller elements. A longer table scrolls in steps of more pixels.

/**
 * `columns` are `{key, head, cell(row), sorts, className}`. There are `count` rows; `rowAt(place)` is one, null while it is read. Another `list` begins at its top. `sort` is
 * `{key, down}`; `onSort(key)` asks for another. `onOpen(row, place)` opens a row, `onRange(first, last)` names the rows in sight. All rows are `height` pixels high. The table begins at `start`: `top` in pixels, and the
 * place of the `row` that gets the focus.
 */
export function VirtualTable({ columns, count, rowAt, list, height, sort, onSort, onOpen, onRange = null, onTop = null, start = {}, label, template }) {
  const box = useRef(null);
  const [from, setFrom] = useState(0);
  const [shift, setShift] = useState(0); // pixels that rows are above their place in a table that is too tall
  const [room, setRoom] = useState(12);
  const [active, setActive] = useState(0);
  const focusing = useRef(null); // the place of a row that gets the focus once it is drawn
  const current = Math.min(active, Math.max(0, count - 1));

  useLayoutEffect(() => {
    const measure = () => setRoom(Math.ceil(box.current.clientHeight / height) || 12);
    measure();
    window.addEventListener("resize", measure);
    return () => window.removeEventListener("resize", measure);
  }, [height]);
  const tall = Math.min(count * height, TALLEST);
  const scaleOf = (element) => {
    const seen = element.clientHeight - HEAD;
    return count * height > tall ? (count * height - seen) / (tall - seen) : 1;
  };
  const look = (element) => {
    const scrolled = element.scrollTop * scaleOf(element);
    setFrom(Math.floor(scrolled / height));
    setShift(scrolled - element.scrollTop);
    return Math.floor(scrolled / height);
  };
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    const { top = 0, row = null } = isFirst.current ? start : {}; // a list that was left is shown where it was left
    isFirst.current = false;
    box.current.scrollTop = top;
    const seen = look(box.current);
    setActive(row ?? seen);
    focusing.current = [null, document.body, document.querySelector("main")].includes(document.activeElement) ? row : null;
  }, [list]);
  useLayoutEffect(() => {
    const row = focusing.current === null ? null : box.current.querySelector(`[data-place="${focusing.current}"]`);
    if (row === null) return;
    focusing.current = null;
    row.focus({ preventScroll: true });
  });

  const move = (place) => {
    const next = Math.max(0, Math.min(count - 1, place));
    const element = box.current;
    const [scale, above] = [scaleOf(element), next * height];
    const scrolled = element.scrollTop * scale;
    if (above < scrolled) element.scrollTop = above / scale;
    else if (above + height + HEAD > scrolled + element.clientHeight) element.scrollTop = (above + height + HEAD - element.clientHeight) / scale;
    look(element);
    focusing.current = next;
    setActive(next);
  };
  const keys = (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: room - 2, PageUp: 2 - room, Home: -count, End: count };
    if (event.target.getAttribute("role") !== "row") return;
    if (event.key in steps) move(current + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") open(current);
    else return;
    event.preventDefault();
  };
  const open = (place) => {
    const row = rowAt(place);
    if (row !== null) onOpen(row, place);
  };
  const first = Math.max(0, from - BESIDE);
  const last = Math.min(count, from + room + BESIDE);
  // The row that has the focus stays in the page, so that the keyboard does not lose its place.
  useLayoutEffect(() => onRange?.(first, last), [first, last, list]);
  const places = Array.from({ length: last - first }, (_, number) => first + number);
  if (count && (current < first || current >= last)) places.push(current);
  const direction = (column) => (sort.key !== column.key ? "none" : sort.down ? "descending" : "ascending");
  return html`<div class="virtual" role="grid" aria-label=${label} aria-rowcount=${count + 1} aria-colcount=${columns.length}
    ref=${box} onKeyDown=${keys} onScroll=${(event) => { look(event.currentTarget); onTop?.(event.currentTarget.scrollTop); }}
    style=${{ "--columns": template, "--content": `${tall + HEAD + 16}px` }}>
    <div class="virtual-head" role="row" aria-rowindex="1">
      ${columns.map((column) => html`<div role="columnheader" class=${column.className} aria-sort=${direction(column)}>
        ${column.sorts === false ? html`<span title=${column.title ?? column.head}>${column.head}</span>` : html`<button type="button"
          title=${`Sort by ${column.title ?? column.head}`} onClick=${() => onSort(column.key)}>
          <span>${column.head}</span><span class="arrow" aria-hidden="true">${{ none: "", ascending: "↑", descending: "↓" }[direction(column)]}</span></button>`}
      </div>`)}
    </div>
    <div class="virtual-body" role="rowgroup" style=${{ height: `${tall}px` }}>
      ${places.map((place) => html`<div class="virtual-row" role="row" key=${place} data-place=${place}
        aria-rowindex=${place + 2} tabindex=${place === current ? 0 : -1} style=${{ top: `${Math.max(0, Math.min(tall - height, place * height - shift))}px`, height: `${height}px` }}
        onClick=${() => { setActive(place); open(place); }} onFocus=${() => setActive(place)}>
        ${columns.map((column) => html`<div role="gridcell" class=${column.className}>${column.cell(rowAt(place))}</div>`)}
      </div>`)}
    </div>
  </div>`;
}
