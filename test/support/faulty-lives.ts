/**
 * Many agents in one process, each on its own host and with its own fault: one kind of file operation that fails with
 * an errno, or one kind of request to the API server that is answered wrongly, for as long as `setFaults(true)`.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { statusKey, reasonKey } from '../../src/schemas/annotations.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import { runAgent } from '../../src/daemon/agent.ts'
import type { HostRoot } from '../../src/host/fs/host-root.ts'
import { type FakeApiServer, type Fault, type RecordedRequest, startFakeApiServer } from './fake-api-server.ts'
import { type FakePlatform, startFakePlatform } from './fake-platform.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from './virtual-clock.ts'

export type LifeFault =
  | { readonly at: 'file'; readonly operation: string; readonly errno: string }
  /** `mark`: what a message about it has to contain. */
  | { readonly at: 'request'; readonly operation: string; readonly answer: Fault; readonly mark: string }

export type Life = {
  readonly fault: LifeFault | undefined
  readonly host: FakePlatform
  /** Kinds of operations that the agent has done so far. */
  readonly files: Set<string>
  readonly requests: Set<string>
  /** Virtual times of the failing answers. */
  readonly failures: number[]
  /** When each message first stood on the Node as a reason, by its text. */
  readonly reasons: Map<string, number>
}

const nodesPath = '/api/v1/nodes'
const podsPath = '/api/v1/pods'
const podsOfApps = '/api/v1/namespaces/apps/pods'
const leasesPath = '/apis/coordination.k8s.io/v1/namespaces/skyhook/leases'
const skyhook = 's'

const step = (path: string) => ({
  name: path,
  path,
  arguments: [],
  returncodes: [0],
  on_host: true,
  idempotence: false,
  upgrade_step: false,
})
const modes = ['apply', 'config', 'post-interrupt', 'uninstall'].flatMap((mode) => [mode, `${mode}-check`])
const packageConfig = {
  schema_version: 'v1',
  package_name: 'fake',
  package_version: '1.0.0',
  expected_config_files: ['settings'],
  modes: Object.fromEntries(modes.map((mode) => [mode, [step('run.sh')]])),
}
const packages = {
  fake: {
    version: '1.0.0',
    image: 'registry.test/fake',
    configMap: { settings: 'a=b' },
    env: [
      { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'secret', key: 'token' } } },
      { name: 'MODE', valueFrom: { configMapKeyRef: { name: 'modes', key: 'mode' } } },
    ],
    interrupt: { type: 'service', services: ['cron'] },
    uninstall: { enabled: true },
  },
}

/** One kind for all hosts, packages and attempts. */
const kindOf = (text: string): string =>
  text
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UID')
    .replace(/[0-9a-f]{16,}/g, 'ID')
    .replace(/\d{4}([_-]\d\d)+[^/]*/g, 'TIME')
    .replace(/\bn\d+\b/g, 'NODE')
    .replace(/agent.sock.\w+/, 'agent.sock.ID')
    .replace(/\/skyhook\/leases\/.+/, '/skyhook/leases/LEASE')
    .replace(/\/events\/.+/, '/events/EVENT')

const kindOfRequest = ({ method, path, query }: RecordedRequest): string =>
  kindOf(`${query.get('watch') === null ? method : 'WATCH'} ${path}`)

export class Lives {
  readonly lives: Life[] = []
  readonly clock: VirtualClock = createVirtualClock()
  readonly #ended: Promise<number>[] = []
  readonly #api: FakeApiServer
  #areFaultsOn = true
  #filesInFlight = 0

  static async start(faults: readonly (LifeFault | undefined)[]): Promise<Lives> {
    const events = '/api/v1/namespaces/default/events'
    const references = ['/api/v1/namespaces/skyhook/secrets', '/api/v1/namespaces/skyhook/configmaps']
    const api = await startFakeApiServer([leasesPath, skyhooksPath, podsPath, podsOfApps, events, ...references])
    const lives = new Lives(api)
    api.put('/api/v1/namespaces/skyhook/secrets', { metadata: { name: 'secret' }, data: { token: 'dG9rZW4=' } })
    api.put('/api/v1/namespaces/skyhook/configmaps', { metadata: { name: 'modes' }, data: { mode: 'fast' } })
    for (const [index, fault] of faults.entries()) await lives.#add(`n${index}`, fault)
    lives.writeSkyhook(1, packages)
    return lives
  }

  private constructor(api: FakeApiServer) {
    this.#api = api
    const isEviction = ({ method, path }: RecordedRequest): boolean => {
      const name = /^\/api\/v1\/namespaces\/apps\/pods\/(.+)\/eviction$/.exec(path)?.[1]
      if (method !== 'POST' || name === undefined) return false
      for (const collection of [podsOfApps, podsPath]) api.remove(collection, name)
      return true
    }
    api.fault(isEviction, { kind: 'status', status: 201 }, Infinity)
  }

