/** A part of an address without its escapes; the part itself where they are broken. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
