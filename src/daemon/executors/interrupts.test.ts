import { beforeEach, describe, expect, test } from 'vitest'
import { viewOf } from '../../../test/kit/objects/plan-builder.ts'
import { createHostFiles, type HostFiles } from '../../../test/kit/files/host-files.ts'
import { settingsOf } from '../../../test/kit/objects/sample-settings.ts'
import { connectSystemd, type SystemdConnection } from '../../../test/kit/host/systemd-connection.ts'
import { BusError } from '../../host/dbus/errors.ts'
import { ApiError, NoResponseError } from '../../kube/errors.ts'
import { sleep } from '../../schemas/clock.ts'
import { emptyJournal } from '../../schemas/journal.ts'
import type { InterruptRun } from '../../schemas/package-record.ts'
import { serviceUnit } from '../../schemas/systemd.ts'
import type { Pod } from '../../stages/model/pods.ts'
import { newPackage } from '../../stages/model/transitions.ts'
import type { InterruptObservation, SkyhookView } from '../../stages/model/snapshot.ts'
import { createLog } from '../telemetry/log.ts'
import { createInterrupter, type Interrupter } from './interrupts.ts'

const view = viewOf({})

let systemd: SystemdConnection
/** The invocation of a.service before all restarts. */
let before: string
let files: HostFiles
let pods: Pod[]
let listPods: () => Promise<readonly Pod[]>
let isSlotHeld: boolean
let isSingleNode: boolean
let counts: number
let reports: string[]
let interrupter: Interrupter

beforeEach(() => {
  systemd = connectSystemd()
  files = createHostFiles(systemd.clock)
  for (const name of ['a.service', 'kubelet.service', 'systemd-sysctl.service']) addService(name)
  before = systemd.simulated.systemd.get('a.service')?.invocationId ?? ''
  pods = []
  listPods = async () => pods
  isSlotHeld = true
  isSingleNode = false
  counts = 0
  reports = []
  interrupter = start()
})

const addService = (name: string): void =>
  systemd.simulated.systemd.addService(name, { restart: () => ({ durationMs: 10, result: 'done' }) })

function start(): Interrupter {
  return createInterrupter({
    root: files.root,
    units: systemd.units,
    connection: systemd.connection,
    settings: { ...settingsOf('n', '/'), copyDirRoot: '/data/skyhook' }, // the agent's own records stay in place
    journal: () => emptyJournal('n-uid'),
    nodeCounter: {
      async count() {
        counts++
        return await Promise.resolve({ isSingle: isSingleNode, atMs: 0 })
      },
    },
    evictedOwners: () => new Map(),
    pods: { listNow: async () => await listPods() },
    slots: {
      report: async (skyhookUid, phase) => {
        reports.push(`${skyhookUid} ${phase}`)
        return isSlotHeld
      },
    },
    clock: systemd.clock,
    log: createLog('silent', {}),
    signal: new AbortController().signal,
  })
}

const progressPath = '/var/lib/skyhook/.agent/interrupts/x.json'
const progress = (): unknown => JSON.parse(files.read(progressPath))
const putProgress = (value: object): void =>
  files.write(progressPath, JSON.stringify({ v: 1, bootId: 'boot', before: {}, ...value }))
const runOf = (interrupt: InterruptRun['interrupt'], change: Partial<InterruptRun> = {}): InterruptRun => ({
  id: 'x',
  interrupt,
  owners: ['p|1.0.0'],
  bootId: 'boot',
  startedAtMs: 0,
  ...change,
})
async function interrupt(run: InterruptRun, of = view): Promise<InterruptObservation | undefined> {
  await systemd.settled(interrupter.interrupt({ do: 'interrupt', key: 'k', run, view: of }), 1_000)
  return interrupter.current().get(run.id)
}
const restarts = (): unknown[] =>
  systemd.calls.filter(({ member }) => member === 'RestartUnit').map(({ body }) => body[0])
const reboots = (): number => systemd.calls.filter(({ member }) => member === 'RebootWithFlags').length

test('an interrupt that needs nothing is done and leaves no progress', async () => {
  expect(await interrupt(runOf({ type: 'noop' }))).toEqual({ state: 'done' })
  expect([files.exists(progressPath), reports]).toEqual([false, ['s-uid interrupting']])
})

