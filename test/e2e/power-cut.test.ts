/** The power fails during a step. Its progress is unknown, so that is reported and the step is repeated. */
import { expect, test } from 'vitest'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import {
  journaled,
  journalOf,
  releaseFileOf,
  manifest,
  onceEach,
  shellscript,
  publishedState,
  withoutTimes,
} from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const node = 'node-2'

test('a node completes after a power cut during a step and repeats only that step', async () => {
  const name = uniqueName('power')
  const host = cluster.host(node)
  await cluster.apply(
    manifest(name, {
      interruptionBudget: { count: 1 },
      packages: { work: shellscript(cluster.registry, journaled(name, 'config')) },
    }),
    node,
  )
  await host.awaitLine(journalOf(name), 'config begins')
  const [boot, slot] = [await host.bootId(), slotsOf(cluster.history.now, name)[0]?.uid]

  await cluster.sandbox.must(['crash', node])
  await cluster.sandbox.must(['start', node])
  expect(await host.bootId()).not.toBe(boot)

  await host.write(releaseFileOf(name), '')
  await cluster.history.eventually(
    'it is complete',
    ({ nodes }) => publishedState(nodes.get(node), name).status === 'complete',
    60_000,
  )
  expect(withoutTimes(await host.lines(journalOf(name)))).toEqual([
    ...onceEach('apply', 'apply_check'),
    'config begins', // then the power failed
    ...onceEach('config', 'config_check'),
  ])
  await cluster.history.eventually('an Event says that the outcome was unknown', ({ events }) =>
    [...events.values()].some(
      ({ reason, message }) =>
        reason === 'StepOutcomeUnknown' &&
        message?.includes(name) === true &&
        message.includes('config shellscript_run.sh'),
    ),
  )
  await cluster.history.eventually('the slot is released', (view) => slotsOf(view, name).length === 0)
  const slots = await cluster.history.values((view) => slotsOf(view, name)[0]?.uid)
  expect(slots.filter((uid) => uid !== undefined)).toEqual([slot]) // it was held all the time
})
