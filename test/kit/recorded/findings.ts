/** How a campaign shows what its record says. */
import type { Note } from '../cluster/timeline.ts'
import type { Evidence, Finding } from './evidence.ts'

/** More are in the record. */
const maxShown = 8

/** One line for each promise, with its violations below it. */
export const linesOf = (findings: readonly Finding[]): readonly string[] => [
  `${'CHECK'.padEnd(66)} CHECKED  VIOLATED`,
  ...findings.flatMap(({ name, checked, violations }) => [
    `${name.padEnd(66)} ${String(checked).padStart(7)}  ${String(violations.length).padStart(8)}`,
    ...violations.slice(0, maxShown).map(({ atMs, text }) => `    ${new Date(atMs).toISOString()} ${text}`),
  ]),
]

/** What stands between the changes of a timeline: steps, requests about slots and Skyhooks, and broken promises. */
export const notesOf = (evidence: Evidence, findings: readonly Finding[]): readonly Note[] => [
  ...[...evidence.steps].flatMap(([node, lines]) =>
    lines.map(({ atMs, skyhook, package: name, version, mode, round, what }) => ({
      atMs,
      text: `step on ${node}: ${skyhook} ${name} ${version} ${mode} of edit ${round} ${what}`,
    })),
  ),
  ...evidence.audit
    .filter(({ resource, verb }) => verb !== 'watch' && (resource === 'leases' || resource === 'skyhooks'))
    .map(({ node, verb, uri, receivedMs, answeredMs: atMs, status }) => ({
      atMs,
      text: `${node} asks to ${verb} ${uri}: ${status} after ${atMs - receivedMs} ms`,
    })),
  ...findings.flatMap(({ name, violations }) =>
    violations.map(({ atMs, text }) => ({ atMs, text: `!!! ${name}: ${text}` })),
  ),
]