test('a service is restarted after its invocation is on the disk', async () => {
  expect(await interrupt(runOf({ type: 'service', services: ['a'] }))).toEqual({ state: 'done' })
  expect([restarts(), progress()]).toEqual([['a.service'], { v: 1, bootId: 'boot', before: { 'a.service': before } }])
  expect(systemd.calledMembers()).toContain('Reload')
})

describe('a daemon-reload that takes long', () => {
  const run = runOf({ type: 'service', services: ['a'] })
  const reloads = (): number => systemd.calledMembers().filter((member) => member === 'Reload').length

  test('a daemon-reload that takes a minute is followed by one restart', async () => {
    const { clock } = systemd
    systemd.answers('Reload', (_, carryOut) => sleep(clock, 60_000).then(carryOut))
    const outcome = interrupter.interrupt({ do: 'interrupt', key: 'k', run, view })
    await clock.advance(59_999)
    expect(restarts()).toEqual([])
    expect(interrupter.current().get(run.id)).toEqual({ state: 'running', reloadSinceMs: clock.steadyMs() - 59_999 })
    await systemd.settled(outcome, 1_000)
    expect(interrupter.current().get(run.id)).toEqual({ state: 'done' })
    expect([restarts(), reloads()]).toEqual([['a.service'], 1])
  })

  test('a daemon-reload that takes longer than the agent waits is not requested again', async () => {
    systemd.answers('Reload', 'silent')
    const outcome = interrupter.interrupt({ do: 'interrupt', key: 'k', run, view })
    await expect(systemd.settled(outcome, 180_000)).rejects.toThrow('Reload: no answer within 180000 ms')
    expect(interrupter.current().get(run.id)).toBeUndefined()
    expect(await interrupt(run)).toEqual({ state: 'done' })
    expect([restarts(), reloads()]).toEqual([['a.service'], 1])
  })
})

test.each(['kubelet', 'k3s-agent', 'rke2-server', 'containerd.service'])(
  'a restart of %s is part of the outcome',
  async (service) => {
    addService(serviceUnit(service))
    expect(await interrupt(runOf({ type: 'service', services: [service] }))).toEqual({
      state: 'done',
      restartedRuntime: true,
    })
  },
)

test('a restart of all services reads the kernel settings again and nothing else', async () => {
  expect(await interrupt(runOf({ type: 'restartAllServices' }))).toEqual({ state: 'done' })
  expect(restarts()).toEqual(['systemd-sysctl.service'])
})

test('a service that another agent restarted already is not restarted again', async () => {
  putProgress({ before: { 'a.service': 'f'.repeat(32) } })
  expect(await interrupt(runOf({ type: 'service', services: ['a'] }))).toEqual({ state: 'done' })
  expect([restarts(), reports]).toEqual([[], []])
})

test('a restart that another agent left out is preceded by a look at the pods and the slot', async () => {
  putProgress({ before: { 'a.service': before } })
  isSlotHeld = false
  expect(await interrupt(runOf({ type: 'service', services: ['a'] }))).toMatchObject({ state: 'aborted' })
  expect(restarts()).toEqual([])
})

test('a service that does not come up fails with where its host says why', async () => {
  systemd.simulated.systemd.addService('b.service', { restart: () => ({ durationMs: 10, result: 'failed' }) })
  expect(await interrupt(runOf({ type: 'service', services: ['b'] }))).toMatchObject({
    state: 'failed',
    message: expect.stringMatching(/^b\.service: .*job failed.*: run journalctl -u b\.service on the host$/) as string,
  })
})

test('a service that is not on the host fails with the remedy, and the others are restarted', async () => {
  expect(await interrupt(runOf({ type: 'service', services: ['none', 'a'] }))).toEqual({
    state: 'failed',
    message: expect.stringMatching(/^none\.service: .*correct the services/) as string,
    services: ['none'],
  })
  expect(restarts()).toContain('a.service')
})

