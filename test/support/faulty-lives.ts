/**
 * Lives of agents in which every kind of file operation, or every kind of request to the API server, fails from its
 * first use on, one kind after the other, until its failure is reported, or until it is too late for that.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { statusKey, nodeStateKey, reasonKey } from '../../src/schemas/annotations.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import { runAgent } from '../../src/daemon/agent.ts'
import type { Platform } from '../../src/daemon/platform/platform.ts'
import type { HostRoot } from '../../src/host/fs/host-root.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { type FakeApiServer, type Fault, type RecordedRequest, startFakeApiServer } from './fake-api-server.ts'
import { type FakePlatform, startFakePlatform } from './fake-platform.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from './virtual-clock.ts'

/** Errnos take turns, one for each kind of operation. */
export type FaultPlan = ({ readonly files: readonly string[] } | { readonly requests: (name: string) => Fault }) & {
  /** Kinds that had their turn: of an earlier life, too. */
  readonly seen: Set<string>
}

/** What became of one kind of operation. */
export type Finding = {
  readonly kind: string
  readonly errno: string | undefined
  /** The reason on the Node, a warning in the log, or nothing within the time. */
  readonly reported: 'reason' | 'log' | 'nothing'
  /** The reason that the Node showed then. */
  readonly shown: string | undefined
  readonly afterMs: number
  readonly failures: number
  /** Whether the Node said complete by then. */
  readonly isComplete: boolean
}

const nodesPath = '/api/v1/nodes'
const podsPath = '/api/v1/pods'
const podsOfApps = '/api/v1/namespaces/apps/pods'
const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const skyhook = 's'
/** A reason has this long to stand on the Node. */
const reportWithinMs = 10_000
/** A transport gives an answer up after this. */
const requestTimeoutMs = 30_000
const stepMs = 1_000
/** Without its boot id an agent ends at once, and the kubelet starts it again. */
const bootIdRead = 'readFile /proc/sys/kernel/random/boot_id'

const step = { name: 'run', path: 'run.sh', arguments: [], returncodes: [0] }
const modes = ['apply', 'config', 'post-interrupt', 'uninstall'].flatMap((mode) => [mode, `${mode}-check`])
const packageConfig = {
  schema_version: 'v1',
  package_name: 'fake',
  package_version: '1.0.0',
  expected_config_files: ['settings'],
  modes: Object.fromEntries(
    modes.map((mode) => [mode, [{ ...step, on_host: true, idempotence: false, upgrade_step: false }]]),
  ),
}
const fakePackage = {
  version: '1.0.0',
  image: 'registry.test/fake',
  configMap: { settings: 'a=b' },
  env: [
    { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'secret', key: 'token' } } },
    { name: 'MODE', valueFrom: { configMapKeyRef: { name: 'modes', key: 'mode' } } },
  ],
  interrupt: { type: 'service', services: ['cron'] },
  uninstall: { enabled: true },
}

/** One kind for all hosts, packages and attempts. */
const kindOf = (text: string): string =>
  text
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UID')
    .replace(/[0-9a-f]{16,}/g, 'ID')
    .replace(/\d{4}([_-]\d\d)+[^/]*/g, 'TIME')
    .replace(/\bn\d+\b/g, 'NODE')
    .replace(/agent.sock.\w+/, 'agent.sock.ID')
    .replace(/\/leases\/skyhookd-census$/, '/leases/ELECTION')
    .replace(/\/leases\/(?!ELECTION).+/, '/leases/SLOT')
    .replace(/\/events\/.+/, '/events/EVENT')

const kindOfRequest = ({ method, path, query }: RecordedRequest): string =>
  kindOf(`${query.get('watch') === null ? method : 'WATCH'} ${path}`)

/** Letters only: numbers in messages do not count as another error. */
const nameOf = (index: number): string =>
  `injected-${String.fromCharCode(97 + Math.floor(index / 26), 97 + (index % 26))}`

type Current = {
  readonly kind: string
  readonly errno: string | undefined
  readonly mark: string
  /** When the first answer failed. */
  readonly sinceMs: number
  failures: number
}

/** One agent on its host, with what fails for it at the moment. */
class Life {
  readonly findings: Finding[] = []
  readonly #clock: VirtualClock
  readonly #faultPlan: FaultPlan
  current: Current | undefined
  areFaultsOn = true

  constructor(clock: VirtualClock, faultPlan: FaultPlan) {
    this.#clock = clock
    this.#faultPlan = faultPlan
  }

  /** Its requests get no answer. */
  get isSilent(): boolean {
    return 'requests' in this.#faultPlan && this.#faultPlan.requests('').kind === 'silent'
  }

