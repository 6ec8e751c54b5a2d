/**
 * Lives of agents in which every kind of file operation, or every kind of request to the API server, fails from its
 * first use on, one kind after the other, until its failure is reported, or until it is too late for that.
 */
import { statusKey, nodeStateKey, reasonKey } from '../../src/schemas/annotations.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { HostRoot } from '../../src/host/fs/host-root.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { actionBackoff } from '../../src/daemon/failures/book.ts'
import { createClient } from './api-server/client.ts'
import type { Fault } from './api-server/faults.ts'
import type { RoutedRequest } from './api-server/request.ts'
import { createSimulatedApiServer, type SimulatedApiServer } from './api-server/server.ts'
import { type LogLine, type SimulatedAgent, startSimulatedAgent } from './host/agent.ts'
import type { SimulatedImage } from './host/images.ts'
import { startKubelet } from './host/kubelet.ts'
import { packageImage } from './host/package-image.ts'
import { createSimulatedHost } from './host/simulated-host.ts'
import { settingsOf } from './objects/sample-settings.ts'
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

const skyhook = 's'
/** A reason has this long to stand on the Node. */
const reportWithinMs = 10_000
/** A transport gives an answer up after this. */
const requestTimeoutMs = 30_000
const stepMs = 100
/** Without its boot id an agent ends at once, and the kubelet starts it again. */
const bootIdRead = 'readFile /proc/sys/kernel/random/boot_id'

const fakeImage = ((): SimulatedImage => {
  const stages = ['apply', 'config', 'post-interrupt', 'uninstall']
  const image = packageImage('fake', '1.0.0', stages, stages)
  const config: object = JSON.parse(image.files['config.json'] ?? '{}')
  return {
    ...image,
    files: {
      ...image.files,
      'config.json': JSON.stringify({ ...config, expected_config_files: ['settings'] }),
      'root_dir/etc/fake.conf': 'of the image\n',
    },
  }
})()
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

const kindOfRequest = ({ method, path, verb }: RoutedRequest): string =>
  kindOf(`${verb === 'watch' ? 'WATCH' : method} ${path}`)

/** Letters only: numbers in messages do not count as another error. */
const nameOf = (index: number): string =>
  `injected-${String.fromCharCode(97 + Math.floor(index / 26), 97 + (index % 26))}`

type Current = {
  readonly kind: string
  readonly errno: string | undefined
  readonly mark: string
  readonly metAtMs: number
  /** Since when its reason may stand on the Node. */
  sinceMs: number
  failures: number
}

/** One agent on its host, with what fails for it at the moment. */
class Life {
  readonly findings: Finding[] = []
  readonly nodeName: string
  readonly #clock: VirtualClock
  readonly #faultPlan: FaultPlan
  readonly #earlier: Current[] = []
  current: Current | undefined
  areFaultsOn = true

  constructor(nodeName: string, clock: VirtualClock, faultPlan: FaultPlan) {
    this.nodeName = nodeName
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
      this.current = {
        kind,
        errno: errnoOf(index),
        mark,
        metAtMs: this.#clock.wallMs(),
        sinceMs: this.#clock.wallMs(),
        failures: 0,
      }
    }
    if (this.current?.kind !== kind) return undefined
    this.current.failures++
    return this.current
  }

  /** Heals what was reported, or is late. */
  judge(reason: string | undefined, isComplete: boolean, lines: readonly LogLine[]): void {
    const { current } = this
    if (!current) return
    const isReported = reason !== undefined && names(reason, current)
    const nowMs = this.#clock.wallMs()
    // a Node shows one reason: while it is that of an earlier failure, which the next attempt ends, this one has time
    const isBehind = reason !== undefined && !isReported && this.#earlier.some((earlier) => names(reason, earlier))
    if (isBehind && nowMs - current.metAtMs <= actionBackoff.maxMs) current.sinceMs = nowMs
    const { kind, errno, sinceMs, failures } = current
    const afterMs = nowMs - sinceMs - (this.isSilent ? requestTimeoutMs : 0)
    if (!isReported && afterMs <= reportWithinMs) return
    const isLogged = lines.some(
      ({ level, fields, atMs }) =>
        atMs >= current.metAtMs && (level === 'warn' || level === 'error') && names(JSON.stringify(fields), current),
    )
    const reported = isReported ? 'reason' : isLogged ? 'log' : 'nothing'
    this.findings.push({ kind, errno, reported, shown: reason, afterMs, failures, isComplete })
    this.#earlier.push(current)
    this.current = undefined
  }
}

/** Whether a text is about this failure. */
function names(text: string, { errno, mark }: Current): boolean {
  if (errno !== undefined && new RegExp(`\\b${errno}\\b`).test(text)) return true
  if (mark.startsWith('injected')) return text.includes(mark)
  const [method = '', path = ''] = mark.replace('WATCH', 'GET').split(' ')
  return new RegExp(String.raw`${RegExp.escape(`${method} ${path}`)}(?![\w/])`).test(kindOf(text))
}

const isNameless = ({ kind }: Fault): boolean => kind !== 'refuse'

export type LivesOptions = {
  readonly seed: number
  /** There and back, of each request of an agent. */
  readonly maxLatencyMs: number
}

export class FaultyLives {
  readonly lives: Life[] = []
  readonly #clock: VirtualClock = createVirtualClock(undefined, { settleTurns: 0 })
  readonly #server: SimulatedApiServer
  readonly #admin: KubeTransport
  readonly #agents: SimulatedAgent[] = []
  readonly #lines: LogLine[][] = []
  readonly #options: LivesOptions

