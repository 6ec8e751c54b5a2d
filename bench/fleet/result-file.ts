/** The figures of measurements as they were committed last, in bench/results, and the new ones beside them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { FleetPlan } from './plan.ts'
import type { FleetResult } from './result.ts'

export type ResultFile = {
  readonly machine: { readonly cores: number; readonly load: number; readonly node: string }
  readonly plan: FleetPlan
  readonly result: FleetResult
}

const pathOf = (name: string, suffix = ''): string =>
  fileURLToPath(new URL(`../results/${name}${suffix}.json`, import.meta.url))

/** Undefined for a measurement that was never committed. */
export function readCommitted(name: string): ResultFile | undefined {
  const path = pathOf(name)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as ResultFile) : undefined
}

/** Writes `NAME.new.json`, which git ignores; with `isKept` the committed file itself. Returns its path. */
export function writeResult(plan: FleetPlan, result: FleetResult, { isKept }: { readonly isKept: boolean }): string {
  const path = pathOf(result.name, isKept ? '' : '.new')
  const machine = { cores: cpus().length, load: Number((loadavg()[0] ?? 0).toFixed(1)), node: process.version }
  const file: ResultFile = { machine, plan, result }
  writeFileSync(path, `${JSON.stringify(file, null, 2)}\n`)
  return path
}
