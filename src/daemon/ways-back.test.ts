/**
 * If an executor fails, the Node has a reason, and an edit of the spec is the way back: for every call of every port,
 * every error and every phase of the work. Each case is the whole agent on a simulated host. From its first try on, one
 * call is rejected for as long as the case lasts. Then the package is removed from the spec, and the node must release
 * cordon and slot, although the call would still be rejected.
 */
import { describe, expect, test } from 'vitest'
import { type PortCall, rejectingPlatform } from '../../test/kit/host/rejecting-platform.ts'
import { type SampleLife, startSampleLife } from '../../test/kit/host/sample-life.ts'
import { isThorough } from '../../test/kit/effort.ts'
import { BusError, NoReplyError, NotConnectedError } from '../host/dbus/errors.ts'
import type { HostRoot } from '../host/fs/host-root.ts'
import type { Units } from '../host/systemd/units.ts'
import { ApiError, NoResponseError } from '../kube/errors.ts'
import type { KubeTransport } from '../kube/transport.ts'
import { ImageError } from '../packages/oci/errors.ts'
import type { ImageStore } from '../packages/store/image-store.ts'
import type { Interrupt, PackageSpec } from '../schemas/skyhook.ts'
import { runAgent } from './agent.ts'
import type { createEvictor } from './executors/evictions.ts'
import type { InterruptPorts } from './executors/interrupts.ts'
import type { PreparerPorts } from './executors/prepare.ts'
import type { RecordPorts } from './executors/steps/record.ts'
import type { StepPorts } from './executors/steps/run.ts'
import type { SlotManagerOptions } from './slots/slot-manager.ts'

/**
 * The methods of the ports that everything goes through. `rejected`: some case calls it. Otherwise the text is the
 * reason why none does. A new method, or a new port of an executor, does not compile without its row.
 */
type Rows<Port> = { readonly [Method in keyof Port]: 'rejected' | `not ${string}` }

const rootRows: Rows<HostRoot> = {
  resolve: 'not used by executors',
  realPath: 'not used by executors',
  readFile: 'rejected',
  readText: 'rejected',
  readPart: 'not used unless a step fails',
  readFrom: 'rejected',
  sha256: 'not used without a root_dir',
  newTemporaryToken: 'not asynchronous',
  replaceBytes: 'not used unless a log is too long',
  writeFileDurable: 'rejected',
  writeFile: 'rejected',
  createFile: 'rejected',
  copyFileDurable: 'not used without a root_dir',
  readLink: 'rejected',
  replaceLink: 'rejected',
  link: 'not used by executors',
  rename: 'not used by executors',
  mkdirp: 'rejected',
  makeFolder: 'not used by executors',
  makeUniqueFolder: 'rejected',
  remove: 'rejected',
  removeEmptyFolder: 'not used without a root_dir',
  readdir: 'rejected',
  list: 'rejected',
  readTree: 'not used by executors',
  describeTree: 'rejected',
  copyTree: 'rejected',
  syncTree: 'rejected',
  syncFolder: 'not used without a root_dir',
  stat: 'rejected',
  lstat: 'rejected',
}

/** By the D-Bus members that they call. */
const unitRows: { readonly [Method in keyof Units]: readonly string[] | `not ${string}` } = {
  startTransient: ['StartTransientUnit'],
  readSnapshot: ['GetAll'],
  readState: ['ListUnitsByNames', 'Get'],
  listLive: 'not used by executors while nothing is left of an earlier agent',
  restart: ['RestartUnit'],
  stop: 'not used before the edit',
  ref: ['RefUnit'],
  unref: ['UnrefUnit'],
  resetFailed: ['ResetFailedUnit'],
  reload: ['Reload'],
  version: 'not used for plain values',
  onJobEnd: 'not a call',
  onInterrupted: 'not a call',
}

const storeRows: Rows<ImageStore> = {
  ensureImage: 'rejected',
  checkImage: 'not used where the node is among the next',
  isPresent: 'not used without a digest',
  collect: 'rejected',
}

const apiRows: Rows<KubeTransport> = {
  json: 'rejected',
  stream: 'not used by executors: sources follow objects',
  close: 'not a request',
}

/** What each port of an executor uses. `memory`: it has the data, and cannot reject. */
type Leaf = PortCall['port'] | 'memory'
type Leaves<Ports> = { readonly [Port in keyof Required<Ports>]: Leaf | readonly Leaf[] }
const memory = 'memory'

