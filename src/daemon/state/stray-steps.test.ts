import { afterEach, beforeEach, expect, test } from 'vitest'
import { connectSystemd, type SystemdConnection } from '../../../test/kit/host/systemd-connection.ts'
import { emptyJournal } from '../../schemas/journal.ts'
import type { Log } from '../telemetry/log.ts'
import { findStraySteps, type StraySteps } from './stray-steps.ts'

const id = '0123456789abcdef'
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

let systemd: SystemdConnection
let strays: StraySteps

beforeEach(() => {
  systemd = connectSystemd()
  strays = findStraySteps({
    systemd: systemd.units,
    connection: systemd.connection,
    journal: () => emptyJournal('n'),
    clock: systemd.clock,
    log: silent,
    wake: () => undefined,
  })
})
afterEach(() => strays.close())

const run = (unit: string): unknown => systemd.setUnit(unit, { activeState: 'activating', subState: 'start' })

test.each(['ecr-credential-provider', 'acr', 'gcp-v1-30'])(
  'a run of the credential provider %s that a dead agent left is not a step',
  async (provider) => {
    run(`skyhookd-credential-provider-${provider}-${id}.service`)
    await strays.find()
    expect([strays.reason(), strays.ids()]).toEqual([undefined, []])
  },
)

test.each([
  'tuned-apply-run.sh',
  'credential-provider-apply-run.sh',
  'credential-provider-ecr-post-interrupt-check-run.sh',
  'credential-provider-config-check-sub-run.sh',
])('the step %s of a package is one, whatever the name of the package', async (name) => {
  const unit = `skyhookd-${name}-${id}.service`
  run(unit)
  await strays.find()
  expect(strays.reason()).toContain(unit)
  expect(strays.ids()).toEqual([id])
})

test('a step that has ended is not a stray step', async () => {
  systemd.setUnit(`skyhookd-tuned-apply-run.sh-${id}.service`, { activeState: 'failed', subState: 'failed' })
  await strays.find()
  expect([strays.reason(), strays.ids()]).toEqual([undefined, []])
})
