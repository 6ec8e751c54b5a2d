/**
 * How fast this machine is just now, by a piece of work that is always the same. Bounds of time are stated for a quiet
 * machine of two cores; a slower or busier one is measured with the same work beside, so a bound says the same there.
 */

/** Parsing and writing of JSON, as most of the tool's and of the agent's work is. */
const document = JSON.stringify(
  Array.from({ length: 4_000 }, (_, at) => ({
    name: `node-${at}`,
    labels: { pool: 'a', zone: `z${at % 3}` },
    annotations: { state: JSON.stringify({ at, stage: 'apply', text: 'x'.repeat(100) }) },
  })),
)
const rounds = 12
/** The best of many on the quiet machine that the bounds were stated for. */
const quietMs = 108

type Item = { readonly annotations: { readonly state: string } }

/** How many times longer the work takes than on the quiet machine; about 0.1 s of a processor. */
export function slowness(): number {
  const startMs = performance.now()
  for (let round = 0; round < rounds; round++) {
    const items = JSON.parse(document) as readonly Item[]
    for (const { annotations } of items) JSON.parse(annotations.state)
    JSON.stringify(items)
  }
  return (performance.now() - startMs) / quietMs
}

/** A bound of time, in ms, that is stated for the quiet machine, as it is on this one just now; never a stricter one. */
export function onThisMachine(quietBoundMs: number): number {
  return quietBoundMs * Math.max(1, slowness())
}