export const executorPorts: {
  readonly prepare: Leaves<PreparerPorts>
  readonly steps: Leaves<StepPorts>
  readonly records: Leaves<RecordPorts>
  readonly interrupts: Leaves<InterruptPorts>
  readonly evictions: Leaves<Parameters<typeof createEvictor>[0]>
  readonly slots: Leaves<SlotManagerOptions>
} = {
  prepare: {
    platform: ['root', 'store'],
    settings: memory,
    references: 'api',
    signal: memory,
    whyUnfit: 'root',
    units: 'bus',
  },
  steps: {
    root: 'root',
    units: 'bus',
    connection: 'bus',
    hostSource: 'root',
    node: memory,
    journal: memory,
    settings: memory,
    references: 'api',
    contentOf: memory,
    failures: memory,
    metrics: memory,
    clock: memory,
    log: memory,
    wake: memory,
  },
  records: {
    host: ['root', 'bus'],
    folders: memory,
    journal: memory,
    attempts: memory,
    output: 'root',
    endedSteps: 'root',
    contentOf: memory,
    clock: memory,
    metrics: memory,
    log: memory,
  },
  interrupts: {
    root: 'root',
    units: 'bus',
    connection: 'bus',
    settings: memory,
    journal: memory,
    nodeCounter: 'api',
    evictedOwners: memory,
    pods: 'api',
    slots: 'api',
    clock: memory,
    log: memory,
    signal: memory,
  },
  evictions: {
    transport: 'api',
    clock: memory,
    random: memory,
    log: memory,
    signal: memory,
    mayDelete: memory,
    onDeleted: memory,
    onEnded: memory,
  },
  slots: {
    leases: 'api',
    ownSlots: 'api',
    node: memory,
    bootId: memory,
    skyhooks: memory,
    journal: memory,
    line: 'api',
    runtimeRequiredTaint: memory,
    defaultBudget: memory,
    clock: memory,
    random: memory,
    log: memory,
    uncountedSince: memory,
    signal: memory,
    onReleased: memory,
    onAcquired: memory,
  },
}

const errno = (code: string) => (): Error => Object.assign(new Error(`${code}: a file says no`), { code })
const refusal = (status: number) => (): Error =>
  new ApiError({ status, reason: 'Refused', message: `status ${status}`, request: 'a request' })
const busError = (name: string) => (): Error => new BusError(`org.freedesktop.${name}`, `systemd says ${name}`)
const imageError = (code: ConstructorParameters<typeof ImageError>[0]) => (): Error => new ImageError(code, code)
/** An unforeseen error. */
const mistake = (): Error => new TypeError('undefined is not a function')

/** One error of each kind that a port can reject with. */
const kindsOfErrors: { readonly [Port in PortCall['port']]: Readonly<Record<string, () => Error>> } = {
  root: {
    EACCES: errno('EACCES'),
    EIO: errno('EIO'),
    ENOSPC: errno('ENOSPC'),
    ENAMETOOLONG: errno('ENAMETOOLONG'),
    damaged: () => new SyntaxError('Unexpected end of JSON input'),
    mistake,
  },
  bus: {
    AccessDenied: busError('DBus.Error.AccessDenied'),
    InvalidArgs: busError('DBus.Error.InvalidArgs'),
    LoadFailed: busError('systemd1.LoadFailed'),
    NoReply: busError('DBus.Error.NoReply'),
    silent: () => new NoReplyError('timeout', 'no answer within 25000 ms'),
    away: () => new NotConnectedError('no system bus for 10000 ms'),
    mistake,
  },
  api: {
    403: refusal(403),
    413: refusal(413),
    422: refusal(422),
    429: refusal(429),
    500: refusal(500),
    silent: () => new NoResponseError('no answer within 30 s', { mayHaveBeenSent: true }),
    mistake,
  },
  store: {
    'not-found': imageError('not-found'),
    denied: imageError('denied'),
    unreachable: imageError('unreachable'),
    'bad-image': imageError('bad-image'),
    ENOSPC: errno('ENOSPC'),
    mistake,
  },
}

/**
 * Without these calls nothing can be released, regardless of the spec. They succeed again from the edit on: reads of
 * it, writes of the journal, patches of the Node, the deletion of the Lease, the observation of a running step, and the
 * creation of files on the host.
 */
