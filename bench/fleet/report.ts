import { table } from '../../demo/screen.ts'
import { isMissed, rowsOf, type Row } from './goals.ts'
import type { FleetPlan } from './plan.ts'
import type { FleetResult } from './result.ts'

/** The figures as a table for people: beside the goals, the committed figures and the operator's. */
export function fleetReport(plan: FleetPlan, result: FleetResult, committed: FleetResult | undefined): string {
  const before = new Map((committed ? rowsOf(plan, committed) : []).map((row) => [row.name, row]))
  const heading = ['', 'FIGURE', 'MEASURED', 'COMMITTED', 'GOAL', 'OPERATOR']
  const rows = rowsOf(plan, result).map((row) => {
    const last = before.get(row.name)
    return [
      verdictOf(row),
      row.name,
      valueOf(row),
      last === undefined ? '' : valueOf(last),
      row.goal === undefined ? '' : `≤ ${row.goal}`,
      row.operator ?? '',
    ]
  })
  const { requestsByVerb, warnings } = result.rollout
  const parts = [
    table([heading, ...rows]).join('\n'),
    `requests per node: ${partsOf(requestsByVerb)}`,
    ...(result.restart ? [`after a restart: ${partsOf(result.restart.requestsByVerb)}`] : []),
    ...(Object.keys(warnings).length > 0 ? [`warnings of agents: ${partsOf(warnings)}`] : []),
  ]
  return parts.join('\n\n')
}

const verdictOf = (row: Row): string => {
  if (row.goal === undefined) return ''
  return isMissed(row) ? 'MISSED' : 'ok'
}

const valueOf = ({ value, unit }: Row): string =>
  `${Number.isInteger(value) ? value : Number(value.toFixed(2))} ${unit}`.trim()

const partsOf = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ')