  static async start(faultPlans: readonly FaultPlan[], options: LivesOptions): Promise<FaultyLives> {
    const lives = new FaultyLives(options)
    const create = async (path: string, body: object): Promise<void> =>
      void (await lives.#admin.json('POST', path, { body }))
    for (const name of ['skyhook', 'apps']) await create('/api/v1/namespaces', { metadata: { name } })
    const ours = '/api/v1/namespaces/skyhook'
    await create(`${ours}/secrets`, { metadata: { name: 'secret' }, data: { token: 'dG9rZW4=' } })
    await create(`${ours}/configmaps`, { metadata: { name: 'modes' }, data: { mode: 'fast' } })
    for (const [index, faultPlan] of faultPlans.entries()) await lives.#add(`n${index}`, faultPlan)
    await create(skyhooksPath, {
      ...skyhookTypeMeta,
      metadata: { name: skyhook },
      spec: { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { fake: fakePackage } },
    })
    return lives
  }

  private constructor(options: LivesOptions) {
    this.#options = options
    const clock = this.#clock
    this.#server = createSimulatedApiServer({ clock, random: createSeededRandom(options.seed) })
    this.#admin = createClient(this.#server, { name: 'admin', clock, random: createSeededRandom(0) })
    this.#server.faults.rules.push({
      name: 'of a life',
      fault: (request) =>
        this.lives.find(({ nodeName }) => nodeName === request.client)?.requestFault(kindOfRequest(request)),
    })
  }

  async #add(nodeName: string, faultPlan: FaultPlan): Promise<void> {
    const { seed, maxLatencyMs } = this.#options
    const clock = this.#clock
    const index = this.lives.length
    const life = new Life(nodeName, clock, faultPlan)
    const host = createSimulatedHost({
      name: nodeName,
      clock,
      seed: seed * 100 + index,
      registry: () => fakeImage,
      runStep: () => ({ durationMs: 1_000 }),
    })
    host.systemd.addService('cron.service', { restart: () => ({ durationMs: 500, result: 'done' }) })
    startKubelet(host, {
      clock,
      transport: createClient(this.#server, { name: 'kubelet', clock, random: host.fork() }),
      nodeName,
      labels: { pool: 'x' },
      readyMs: () => 0,
    })
    const metadata = { name: `app-of-${nodeName}`, namespace: 'apps' }
    const spec = { nodeName, terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image: 'none' }] }
    await this.#admin.json('POST', '/api/v1/namespaces/apps/pods', { body: { metadata, spec } })
    const lines: LogLine[] = []
    this.lives.push(life)
    this.#lines.push(lines)
    const start = (): void => {
      const agent = startSimulatedAgent(host, {
        settings: settingsOf(nodeName, '/'),
        connectApi: ({ isCensus, ...client }) =>
          createClient(this.#server, {
            ...client,
            name: isCensus ? 'census' : nodeName,
            latencyMs: (random) => maxLatencyMs * (0.5 + random.number() / 2),
          }),
        onLog: (line) => void lines.push(line),
        aroundRoot: (root) => faultyRoot(root, life),
      })
      this.#agents[index] = agent
      const startAgain = (): void => void (life.areFaultsOn && clock.startTimer(1_000, start))
      agent.ended.then(startAgain, startAgain)
    }
    start()
  }

  /** Removes the package: all nodes uninstall it. */
  async removePackage(): Promise<void> {
    await this.#admin.json('PATCH', `${skyhooksPath}/${skyhook}`, {
      contentType: 'application/merge-patch+json',
      body: { spec: { packages: { fake: null } } },
    })
  }

  #annotation(index: number, key: string): string | undefined {
    const node = this.#server.object('nodes', undefined, `n${index}`) as KubernetesNode | undefined
    return node?.metadata.annotations?.[key]
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

  /** Lets virtual time pass until the condition holds. Returns whether it does. */
  async pass(maxMs: number, isReached: () => boolean): Promise<boolean> {
    for (let passedMs = 0; passedMs < maxMs; passedMs += stepMs) {
      await this.#clock.advance(stepMs)
      for (const [index, life] of this.lives.entries()) {
        const isComplete = this.#annotation(index, statusKey(skyhook)) === 'complete'
        life.judge(this.#annotation(index, reasonKey(skyhook)), isComplete, this.#lines[index] ?? [])
      }
      if (isReached()) return true
    }
    return false
  }

  [Symbol.dispose](): void {
    for (const life of this.lives) life.areFaultsOn = false
    for (const agent of this.#agents) agent.kill()
  }
}

/** The files of a host, where the operation that has its turn fails. */
function faultyRoot(root: HostRoot, life: Life): HostRoot {
  const operations = Object.entries(root).map(([method, operation]: [string, (...parameters: never) => unknown]) => {
    if (method === 'newTemporaryToken') return [method, operation]
    const faulty = async (...parameters: never): Promise<unknown> => {
      const [from, to] = parameters as readonly unknown[]
      const path = String(method === 'copyTree' || method === 'rename' || method === 'link' ? to : from)
      const fault = life.fileFault(kindOf(`${method} ${path}`))
      if (fault) {
        const error = new Error(`${fault.errno}: ${fault.mark}, ${method} '${path}'`)
        throw Object.assign(error, { code: fault.errno, syscall: method, path })
      }
      return await operation(...parameters)
    }
    return [method, faulty]
  })
  return Object.fromEntries(operations) as HostRoot
}