const neededToGiveBack: readonly RegExp[] = [
  /^root \w+ \/var\/lib\/skyhook\/\.agent\/?(journal.*|results\/#)?$/,
  /^root \w+ \/(var\/lib|var\/log|run)\/skyhook(\/\.agent)?(\/\.preflight)?$/,
  /^api (GET|PATCH) \/api\/v#\/nodes\/n#/,
  /^api (GET|PUT|PATCH|DELETE) \/apis\/coordination/,
  /^bus \w+ .*step/,
]
/** A Node that cannot be written cannot show the reason: the log, the metrics and an Event do. */
const reasonsAreWrittenBy = /^api PATCH \/api\/v#\/nodes\/n#/
/** Not a port of an executor: nothing is known about a Skyhook before it was read. */
const ofSources = /^api GET \/apis\/skyhook/

const inputs: Pick<PackageSpec, 'env' | 'configMap'> = {
  env: [
    { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'keys', key: 'token' } } },
    { name: 'SITE', valueFrom: { configMapKeyRef: { name: 'sites', key: 'site' } } },
  ],
  configMap: { 'a.conf': 'a' },
}
const packageWith = (interrupt: Interrupt): Readonly<Record<string, PackageSpec>> => ({
  tuned: { version: '1.0.0', image: 'registry.test/tuned', uninstall: { enabled: false }, interrupt, ...inputs },
})
const works = {
  services: packageWith({ type: 'service', services: ['web', 'db'] }),
  reboot: packageWith({ type: 'reboot' }),
}
type Work = keyof typeof works

/** The progress of the work in the words of an administrator. */
type Phase = 'before' | 'steps' | 'interrupt' | 'after'

function phaseOf(life: SampleLife): Phase {
  const steps = life.steps()
  if (steps.includes('tuned post-interrupt')) return 'after'
  const isInterruptDue = life.events.some((one) => one.event === 'stepEnded' && one.step.mode === 'config-check')
  if (isInterruptDue) return 'interrupt'
  return steps.length > 0 ? 'steps' : 'before'
}

const nameOf = ({ port, method, target }: PortCall): string => `${port} ${method} ${target}`

type Case = { readonly work: Work; readonly phase: Phase; readonly call: PortCall; readonly kind: string }
const titleOf = ({ work, phase, call, kind }: Case): string => `${work}, ${phase}: ${nameOf(call)} rejects with ${kind}`

type Watched = SampleLife & { readonly phase: () => Phase }

/** `onCall` is called for every call of the agent after its sync. */
async function startLife(work: Work, onCall: (call: PortCall, phase: Phase) => Error | undefined): Promise<Watched> {
  let agents = 0
  const life: SampleLife = await startSampleLife({
    seed: 1,
    isKept: false,
    runStep: () => ({ durationMs: 200 }),
    bootMs: () => 2_000,
    async run(settings, platform) {
      const count = ++agents
      return await runAgent(
        settings,
        rejectingPlatform(platform, (call) => (isSynced(count) ? onCall(call, phaseOf(life)) : undefined)),
      )
    },
  })
  /** Executors do none of the work before that. */
  const isSynced = (count: number): boolean => life.lines.filter(({ message }) => message === 'synced').length >= count
  const { host, admin, server, clock } = life
  for (const name of ['web.service', 'db.service'])
    host.systemd.addService(name, { restart: () => ({ durationMs: 200, result: 'done' }) })
  const folder = '/api/v1/namespaces/skyhook'
  await admin.json('POST', `${folder}/secrets`, { body: { metadata: { name: 'keys' }, data: { token: 'dA==' } } })
  await admin.json('POST', `${folder}/configmaps`, { body: { metadata: { name: 'sites' }, data: { site: 'a' } } })
  await life.until(() => life.node() !== undefined)
  await admin.json('POST', `${folder}/pods`, {
    body: { metadata: { name: 'busy' }, spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'none' }] } },
  })
  const endPods = (): void => {
    for (const { metadata } of server.objects('pods'))
      if (metadata.deletionTimestamp !== undefined)
        void admin
          .json('DELETE', `${folder}/pods/${metadata.name}`, { body: { gracePeriodSeconds: 0 } })
          .catch(() => undefined)
    clock.startTimer(500, endPods)
  }
  endPods()
  life.setKept(true)
  await life.until(() => isSynced(1))
  await life.apply(works[work])
  return { ...life, phase: () => phaseOf(life) }
}

const slotsOf = ({ server }: SampleLife): string[] =>
  server.objects('leases').flatMap(({ metadata: { name } }) => (/\.(slot|node)-|recovery/.test(name) ? [name] : []))

const isGivenBack = (life: SampleLife): boolean =>
  life.node()?.spec?.unschedulable !== true && slotsOf(life).length === 0

/** Every call of the whole work once, by phase. Reboots differ from restarts only by their interrupt. */
async function callsOf(work: Work): Promise<readonly Omit<Case, 'kind'>[]> {
  const calls = new Map<string, Omit<Case, 'kind'>>()
  const life = await startLife(work, (call, phase) => {
    const isOther = work === 'services' || phase === 'interrupt' || phase === 'after'
    if (isOther && !ofSources.test(nameOf(call))) calls.set(`${phase} ${nameOf(call)}`, { work, phase, call })
    return undefined
  })
  await life.until(() => life.status() === 'complete' && isGivenBack(life), 120_000)
  await life.clock.advance(5_000)
  life.setKept(false)
  life.agent()?.kill()
  return [...calls.values()]
}

