/** No step succeeds twice, unless its agent has reported that it does not know how an attempt ended. */
import type { StepLine } from '../steps.ts'
import type { Evidence, Finding, Violation } from './evidence.ts'

const keyOf = ({ skyhook, package: name, version, mode, round }: StepLine): string =>
  `${mode} of ${name} ${version} for ${skyhook}, edit ${round}`

export function judgeStepsOnce({ steps, moments }: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  const unknown = new Map<string, number>()
  for (const { events } of moments.slice(-1)) {
    for (const { reason, involvedObject, count = 1 } of events.values()) {
      const node = involvedObject?.name ?? ''
      if (reason === 'StepOutcomeUnknown') unknown.set(node, (unknown.get(node) ?? 0) + count)
    }
  }
  for (const [node, lines] of steps) {
    const ends = new Map<string, StepLine[]>()
    for (const line of lines) {
      if (line.what !== 'ends' || line.package === 'service') continue
      ends.set(keyOf(line), [...(ends.get(keyOf(line)) ?? []), line])
    }
    let excused = unknown.get(node) ?? 0
    for (const [step, times] of ends) {
      checked++
      const repeated = times.length - 1
      const last = times.at(-1)
      if (repeated === 0 || !last) continue
      const open = Math.max(0, repeated - excused)
      excused -= repeated - open
      const moments = times.map(({ atMs }) => new Date(atMs).toISOString()).join(', ')
      if (open > 0) violations.push({ atMs: last.atMs, text: `${node} completed ${step} more than once: ${moments}` })
    }
  }
  return { checked, violations }
}
