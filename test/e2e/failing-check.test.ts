/** A failing check: anyone can see why, the slot stays, and a corrected Skyhook is all it needs. */
import { describe, expect, test } from 'vitest'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { journalOf, manifest, shellscript, publishedState, withoutTimes } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const node = 'node-1'
const name = uniqueName('check')
const now = () => publishedState(cluster.history.now.nodes.get(node), name)

const log = (line: string): string => `echo "$(date +%s.%N) ${line}" >>${journalOf(name)}`
const scripts = {
  apply: log('apply'),
  apply_check: `${log('check')}\necho 'vm.swappiness is 60, wanted 10' >&2\nexit 4`,
}

describe('a check that fails', () => {
  test('a failed check appears on the Node with its exit code and log, state, conditions and restarts', async () => {
    await cluster.apply(manifest(name, { packages: { limits: shellscript(cluster.registry, scripts) } }), node)
    await cluster.history.eventually(
      'the check failed',
      ({ nodes }) => publishedState(nodes.get(node), name).reason?.reason === 'CheckFailed',
    )
    expect(now()).toMatchObject({
      status: 'erroring',
      label: 'erroring',
      notReady: 'True Incomplete',
      erroring: 'True Package(s) Erroring or Unknown',
      state: { 'limits|1.1.0': { stage: 'apply', state: 'erroring', restarts: 1 } },
      reason: {
        message: expect.stringMatching(
          /limits 1\.1\.0: apply-check shellscript_run\.sh exited 4, expected 0: .*vm\.swappiness is 60, wanted 10/,
        ) as string,
        since: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      },
    })
  })

  test('a failed check appears in an Event on the Node', async () => {
    await cluster.history.eventually('an Event reports it', ({ events }) =>
      [...events.values()].some(
        ({ involvedObject, type, reason, message }) =>
          involvedObject?.name === node &&
          type === 'Warning' &&
          reason === 'CheckFailed' &&
          message?.includes(name) === true &&
          message.includes('vm.swappiness is 60'),
      ),
    )
  })

  test('a failed check repeats its stage from the first step, and after three failures the slot stays and says so', async () => {
    await cluster.history.eventually(
      'the slot says failed',
      (view) => slotsOf(view, name)[0]?.phase === 'failed',
      30_000,
    )
    expect(withoutTimes(await cluster.host(node).lines(journalOf(name)))).toEqual([
      'apply',
      'check',
      'apply',
      'check',
      'apply',
      'check',
    ])
    expect(now().state['limits|1.1.0']?.restarts).toBe(3)
    const times = (await cluster.host(node).lines(journalOf(name)))
      .filter((line) => line.endsWith('apply'))
      .map((line) => Number.parseFloat(line))
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(4) // 5 s less a fifth
    expect((times[2] ?? 0) - (times[1] ?? 0)).toBeGreaterThan(8)
  })

  test('a corrected Skyhook completes at once after a failed check and releases its slot', async () => {
    const held = slotsOf(cluster.history.now, name)[0]?.uid
    const corrected = shellscript(cluster.registry, { ...scripts, apply_check: log('corrected check') })
    await cluster.edit(name, { packages: { limits: corrected } })
    await cluster.history.eventually(
      'it is complete',
      ({ nodes }) => publishedState(nodes.get(node), name).status === 'complete',
      5_000,
    )
    await cluster.history.eventually('the slot is released', (view) => slotsOf(view, name).length === 0)
    expect(now()).toMatchObject({
      erroring: 'False Not Erroring',
      reason: undefined,
      state: { 'limits|1.1.0': { stage: 'config', state: 'complete' } },
    })
    expect(withoutTimes(await cluster.host(node).lines(journalOf(name))).slice(-2)).toEqual([
      'apply',
      'corrected check',
    ])
    const slots = await cluster.history.values((view) => slotsOf(view, name)[0]?.uid)
    expect(slots.filter((uid) => uid !== undefined)).toEqual([held]) // one slot from the first step to the end
  })
})