describe('what systemd, the host or the API server refuse', () => {
  const services = runOf({ type: 'service', services: ['a', 'cron*'] })

  test('a name that is not a unit fails its own service, and the others are restarted', async () => {
    systemd.answers('ListUnitsByNames', ({ body }, carryOut) => {
      const [names] = body as [string[]]
      if (!names.includes('cron*.service')) return carryOut()
      const text = 'Unit name cron*.service is neither a valid invocation ID nor unit name.'
      throw new BusError('org.freedesktop.DBus.Error.InvalidArgs', text)
    })
    expect(await interrupt(services)).toEqual({
      state: 'failed',
      message: expect.stringMatching(/^cron\*\.service: Unit name .*: correct the services/) as string,
      services: ['cron*'],
    })
    expect(restarts()).toEqual(['a.service'])
  })

  test.each(['Reload', 'ListUnitsByNames'])('an interrupt ends as failed where %s is refused', async (member) => {
    systemd.refuses(member, 'org.freedesktop.DBus.Error.AccessDenied', 'Permission denied')
    expect(await interrupt(services)).toMatchObject({ state: 'failed', message: expect.stringContaining('denied') })
  })

  test.each([
    ['ApiRequestRefused', new ApiError({ status: 403, reason: 'Forbidden', message: 'pods are forbidden' })],
    ['HostUnusable', Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' })],
  ] as const)('an interrupt ends as failed, with the reason %s', async (reason, error) => {
    listPods = async () => await Promise.reject(error)
    expect(await interrupt(services)).toMatchObject({ state: 'failed', reason, services: ['a', 'cron*'] })
    expect(restarts()).toEqual([])
  })

  test('an interrupt that an API server does not answer has no end yet, and continues later', async () => {
    listPods = async () => await Promise.reject(new NoResponseError('no answer', { mayHaveBeenSent: true }))
    await expect(interrupt(runOf({ type: 'service', services: ['a'] }))).rejects.toThrow('no answer')
    expect(interrupter.current().size).toBe(0)
    listPods = async () => []
    expect(await interrupt(runOf({ type: 'service', services: ['a'] }))).toEqual({ state: 'done' })
  })

  test('a mistake of the program rejects, and ends the interrupt all the same', async () => {
    listPods = async () => await Promise.reject(new TypeError('undefined is not a function'))
    await expect(interrupt(services)).rejects.toThrow(TypeError)
    expect(interrupter.current().get('x')).toMatchObject({ state: 'failed', reason: 'InternalError' })
  })

  test('an interrupt that nobody wants any more ends as aborted where its progress cannot be read', async () => {
    files.write(progressPath, '{')
    expect(await interrupt(runOf({ type: 'reboot' }, { abandoned: true }))).toMatchObject({ state: 'aborted' })
    expect(reboots()).toBe(0)
  })
})

test('a pod on the node postpones the interrupt', async () => {
  pods = [{ metadata: { namespace: 'd', name: 'p', uid: 'p-uid' }, spec: {}, status: { phase: 'Running' } }] as never
  expect(await interrupt(runOf({ type: 'reboot' }))).toEqual({ state: 'aborted', why: 'pod d/p is on the node' })
  expect([reboots(), reports, files.exists(progressPath)]).toEqual([0, [], false])
})

test('nodes are counted right before an interrupt, and only where the spec asks for it', async () => {
  pods = [{ metadata: { namespace: 'd', name: 'p', uid: 'p-uid' }, spec: {}, status: { phase: 'Running' } }] as never
  isSingleNode = true
  expect(await interrupt(runOf({ type: 'reboot' }))).toMatchObject({ state: 'aborted' })
  expect(counts).toBe(0)
  const skipping: SkyhookView = { ...view, spec: { ...view.spec, drain: { singleNode: 'skip' } } }
  isSingleNode = false
  interrupter = start()
  expect(await interrupt(runOf({ type: 'reboot' }), skipping)).toMatchObject({ state: 'aborted' })
  expect([counts, reboots()]).toEqual([1, 0])
  isSingleNode = true
  interrupter = start()
  await interrupt(runOf({ type: 'reboot' }), skipping)
  expect([counts, reboots()]).toEqual([2, 1])
})

test('a lost slot postpones the interrupt', async () => {
  isSlotHeld = false
  expect(await interrupt(runOf({ type: 'reboot' }))).toMatchObject({ state: 'aborted' })
  expect([reboots(), reports]).toEqual([0, ['s-uid rebooting']])
})

test('a canceled interrupt does not start', async () => {
  expect(await interrupt(runOf({ type: 'reboot' }, { abandoned: true }))).toMatchObject({ state: 'aborted' })
  expect(reboots()).toBe(0)
})

test('a reboot is on the disk before it is requested, and its outcome is unknown', async () => {
  let progressAtRequest: unknown
  systemd.answers('RebootWithFlags', () => {
    progressAtRequest = progress()
    return undefined
  })
  expect(await interrupt(runOf({ type: 'reboot' }))).toMatchObject({ state: 'unknown' })
  expect([reboots(), progressAtRequest]).toEqual([1, { v: 1, bootId: 'boot', asked: true, before: {} }])
})

test('a reboot that was requested before is not requested again', async () => {
  putProgress({ asked: true })
  expect(await interrupt(runOf({ type: 'reboot' }))).toMatchObject({ state: 'unknown' })
  expect(reboots()).toBe(0)
})

test('a reboot that was requested asks at each look whether the host is shutting down', async () => {
  systemd.simulated.logind.setFate('lost')
  const run = runOf({ type: 'reboot' })
  await interrupt(run)
  expect(await interrupt(run)).toMatchObject({ state: 'unknown', shutdown: { progress: 'none' } })
  systemd.simulated.reboot()
  expect(await interrupt(run)).toMatchObject({ shutdown: { progress: 'under-way' } })
  const first = interrupter.current().get(run.id)
  const second = await interrupt(run)
  expect(second).toMatchObject({ shutdown: { sinceMs: sinceOf(first) } })
  systemd.refuses('Get', 'org.freedesktop.DBus.Error.NoReply')
  expect(await interrupt(run)).toMatchObject({ state: 'unknown', shutdown: { progress: 'no-answer' } })
  expect(reboots()).toBe(1)
})
const sinceOf = (observation: InterruptObservation | undefined): number | undefined =>
  observation?.state === 'unknown' ? observation.shutdown?.sinceMs : undefined

test('a reboot that somebody blocks is refused', async () => {
  systemd.simulated.logind.setInhibitors([{ who: 'apt', why: 'upgrade runs' }])
  expect(await interrupt(runOf({ type: 'reboot' }))).toMatchObject({ state: 'refused' })
  expect(await interrupt(runOf({ type: 'reboot' }))).toMatchObject({ state: 'refused' }) // until it is on record
  expect(reboots()).toBe(0)
})

test('an outcome stands until it is on record', async () => {
  const run = runOf({ type: 'service', services: ['a'] })
  await interrupt(run)
  await interrupt(run)
  expect(restarts()).toHaveLength(1)
  await interrupter.record({ do: 'recordInterrupt', key: 'k', skyhook: 's', run, records: [] })
  expect([interrupter.current().size, files.exists(progressPath)]).toEqual([0, false])
})

test('each command of an interrupt has a log where the operator has it, and what failed is in the log of its errors', async () => {
  const run = runOf({ type: 'service', services: ['a', 'none'], alsoRestartAllServices: true })
  await interrupt(run)
  const failure = { reason: 'StepFailed', message: 'none.service: not found' } as const
  const progress = { state: 'retrying', stage: 'interrupt', retryAtMs: 1, failure } as const
  const record = { ...newPackage('p', { version: '1.0.0', image: 'r/p' }, 'apply'), progress }
  await interrupter.record({ do: 'recordInterrupt', key: 'k', skyhook: 's', run, records: [record] })
  const logs = '/var/log/skyhook/s/p/1.0.0/interrupts'
  const contents = files
    .list(logs)
    .toSorted()
    .map((file) => [file.replace(/-\d{4}-\d\d-\d\d-\d{6}/, ''), files.read(`${logs}/${file}`)])
  expect(Object.fromEntries(contents.filter(([, text]) => text !== ''))).toEqual({
    'restart_all_services_0.log': 'systemctl restart systemd-sysctl.service\n',
    'service_restart_0.log': 'systemctl daemon-reload\n',
    'service_restart_1.log': 'systemctl restart a\n',
    'service_restart_2.log': 'systemctl restart none\n',
    'service_restart_2.log.err': 'none.service: not found\n',
  })
})

test('an interrupt that was put off has no log', async () => {
  isSlotHeld = false
  const run = runOf({ type: 'reboot' })
  await interrupt(run)
  const record = newPackage('p', { version: '1.0.0', image: 'r/p' }, 'apply')
  await interrupter.record({ do: 'recordInterrupt', key: 'k', skyhook: 's', run, records: [record] })
  expect(files.exists('/var/log/skyhook')).toBe(false)
})
