/** Runs plans of simulated fleets with a deliberate bug, and on the sources as they are. */
import { join } from 'node:path'
import { createRunner, type Runner } from '../fleet/run/runner.ts'
import type { Plan } from '../kit/fleet/plan.ts'
import type { Violation } from '../kit/fleet/run-plan.ts'

/** One plan at a time. */
export type FleetRuns = {
  /** How the plan fails with the bug; undefined if it passes. */
  withBug(plan: Plan): Promise<Violation | undefined>
  withoutBug(plan: Plan): Promise<Violation | undefined>
}

/** A run of a small fleet takes a tenth of a second; with a bug it may be busy for many seconds, or never end. */
const maxRunMs = 40_000

/** Of the sources in `folder`, which stay as they are until it is closed. The process starts with the first run. */
export const openRunner = (folder: string, cacheFolder: string): Runner =>
  createRunner(join(folder, 'test/fleet/run/worker.ts'), { maxRunMs, cacheFolder })
