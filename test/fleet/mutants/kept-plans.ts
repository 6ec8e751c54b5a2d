/** For each deliberate bug the smallest plan that showed it. Seeds give other plans as the generator of plans changes. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plan } from '../../kit/fleet/plan.ts'
import type { FleetMutant } from './mutant.ts'

export const planFile = ({ name }: FleetMutant): string => join(import.meta.dirname, 'plans', `${name}.json`)

export function keptPlan(mutant: FleetMutant): Plan | undefined {
  const file = planFile(mutant)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Plan) : undefined
}
