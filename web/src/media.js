// Images, sounds and files: a thumbnail that a click enlarges; anything else, and every address, is shown as its marker.
import { html, useState } from "./html.js";
import { plain } from "./figures.js";

const SHOWN = /^image\/(png|jpeg|gif|webp)$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const DRAWN = "img"; // its address is always a data URL; the page's text holds no tag that could load one
const KINDS = ["image", "audio", "file"];

/**
 * `items` are `{marker, name?, src?}`; `src` is a data URL of a picture, and null for other media. `unseen` is the result of `unseenOf`:
 * the labels that saw markers. `text` is the text above, whose markers are not repeated.
 */
export function Media({ items, unseen = [], text = null }) {
  if (!items?.length) return null;
  return html`<ul class="media">${items.map((item) => html`<${One} item=${item} unseen=${unseen.filter(({ counts }) => kindOf(item) in counts)} isNamed=${Boolean(text?.includes(item.marker))} />`)}</ul>`;
}

const kindOf = ({ marker }) => /^\[(image|audio)\b/.exec(marker)?.[1] ?? "file";

/**
 * The labels that saw markers in place of media: `{label, counts, whole}` with the numbers by kind. `found` are pairs of a label and its signals;
 * `items` are all media of the row, and `whole` are the kinds of which the label saw none.
 */
export function unseenOf(found, items) {
  const all = items.map(kindOf);
  return found.map(([label, signals]) => {
    const counts = hiddenIn(signals);
    return { label, counts, whole: Object.keys(counts).filter((kind) => Number(counts[kind]) >= all.filter((one) => one === kind).length) };
  }).filter(({ counts }) => Object.keys(counts).length);
}

/** Numbers with the names of the kinds, such as "2 images". */
export const listed = (counts) => Object.entries(counts).map(([kind, count]) => `${plain(count)} ${Number(count) === 1 ? kind : NAMES[kind] ?? kind}`).join(", ");

const NAMES = { image: "images", audio: "sounds", file: "files" };

/** The numbers of hidden media in a verdict's evidence, or in that of the judges that its signals list. */
function hiddenIn(signals) {
  const inside = Object.values(signals ?? {}).filter(Array.isArray).flat().map((each) => each?.evidence);
  return Object.assign({}, ...[signals?.evidence, ...inside].map((evidence) => evidence?.hidden ?? {}));
}

function One({ item, unseen, isNamed }) {
  const kind = kindOf(item);
  const notes = unseen.map(({ label, counts, whole }) => html`<span class="unseen small" dir="auto">${whole.includes(kind) ? `not shown to ${label}` : `${label} did not see ${listed({ [kind]: counts[kind] })} of this row`}</span>`);
  const [large, setLarge] = useState(false);
  const [broken, setBroken] = useState(false);
  const name = item.name ? html`<span class="name" dir="auto">${item.name}</span>` : null;
  const marker = isNamed ? null : html`<span dir="auto">${item.marker}</span>`;
  if (!item.src || broken) return name || marker || notes.length ? html`<li class="marker">${name}${marker}${notes}</li>` : null;
  return html`<li><button type="button" class=${large ? "picture large" : "picture"} aria-expanded=${large ? "true" : "false"} title=${large ? "Make it small" : "Enlarge it"} onClick=${() => setLarge(!large)}>
    <${DRAWN} ...${{ src: item.src, alt: item.marker, decoding: "async", onError: () => setBroken(true) }} /></button>${name}${marker === null ? null : html`<span class="soft small">${marker}</span>`}${notes}</li>`;
}

/** A JSON value with markers in place of its media, and the media. */
export function withoutMedia(value, name = null, found = []) {
  if (Array.isArray(value)) return [value.map((each) => withoutMedia(each, name, found)[0]), found];
  if (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype) return [value, found];
  const item = itemOf(value, name);
  if (item !== null) {
    found.push(item);
    return [item.marker, found];
  }
  return [Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutMedia(each, key, found)[0]])), found];
}

function itemOf(part, name) {
  const value = plainPart(part);
  if (!KINDS.includes(value.type) || typeof value.media_type !== "string") return null;
  if (typeof value.data !== "string" && typeof value.url !== "string" && typeof value.sha256 !== "string") return null;
  return { marker: markerOf(value), name, src: sourceOf(value) };
}

/** A part of a message, as OpenAI and Anthropic write it, in dicast's own form; any other value as it is. */
function plainPart(value) {
  const url = value.type === "image_url" || value.type === "input_image" ? value.image_url?.url ?? value.image_url : null;
  if (typeof url === "string") {
    const [, type, data] = /^data:([a-z]+\/[a-z+.-]+);base64,(.*)$/is.exec(url) ?? [];
    return data === undefined ? { type: "image", media_type: "image", url } : { type: "image", media_type: type.toLowerCase(), data, bytes: sizeOf(data) };
  }
  if (value.type === "image" && typeof value.source?.data === "string") return { ...value.source, type: "image", bytes: sizeOf(value.source.data) };
  return value;
}

const sizeOf = (data) => Math.floor(data.replace(/=+$/, "").length * 0.75);

function sourceOf({ media_type: type, data }) {
  return typeof data === "string" && SHOWN.test(type) && BASE64.test(data) ? `data:${type};base64,${data}` : null;
}

function markerOf(value) {
  const bytes = value.bytes === undefined ? null : Number(value.bytes);
  const size = bytes === null ? null : bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  return `[${[value.media_type, value.name, size ?? value.url].filter(Boolean).join(", ")}]`;
}