  /** What this operation fails with; each kind gets its turn when it is met while no other one fails. */
  fileFault(kind: string): { readonly errno: string; readonly mark: string } | undefined {
    if (!('files' in this.#faultPlan)) return undefined
    const { files } = this.#faultPlan
    const current = this.#meet(kind, (index) => files[index % files.length])
    return current?.errno === undefined ? undefined : { errno: current.errno, mark: current.mark }
  }

  requestFault(kind: string): Fault | undefined {
    if (!('requests' in this.#faultPlan)) return undefined
    const current = this.#meet(kind, () => undefined)
    return current && this.#faultPlan.requests(current.mark)
  }

  #meet(kind: string, errnoOf: (index: number) => string | undefined): Current | undefined {
    if (this.areFaultsOn && !this.current && !this.#faultPlan.seen.has(kind) && kind !== bootIdRead) {
      const index = this.#faultPlan.seen.size
      this.#faultPlan.seen.add(kind)
      const mark = 'requests' in this.#faultPlan && isNameless(this.#faultPlan.requests('')) ? kind : nameOf(index)
      this.current = { kind, errno: errnoOf(index), mark, sinceMs: this.#clock.wallMs(), failures: 0 }
    }
    if (this.current?.kind !== kind) return undefined
    this.current.failures++
    return this.current
  }

  /** Heals what was reported, or is late. */
  judge(reason: string | undefined, isComplete: boolean, host: FakePlatform): void {
    const { current } = this
    if (!current) return
    const { kind, errno, mark, sinceMs, failures } = current
    const afterMs = this.#clock.wallMs() - sinceMs - (this.isSilent ? requestTimeoutMs : 0)
    const [method = '', path = ''] = mark.replace('WATCH', 'GET').split(' ')
    const isReported = (text: string): boolean =>
      (errno !== undefined && new RegExp(`\\b${errno}\\b`).test(text)) || mark.startsWith('injected')
        ? text.includes(mark)
        : kindOf(text).includes(`${method} ${path}`)
    const hasReason = reason !== undefined && isReported(reason)
    if (!hasReason && afterMs <= reportWithinMs) return
    const isLogged = host.lines.some(
      ({ level, fields, atMs }) =>
        atMs >= sinceMs && (level === 'warn' || level === 'error') && isReported(JSON.stringify(fields)),
    )
    this.findings.push({
      kind,
      errno,
      reported: hasReason ? 'reason' : isLogged ? 'log' : 'nothing',
      shown: reason,
      afterMs,
      failures,
      isComplete,
    })
    this.current = undefined
  }
}

const isNameless = ({ kind }: Fault): boolean => kind !== 'status'

export class FaultyLives {
  readonly lives: Life[] = []
  readonly #hosts: FakePlatform[] = []
  readonly #clock: VirtualClock = createVirtualClock()
  readonly #ended: Promise<number>[] = []
  readonly #api: FakeApiServer
  #inFlight = 0

  static async start(faultPlans: readonly FaultPlan[]): Promise<FaultyLives> {
    const events = '/api/v1/namespaces/default/events'
    const api = await startFakeApiServer([leasesPath, skyhooksPath, podsPath, podsOfApps, events])
    api.put('/api/v1/namespaces/skyhook/secrets', { metadata: { name: 'secret' }, data: { token: 'dG9rZW4=' } })
    api.put('/api/v1/namespaces/skyhook/configmaps', { metadata: { name: 'modes' }, data: { mode: 'fast' } })
    const lives = new FaultyLives(api)
    for (const [index, faultPlan] of faultPlans.entries()) await lives.#add(`n${index}`, faultPlan)
    lives.#writeSkyhook(1, { fake: fakePackage })
    return lives
  }

  private constructor(api: FakeApiServer) {
    this.#api = api
    const evictedPod = ({ method, path }: RecordedRequest): string | undefined =>
      method === 'POST' ? /^\/api\/v1\/namespaces\/apps\/pods\/(.+)\/eviction$/.exec(path)?.[1] : undefined
    api.answerFirst((request) => {
      const name = evictedPod(request)
      if (name === undefined) return undefined
      for (const collection of [podsOfApps, podsPath]) api.remove(collection, name)
      return { kind: 'status', status: 201 }
    })
  }

  async #add(nodeName: string, faultPlan: FaultPlan): Promise<void> {
    const life = new Life(this.#clock, faultPlan)
    const api = this.#api
    const metadata = { name: `app-of-${nodeName}`, namespace: 'apps' }
    const pod = { metadata, spec: { nodeName }, status: { phase: 'Running' } }
    const { uid } = api.put(podsOfApps, pod).metadata
    api.put(podsPath, { ...pod, metadata: { ...metadata, uid } })
    const host = await startFakePlatform({
      nodeName,
      apiUrl: api.url,
      clock: this.#clock,
      random: createSeededRandom(this.lives.length),
      packageConfig,
      imageFiles: ['root_dir/etc/fake.conf'],
      aroundRoot: (root) => this.#faultyRoot(root, life),
    })
    host.systemd.carriesOutJobs()
    const cron = { activeState: 'active', subState: 'running', invocationId: 'c'.repeat(32) }
    host.systemd.hostUnits.set('cron.service', cron)
    const bootID = readFileSync(`${host.folder}/proc/sys/kernel/random/boot_id`, 'utf8').trim()
    api.put(nodesPath, {
      metadata: { name: nodeName, labels: { pool: 'x' } },
      spec: {},
      status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID } },
    })
    api.answerFirst((request) =>
      request.headers['user-agent'] === `skyhookd/${nodeName}` ? life.requestFault(kindOfRequest(request)) : undefined,
    )
    this.lives.push(life)
    this.#hosts.push(host)
    const platform = {
      ...host.platform,
      connectApi: (onRequest: Parameters<Platform['connectApi']>[0]) =>
        this.#trackedTransport(host.platform.connectApi(onRequest), life),
    }
    this.#ended.push(runAgent(host.settings, platform).catch(() => -1))
  }

  #faultyRoot(root: HostRoot, life: Life): HostRoot {
    return new Proxy(root, {
      get: (target, method, receiver) => {
        const value: unknown = Reflect.get(target, method, receiver)
        if (typeof value !== 'function' || method === 'newTemporaryToken') return value
        return async (...parameters: unknown[]): Promise<unknown> => {
          const [from, to] = parameters
          const path = String(method === 'copyTree' || method === 'rename' || method === 'link' ? to : from)
          const fault = life.fileFault(kindOf(`${String(method)} ${path}`))
          if (fault) {
            const error = new Error(`${fault.errno}: ${fault.mark}, ${String(method)} '${path}'`)
            throw Object.assign(error, { code: fault.errno, syscall: String(method), path })
          }
          return await this.#track(Promise.resolve(Reflect.apply(value, target, parameters)))
        }
      },
    })
  }

  #trackedTransport(transport: KubeTransport, life: Life): KubeTransport {
    return {
      ...transport,
      json: async (method, path, options) => {
        const answer = transport.json<never>(method, path, options)
        return life.isSilent ? await answer : await this.#track(answer)
      },
    }
  }

