/** The steps that an agent's log reports, each once. */
import type { StepEndFields, StepLine, StepOfLine } from '../../schemas/step-log.ts'

export type PastStep = StepOfLine & {
  readonly node: string
  readonly startedAt?: string | undefined
  readonly result: StepEndFields['result'] | 'running'
  readonly endedAt?: string | undefined
  readonly durationMs?: number | undefined
  readonly exitCode?: number | undefined
  readonly detail?: string | undefined
}

/** Oldest first. A step without a reported end is running. */
export function pastSteps(node: string, lines: readonly StepLine[]): readonly PastStep[] {
  const steps = new Map<string, PastStep>()
  for (const line of lines) {
    if (line.what === 'started') {
      const known = steps.get(line.of.stepId)
      if (known === undefined)
        steps.set(line.of.stepId, { node, ...line.of, startedAt: line.startedAt, result: 'running' })
    } else if (line.what === 'ended') steps.set(line.of.stepId, { node, ...line.of, ...line.end })
  }
  const orderOf = ({ startedAt, endedAt }: PastStep): string => startedAt ?? endedAt ?? ''
  return [...steps.values()].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : orderOf(a) > orderOf(b) ? 1 : 0))
}
