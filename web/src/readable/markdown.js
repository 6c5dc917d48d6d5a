// Markdown as elements: headings, paragraphs, lists, tables, quotes, code. Links, images and HTML remain text, so that nothing is loaded or run.
import { html } from "../html.js";

const FENCE = /^ {0,3}(```+|~~~+)\s*([^`\s]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^ {0,3}([-*_])( *\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ALIGNMENT = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEP = 12; // levels of quotes and lists

/** Whether a text looks like Markdown: it has a heading, a list, a table, a fence, bold text or inline code. */
export const isMarkdown = (text) => /^ {0,3}#{1,6}\s|^ {0,3}([-*+]|\d+[.)])\s.+\n {0,3}([-*+]|\d+[.)])\s|^ {0,3}(```|~~~)|\*\*[^*\n]+\*\*|`[^`\n]+`|^\s*\|.*\|\s*\n\s*\|?\s*:?-+/m.test(text);

export function Markdown({ text }) {
  return html`<div class="markdown" dir="auto">${blocks(text.replaceAll("\r\n", "\n").split("\n"), 0)}</div>`;
}

function blocks(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const [block, next] = depth > DEEP ? [html`<pre>${lines.join("\n")}</pre>`, lines.length] : blockAt(lines, at, depth);
    if (block !== null) found.push(block);
    at = next;
  }
  return found;
}

/** The block that begins at a line, and the line after it. */
function blockAt(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return [html`<p class=${`heading level-${heading[1].length}`}>${inline(heading[2])}</p>`, at + 1];
  if (RULE.test(line)) return [html`<hr />`, at + 1];
  if (QUOTE.test(line)) return quoted(lines, at, depth);
  if (ITEM.test(line)) return listed(lines, at, depth);
  if (line.includes("|") && ALIGNMENT.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) return tabled(lines, at);
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !FENCE.test(lines[end]) && !HEADING.test(lines[end]) && !QUOTE.test(lines[end]) && !ITEM.test(lines[end])) end += 1;
  return [html`<p>${inline(lines.slice(at, end).join("\n"))}</p>`, end];
}

function fenced(lines, at, [, mark, language]) {
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(mark)) end += 1;
  return [html`<${Code} text=${lines.slice(at + 1, end).join("\n")} language=${language} />`, end + 1];
}

export function Code({ text, language = "" }) {
  return html`<pre class="code" tabindex="0" aria-label=${language ? `Code, ${language}` : "Code"}><code>${text}</code></pre>`;
}

function quoted(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  return [html`<blockquote>${blocks(lines.slice(at, end).map((line) => QUOTE.exec(line)[1]), depth + 1)}</blockquote>`, end];
}

function listed(lines, at, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const isOrdered = /\d/.test(mark);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    const deeper = /^ */.exec(lines[end])[0].length > indent.length;
    if (item && item[1].length <= indent.length && /\d/.test(item[2]) === isOrdered) items.push([item[3]]);
    else if (deeper) items.at(-1).push(lines[end].slice(Math.min(indent.length + mark.length + 1, /^ */.exec(lines[end])[0].length)));
    else if (!lines[end].trim() && (ITEM.test(lines[end + 1] ?? "") || /^ /.test(lines[end + 1] ?? ""))) items.at(-1).push("");
    else break;
    end += 1;
  }
  const drawn = items.map((item) => html`<li>${item.length === 1 ? inline(item[0]) : blocks(item, depth + 1)}</li>`);
  return [isOrdered ? html`<ol start=${parseInt(mark, 10)}>${drawn}</ol>` : html`<ul>${drawn}</ul>`, end];
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

function tabled(lines, at) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  const head = cells(lines[at]);
  return [html`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr>${head.map((cell) => html`<th scope="col">${inline(cell)}</th>`)}</tr></thead>
    <tbody>${lines.slice(at + 2, end).map((line) => html`<tr>${cells(line).map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`)}</tbody></table></div>`, end];
}

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(\S(?:[^*\n]*?\S)?)\*\*|(?<![\w*])\*(\S(?:[^*\n]*?\S)?)\*(?![\w*])|(?<!\w)_(\S(?:[^_\n]*?\S)?)_(?!\w)/g;

/** Code, bold and italic text in a line. */
function inline(text) {
  const found = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    found.push(text.slice(from, match.index));
    const [whole, , code, bold] = match;
    const italic = match[4] ?? match[5];
    found.push(code !== undefined ? html`<code>${code}</code>` : bold !== undefined ? html`<strong>${bold}</strong>` : html`<em>${italic}</em>`);
    from = match.index + whole.length;
  }
  return [...found, text.slice(from)];
}
