/** `kubectl skyhook doctor --takeover` where NodeWright has been: it warns wherever agents start nothing. */
import { expect, test } from 'vitest'
import { takeoverReport } from '../../src/cli/doctor/takeover/report.ts'
import { known } from '../../src/stages/model/snapshot.ts'
import { readMoment } from '../kit/takeover/moments.ts'
import { takenOver, worlds } from './nodewright-worlds.ts'
import { factsOf } from '../kit/takeover/takeover-facts.ts'

/** What is only on hosts does not show in the API. */
const onHostsOnly: readonly string[] = ['D, its definitions and all keys deleted', 'A, all keys lost']

test.each(Object.entries(worlds))('doctor is as careful as agents in this world: %s', (name, worldOf) => {
  const { moment, isServed } = worldOf(readMoment('10b-admin-cordon-after-complete'))
  const objects = known(isServed ? moment.skyhooks.map(({ metadata }) => metadata.name) : [])
  const nodeWright = { isServed: known(isServed), objects, jobs: known([]) }
  const ids = takeoverReport({ ...factsOf(moment), nodeWright })
    .flatMap(({ findings }) => findings.map(({ id }) => id))
    .filter((id) => id.startsWith('nodewright'))
  expect(ids.length > 0).toBe(![...takenOver, ...onHostsOnly].includes(name))
})