  async #add(nodeName: string, fault: LifeFault | undefined): Promise<void> {
    const { clock } = this
    const api = this.#api
    const pod = {
      metadata: { name: `app-of-${nodeName}`, namespace: 'apps' },
      spec: { nodeName },
      status: { phase: 'Running' },
    }
    const { uid } = api.put(podsOfApps, pod).metadata
    api.put(podsPath, { ...pod, metadata: { ...pod.metadata, uid } })
    const files = new Set<string>()
    const requests = new Set<string>()
    const failures: number[] = []
    const host = await startFakePlatform({
      nodeName,
      apiUrl: api.url,
      clock,
      random: createSeededRandom(this.lives.length),
      packageConfig,
      imageFiles: ['root_dir/etc/fake.conf'],
      aroundRoot: (root) =>
        this.#faultyRoot(root, (operation) => {
          files.add(operation)
          if (!this.#areFaultsOn || fault?.at !== 'file' || fault.operation !== operation) return undefined
          failures.push(clock.wallMs())
          return fault.errno
        }),
    })
    host.systemd.carriesOutJobs()
    const bootID = readFileSync(`${host.folder}/proc/sys/kernel/random/boot_id`, 'utf8').trim()
    api.put(nodesPath, {
      metadata: { name: nodeName, labels: { pool: 'x' } },
      spec: {},
      status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID } },
    })
    host.systemd.hostUnits.set('cron.service', {
      activeState: 'active',
      subState: 'running',
      invocationId: 'c'.repeat(32),
    })
    const isOwn = ({ headers }: RecordedRequest): boolean => headers['user-agent'] === `skyhookd/${nodeName}`
    api.faultFirst(
      (request) => {
        if (!isOwn(request)) return false
        const operation = kindOfRequest(request)
        requests.add(operation)
        if (!this.#areFaultsOn || fault?.at !== 'request' || fault.operation !== operation) return false
        failures.push(clock.wallMs())
        return true
      },
      fault?.at === 'request' ? fault.answer : { kind: 'reset' },
    )
    this.lives.push({ fault, host, files, requests, failures, reasons: new Map() })
    this.#ended.push(runAgent(host.settings, host.platform).catch(() => -1))
  }

  #faultyRoot(root: HostRoot, failingWith: (operation: string) => string | undefined): HostRoot {
    return new Proxy(root, {
      get: (target, method, receiver) => {
        const value: unknown = Reflect.get(target, method, receiver)
        if (typeof value !== 'function') return value
        return async (...parameters: unknown[]): Promise<unknown> => {
          const [path, to] = parameters
          const object = method === 'copyTree' || method === 'rename' || method === 'link' ? to : path
          const errno = failingWith(kindOf(`${String(method)} ${String(object)}`))
          if (errno !== undefined)
            throw Object.assign(new Error(`${errno}: injected, ${String(method)} '${String(object)}'`), {
              code: errno,
              syscall: String(method),
              path: String(object),
            })
          this.#filesInFlight++
          try {
            return await Reflect.apply(value, target, parameters)
          } finally {
            this.#filesInFlight--
          }
        }
      },
    })
  }

  setFaults(areOn: boolean): void {
    this.#areFaultsOn = areOn
  }

  writeSkyhook(generation: number, spec: object): void {
    this.#api.put(skyhooksPath, {
      ...skyhookTypeMeta,
      metadata: { name: skyhook, generation },
      spec: { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: spec },
    })
  }

  #annotation(index: number, key: string): string | undefined {
    return (this.#api.get(nodesPath, `n${index}`)?.metadata['annotations'] as Record<string, string> | undefined)?.[key]
  }

  isComplete(index: number, generation: number): boolean {
    return this.#annotation(index, statusKey(skyhook)) === 'complete' && generation > 0
  }

  nodeState(index: number): string {
    return this.#annotation(index, 'skyhook.nvidia.com/nodeState_s') ?? ''
  }

  reasonOf(index: number): string | undefined {
    return this.#annotation(index, reasonKey(skyhook))
  }

  /** Lets virtual time pass, and files and sockets answer. */
  async pass(ms: number, isReached: () => boolean = () => false): Promise<void> {
    const stepMs = 50
    for (let passedMs = 0; passedMs < ms && !isReached(); passedMs += stepMs) {
      await this.clock.advance(stepMs)
      do await sleep(1)
      while (this.#filesInFlight > 0)
      for (const [index, { reasons }] of this.lives.entries()) {
        const text = this.reasonOf(index)
        if (text !== undefined && !reasons.has(text)) reasons.set(text, this.clock.wallMs())
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.setFaults(false)
    for (const { host } of this.lives) host.terminate()
    let areOver = false
    void Promise.all(this.#ended).then(() => (areOver = true))
    await this.pass(30_000, () => areOver)
    for (const { host } of this.lives) await host[Symbol.asyncDispose]()
    await this.#api.stop()
  }
}