  async #track<T>(task: Promise<T>): Promise<T> {
    this.#inFlight++
    try {
      return await task
    } finally {
      this.#inFlight--
    }
  }

  #writeSkyhook(generation: number, packages: object): void {
    const metadata = { name: skyhook, generation }
    const spec = { nodeSelectors: { matchLabels: { pool: 'x' } }, packages }
    this.#api.put(skyhooksPath, { ...skyhookTypeMeta, metadata, spec })
  }

  /** Removes the package: all nodes uninstall it. */
  removePackage(): void {
    this.#writeSkyhook(2, {})
  }

  #annotation(index: number, key: string): string | undefined {
    const metadata = this.#api.get(nodesPath, `n${index}`)?.metadata
    return (metadata?.['annotations'] as Record<string, string> | undefined)?.[key]
  }

  areAllComplete(): boolean {
    return this.lives.every(
      (life, index) => !life.current && this.#annotation(index, statusKey(skyhook)) === 'complete',
    )
  }

  areAllUninstalled(): boolean {
    return (
      this.areAllComplete() && this.lives.every((_, index) => this.#annotation(index, nodeStateKey(skyhook)) === '{}')
    )
  }

  /** What the agents that are not complete say, for a failed test. */
  describe(): string {
    return this.lives
      .map(({ current }, index) => `n${index} ${current?.kind}: ${this.#annotation(index, reasonKey(skyhook))}`)
      .join('\n')
  }

  endFaults(): void {
    for (const life of this.lives) {
      life.areFaultsOn = false
      life.current = undefined
    }
  }

  /** Lets virtual time pass, and files and sockets answer, until the condition holds. Returns whether it does. */
  async pass(maxMs: number, isReached: () => boolean): Promise<boolean> {
    for (let passedMs = 0; passedMs < maxMs; passedMs += stepMs) {
      await this.#clock.advance(stepMs)
      do await sleep(1)
      while (this.#inFlight > 0)
      for (const [index, life] of this.lives.entries()) {
        const host = this.#hosts[index]
        const isComplete = this.#annotation(index, statusKey(skyhook)) === 'complete'
        if (host) life.judge(this.#annotation(index, reasonKey(skyhook)), isComplete, host)
      }
      if (isReached()) return true
    }
    return false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.endFaults()
    for (const host of this.#hosts) host.terminate()
    let areOver = false
    void Promise.all(this.#ended).then(() => (areOver = true))
    await this.pass(60_000, () => areOver)
    for (const host of this.#hosts) await host[Symbol.asyncDispose]()
    await this.#api.stop()
  }
}
