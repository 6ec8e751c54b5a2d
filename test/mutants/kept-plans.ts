/** For each deliberate bug the smallest plan that showed it. Seeds give other plans as the generator of plans changes. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plan } from '../kit/fleet/plan.ts'
import type { FleetCatch } from './mutant.ts'

const fileOf = ({ plan }: FleetCatch): string => join(import.meta.dirname, 'plans', `${plan}.json`)

export function keptPlan(by: FleetCatch): Plan | undefined {
  const file = fileOf(by)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Plan) : undefined
}

export const keepPlan = (by: FleetCatch, plan: Plan): void =>
  writeFileSync(fileOf(by), `${JSON.stringify(plan, undefined, 1)}\n`)
