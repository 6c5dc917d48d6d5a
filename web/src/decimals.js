// Numbers as texts with few decimals, by the rule of dicast.toolkit.decimals: one number has one text in the terminal and in a browser.

const SIX = 6; // decimals to which a number is rounded first: a sum of floats differs from its decimal value in later ones
const FORM = /^(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

/** The integer `digits / 10 ** scale` times `10 ** places`, halves up. */
function scaled(digits, scale, places) {
  if (scale <= places) return digits * 10n ** BigInt(places - scale);
  const unit = 10n ** BigInt(scale - places);
  return (digits + unit / 2n) / unit;
}

/** A number with `places` decimals, at most six, times `10 ** shift`. Its shortest decimal form is rounded, halves away from 0. */
export function decimalText(value, places, shift = 0) {
  const found = FORM.exec(String(value));
  if (found === null) return String(value);
  const [, sign, whole, part = "", exponent = "0"] = found;
  const six = scaled(BigInt(whole + part), part.length - Number(exponent), SIX);
  const rounded = scaled(six, SIX - shift, places);
  const text = rounded.toString().padStart(places + 1, "0");
  const [before, after] = [text.slice(0, text.length - places), text.slice(text.length - places)];
  return `${rounded === 0n ? "" : sign}${before}${places === 0 ? "" : `.${after}`}`;
}
