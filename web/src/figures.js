// Numbers that keep the token they were written with, and how they are shown.
import { parse } from "lossless-json";
import { decimalText } from "./decimals.js";
import { html } from "./html.js";

/** A number with the very token of the JSON text that it came from. */
export class Num {
  constructor(token) {
    this.token = token;
    this.value = Number(token);
  }

  valueOf() {
    return this.value;
  }

  toString() {
    return this.token;
  }
}

/** JSON text with every number as a Num. */
export const readExactly = (text) => parse(text, null, (token) => new Num(token));

/** A column of numbers that was written as tokens between commas; a missing number is null. */
export const readColumn = (text, length) =>
  length === 0 ? [] : text.split(",").map((token) => (token === "" ? null : new Num(token)));

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const isCount = (value) => Number.isInteger(value);

/** A number for a reader: counts with commas, others with four significant places. */
export const plain = (value) => {
  const number = Number(value);
  if (isCount(number)) return grouped.format(number);
  if (Math.abs(number) >= 1000) return number.toLocaleString("en", { maximumFractionDigits: 1 });
  if (Math.abs(number) >= 0.001) return String(Number(decimalText(value, 3 - Number(number.toExponential().split("e")[1]))));
  return number.toExponential(2);
};

export const fixed = (digits) => (value) => decimalText(value, digits);
export const score = (value) => fixed(3)(value);
export const signed = (value) => `${Number(value) > 0 ? "+" : ""}${plain(value)}`;
/** A p-value with three digits; below .001 only that it is below, since a p-value is never 0. */
export const pValue = (value) => (Number(value) < 0.001 ? "< .001" : String(Number(Number(value).toPrecision(3))));
export const milliseconds = (value) => {
  const ms = Number(value);
  return ms >= 10000 ? `${(ms / 1000).toFixed(1)} s` : ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${plain(ms)} ms`;
};

/**
 * A number on the page. `data-value` is its token, `data-path` its place in the run's document; a number that the document does
 * not have, such as the count of a bar, has no path.
 */
export function Figure({ value, path, form = plain, unit = "", none = "–" }) {
  if (value === null || value === undefined) return html`<span class="none">${none}</span>`;
  const token = value instanceof Num ? value.token : String(value);
  return html`<data class="n" value=${token} data-value=${token} data-path=${path} title=${token}>${form(value)}${unit}</data>`;
}

const SIMPLE = /^[^.[\]"\s]+$/;

/** The path of a member: `score.mean`, `clauses[0]`, `metrics["a.b"]`. */
export const at = (path, ...keys) =>
  keys.reduce((whole, key) => {
    if (typeof key === "number") return `${whole}[${key}]`;
    const part = SIMPLE.test(key) ? key : `[${JSON.stringify(key)}]`;
    return whole === "" || part.startsWith("[") ? whole + part : whole.endsWith(".") ? whole + part : `${whole}.${part}`;
  }, path);
