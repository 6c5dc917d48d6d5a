// Data that came compressed inside the page: gzip, then base64, in a block of text.

/** Resolves when the whole page has come. */
export const loaded = () =>
  document.readyState === "loading" ? new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true })) : Promise.resolve();

/** The JSON in the element `id`. */
export async function unpack(id) {
  const bytes = decoded(document.getElementById(id).textContent);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function decoded(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text); // browsers of before 2025
  const bytes = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place++) bytes[place] = raw.charCodeAt(place);
  return bytes;
}