/** How long a node may take to show the reason, and to follow an edit: longer than every pause and every service. */
const timeoutMs = 600_000

/** The problem with the end of this case; undefined if there is none. */
async function faultOf(one: Case): Promise<string | undefined> {
  const error = kindsOfErrors[one.call.port][one.kind]
  if (!error) throw new Error(`no error ${one.kind}`)
  const name = nameOf(one.call)
  let isMet = false
  let isOver = false
  const life = await startLife(one.work, (call, phase) => {
    if (isOver || nameOf(call) !== name || (!isMet && phase !== one.phase)) return undefined
    isMet = true
    return error()
  })
  const end = (): void => {
    life.setKept(false)
    life.agent()?.kill()
  }
  const isComplete = (): boolean => life.status() === 'complete' && isGivenBack(life)
  const isReached = async (condition: () => boolean): Promise<boolean> => {
    for (let passedMs = 0; passedMs < timeoutMs && !condition(); passedMs += 500) await life.clock.advance(500)
    return condition()
  }
  try {
    await isReached(() => isComplete() || (isMet && life.reason() !== undefined && isLasting(life)))
    if (isComplete()) return undefined // it works without
    if (!isMet) return 'the call is not made again'
    const reason = life.reason()
    if (reason === undefined && !reasonsAreWrittenBy.test(name)) return `${life.phase()}: no reason (${life.status()})`
    const isForeseen = one.kind !== 'mistake'
    if (isForeseen && reason?.includes('InternalError') === true) return `a foreseen error is internal: ${reason}`
    if (neededToGiveBack.some((pattern) => pattern.test(name))) isOver = true
    await life.apply({ tuned: null as never })
    if (await isReached(() => isGivenBack(life) && life.status() !== 'in_progress')) return undefined
    const cordon = life.node()?.spec?.unschedulable === true ? 'cordoned' : 'open'
    return `no way back: ${cordon}, slots ${slotsOf(life).join(' ')}: ${life.reason()}`
  } finally {
    end()
  }
}

/** A lasting reason: a short-lived one does not count. */
function isLasting(life: SampleLife): boolean {
  const { since } = JSON.parse(life.reason() ?? '{}') as { since?: string }
  return since !== undefined && life.clock.wallMs() - Date.parse(since) > 5_000
}

/** The calls of the executor of interrupts. */
const ofInterrupts = /\/interrupts|\/pods|^bus (?!.*step)/

/**
 * A thorough search (`SEARCH=all`) runs all of them, in minutes. A sample has each call of an interrupt, every tenth of
 * the others, and one kind of error in turn.
 */
function casesOf(calls: readonly Omit<Case, 'kind'>[]): readonly Case[] {
  const isOfInterrupt = ({ phase, call }: (typeof calls)[number]): boolean =>
    phase === 'interrupt' && ofInterrupts.test(nameOf(call))
  const sample = calls.filter((one, index) => isThorough || isOfInterrupt(one) || index % 10 === 0)
  return sample.flatMap((one, index) => {
    const kinds = Object.keys(kindsOfErrors[one.call.port])
    return (isThorough ? kinds : [kinds[index % kinds.length] ?? 'mistake']).map((kind) => ({ ...one, kind }))
  })
}

describe.each(Object.keys(works) as Work[])('work with %s', (work) => {
  test('a call that is rejected has a reason, and an edit of the spec gives the node back', async () => {
    const cases = casesOf(await callsOf(work))
    const faults: string[] = []
    for (const one of cases) {
      const fault = await faultOf(one)
      if (fault !== undefined) faults.push(`${titleOf(one)}: ${fault}`)
    }
    expect(faults).toEqual([])
  }, 3_600_000)
})

test('each method of each port is called in some life, or its row says why not', async () => {
  const calls = (await Promise.all((Object.keys(works) as Work[]).map(callsOf))).flat()
  const met = (port: PortCall['port']): ReadonlySet<string> =>
    new Set(calls.filter(({ call }) => call.port === port).map(({ call }) => call.method))
  const rejected = (rows: Readonly<Record<string, string>>): string[] =>
    Object.entries(rows).flatMap(([method, row]) => (row === 'rejected' ? [method] : []))
  const members = Object.values(unitRows).flatMap((row) => (typeof row === 'string' ? [] : row))
  expect(rejected(rootRows).filter((method) => !met('root').has(method))).toEqual([])
  expect(rejected(storeRows).filter((method) => !met('store').has(method))).toEqual([])
  expect(members.filter((member) => !met('bus').has(member))).toEqual([])
  expect([rejected(apiRows), [...met('api')].sort()]).toEqual([['json'], ['DELETE', 'GET', 'PATCH', 'POST', 'PUT']])
})
