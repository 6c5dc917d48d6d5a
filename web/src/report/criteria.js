// The criteria in a run's document.

/** The mean of each criterion, with the keys of its place: of the gate, else of the first aggregate that has one. */
export function criteria(done) {
  const found = new Map();
  const put = (criterion, mean, ...keys) => found.has(criterion) || found.set(criterion, [criterion, mean, keys]);
  for (const [number, clause] of (done.gate?.clauses ?? []).entries()) {
    if (/^(min|max)_score$/.test(clause.rule)) put(clause.on, clause.value, "gate", "clauses", number, "value");
  }
  for (const [name, aggregate] of Object.entries(done.aggregates ?? {})) {
    if (!aggregate?.criteria || typeof aggregate.criteria !== "object" || Array.isArray(aggregate.criteria)) continue;
    for (const [criterion, one] of Object.entries(aggregate.criteria)) {
      if (one?.mean !== undefined) put(criterion, one.mean, "aggregates", name, "criteria", criterion, "mean");
    }
  }
  for (const label of ["metrics", ...Object.keys(done.metrics), ...Object.keys(done.judges)]) found.delete(label);
  return [...found.values()];
}
