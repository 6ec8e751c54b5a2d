/** Hand-made histories for the tests of one rule: a simulated server, hosts that tell what they are told to tell. */
import { cordonKey, reasonKey } from '../../src/schemas/annotations.ts'
import { apiGroup, policiesPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import { bootstrapScope, indexedName, skyhookScope } from '../../src/lease/names.ts'
import { newLease } from '../../src/lease/slot.ts'
import type { ObjectMeta } from '../../src/schemas/kubernetes.ts'
import type { SkyhookSpec, SlotPhase } from '../../src/schemas/skyhook.ts'
import { createSeededRandom, createVirtualClock } from '../kit/virtual-clock.ts'
import { createSimulatedApiServer } from '../kit/api-server/server.ts'
import type { Backup } from '../kit/api-server/store.ts'
import type { SimulatedAgent } from '../kit/host/agent.ts'
import { followTruth } from '../kit/host/host-truth.ts'
import type { HostEvent, HostStep } from '../kit/host/observer.ts'
import { createSimulatedHost } from '../kit/host/simulated-host.ts'
import { type HostView, simulated, type WorldView } from '../kit/fleet/world-view.ts'
import type { Fact } from './facts.ts'
import { requiredTaint } from '../kit/fleet/fleet-host.ts'
import type { Plan } from '../kit/fleet/plan.ts'
import type { Invariant } from './promised.ts'

const merge = 'application/merge-patch+json'
const namespace = 'skyhook'
const leasesPath = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
const skyhooksPath = `/apis/${skyhookTypeMeta.apiVersion}/skyhooks`

/** A spec with one package. */
export const sampleSpec = (spec: Partial<SkyhookSpec> = {}): SkyhookSpec => ({
  nodeSelectors: { matchLabels: { pool: 'x' } },
  interruptionBudget: { count: 1 },
  packages: { a: { version: '1.0.0', image: 'registry.test/a' } },
  ...spec,
})

type SampleHost = HostView & { page: string; isHealthy: boolean; isBehind: boolean }

/** Hosts n1, n2, … with their Nodes, and the Skyhook `s` of this spec; `client` names in requests are those of a run. */
export function sampleWorld(
  invariant: Invariant,
  options: { readonly hosts?: number; readonly spec?: SkyhookSpec; readonly actions?: Plan['actions'] } = {},
) {
  const { hosts: count = 2, spec = sampleSpec(), actions = [] } = options
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const server = createSimulatedApiServer({ clock, random: createSeededRandom(1) })
  const violations: string[] = []
  const hosts = new Map<string, SampleHost>()
  let faultsEndedAtMs: number | undefined
  let lastUnit = 0
  const emit = (event: Fact): void => watch.on?.(event, clock.monotonicMs())

  const world: WorldView = {
    ...simulated,
    clock,
    server,
    hosts,
    plan: { seed: 1, nodes: [], skyhooks: [{ name: 's', spec }], actions },
    faultsEndedAtMs: () => faultsEndedAtMs,
  }
  const watch = invariant.watch(world, (message) => void violations.push(message))

  /** Throws where the server refuses. */
  const send = (
    client: string,
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    query = {},
  ) => {
    const answer = server.handle({
      client,
      manager: client,
      method,
      path,
      query,
      body,
      ...(method === 'PATCH' && { contentType: merge }),
    })
    if (answer.code >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body as { metadata: ObjectMeta }
  }

  server.observe({
    committed: (change, client) => emit({ kind: 'commit', change, client }),
    answered: (entry) => emit({ kind: 'answered', entry }),
    restored: () => emit({ kind: 'restored' }),
  })
  send('admin', 'POST', '/api/v1/namespaces', { metadata: { name: namespace } })
  for (let index = 1; index <= count; index++) addHost(`n${index}`)
  createSkyhook()

  function createSkyhook(): void {
    send('admin', 'POST', skyhooksPath, { ...skyhookTypeMeta, metadata: { name: 's' }, spec })
  }

  function addHost(name: string): void {
    const host = createSimulatedHost({
      name,
      clock,
      seed: 1,
      registry: () => undefined as never,
      runStep: () => ({ durationMs: 1 }),
    })
    const truth = followTruth(host, ({ mode }) => mode.endsWith('config-check') || mode === 'uninstall-check')
    const view: SampleHost = {
      name,
      nodeName: () => name,
      isControlPlane: false,
      host,
      truth,
      agents: () => (view.isHealthy ? [{ metrics: async () => view.page } as SimulatedAgent] : []),
      reachesApi: () => view.isHealthy,
      isFaulty: () => false,
      isHindered: () => !view.isHealthy,
      hasJoined: () => true,
      isHalted: () => view.isBehind,
      phase: () => 'idle',
      defaultBudgets: () => [],
      page: '',
      isHealthy: true,
      isBehind: false,
    }
    hosts.set(name, view)
    host.observe((event) => emit({ kind: 'host', host: name, event }))
    register(name)
  }

  function register(name: string, labels: Record<string, string> = {}): void {
    send(`kubelet:${name}`, 'POST', '/api/v1/nodes', { metadata: { name, labels: { pool: 'x', ...labels } } })
  }

  const viewOf = (name: string): SampleHost => {
    const view = hosts.get(name)
    if (!view) throw new Error(`there is no host ${name}`)
    return view
  }
  const tell = (name: string, event: HostEvent): void => viewOf(name).host.tell(event)
  const skyhook = () => server.object('skyhooks', undefined, 's')
  const uidOf = (name: string): string => server.object('nodes', undefined, name)?.metadata.uid ?? ''
  const patchNode = (client: string, name: string, body: object) => send(client, 'PATCH', `/api/v1/nodes/${name}`, body)

  const scopeOf = (kind: 'slot' | 'bootstrap', compartment = '') =>
    (kind === 'slot' ? skyhookScope : bootstrapScope)({ name: 's', uid: skyhook()?.metadata.uid ?? '' }, compartment)

  const step = (mode: string, more: Partial<HostStep> = {}): HostStep => ({
    unit: `step-${++lastUnit}.service`,
    attempt: '1',
    skyhook: 's',
    package: 'a',
    version: '1.0.0',
    mode,
    path: `${mode}.sh`,
    invocationId: '1',
    startedAtMs: 0,
    ...more,
  })

  return {
    world,
    server,
    violations,
    checks: () => watch.checks(),
    pending: () => watch.pending?.(),
    /** The run is over. */
    /** Also while the rule lets time pass at its end. */
    later: (seconds: number, act: () => void) => void clock.startTimer(seconds * 1_000, act),
    end: async () => await watch.end?.(clock.monotonicMs()),
    /** What the agent of the host answers to Prometheus. */
    serve: (name: string, page: string) => void (viewOf(name).page = page),
    send,
    tell,
    step,
    patchNode,
    register,
    /** A fault or an edit ends. */
    ends: (kind: string, node: string, detail: Record<string, unknown> = {}) =>
      emit({ kind: 'action', what: 'ends', phase: undefined, action: { id: 0, atMs: 0, kind, node, detail } }),
    setHealthy: (name: string, isHealthy: boolean) => void (viewOf(name).isHealthy = isHealthy),
    /** A newer agent has written the journal. */
    setHalted: (name: string, isHalted: boolean) => void (viewOf(name).isBehind = isHalted),
    setFaultsEnded: () => void (faultsEndedAtMs = clock.monotonicMs()),
    /** A step that runs and ends at once. */
    run(
      name: string,
      mode: string,
      { code = 0, isRecorded = true, ...more }: Partial<HostStep> & { code?: number; isRecorded?: boolean } = {},
    ) {
      const one = step(mode, more)
      tell(name, { event: 'stepStarted', step: one })
      tell(name, { event: 'stepEnded', step: one, end: { outcome: 'exited', code }, isRecorded })
    },
    start(name: string, mode = 'apply') {
      const one = step(mode)
      tell(name, { event: 'stepStarted', step: one })
      return () => tell(name, { event: 'stepEnded', step: one, end: { outcome: 'exited', code: 0 }, isRecorded: true })
    },
    /** All steps of the package. */
    complete(name: string) {
      for (const mode of ['apply', 'apply-check', 'config', 'config-check']) this.run(name, mode)
    },
    /** The agent takes a slot of `s`, and reads Skyhook and slots as it does before it starts. */
    take(name: string, index = 0, kind: 'slot' | 'bootstrap' = 'slot', compartment = '') {
      this.create(name, index, kind, compartment)
      this.confirm(name)
    },
    create(name: string, index = 0, kind: 'slot' | 'bootstrap' = 'slot', compartment = '') {
      const scope = scopeOf(kind, compartment)
      const node = { name, uid: uidOf(name), bootId: 'b' }
      send(
        `agent:${name}`,
        'POST',
        leasesPath,
        newLease(scope, { index }, node, { phase: 'working', generation: 1, packages: [] }, clock.wallMs()),
      )
    },
    uidOf,
    /** The agent takes a slot beside the indices, for the registration that it knows; the answer gives it back. */
    recover(name: string, uid = uidOf(name), scope = scopeOf('slot')): () => void {
      const node = { name, uid, bootId: 'b' }
      const progress = { phase: 'working', generation: 1, packages: [] } as const
      const lease = newLease(scope, { kind: 'recovery' }, node, progress, clock.wallMs())
      send(`agent:${name}`, 'POST', leasesPath, lease)
      return () => void send(`agent:${name}`, 'DELETE', `${leasesPath}/${lease.metadata.name}`)
    },
    confirm(name: string) {
      this.readSkyhook(name)
      this.listSlots(name)
    },
    readSkyhook: (name: string) => void send(`agent:${name}`, 'GET', `${skyhooksPath}/s`),
    listSlots(name: string, labelSelector = 'skyhook.nvidia.com/name=s') {
      send(`agent:${name}`, 'GET', leasesPath, undefined, { labelSelector })
    },
    /** Somebody deletes the slot of that index. */
    release(client: string, index = 0, kind: 'slot' | 'bootstrap' = 'slot') {
      send(client, 'DELETE', `${leasesPath}/${indexedName(scopeOf(kind), index)}`)
    },
    cordon(name: string, client = `agent:${name}`) {
      patchNode(client, name, {
        metadata: { annotations: { [cordonKey('s')]: 'true' } },
        spec: { unschedulable: true },
      })
    },
    uncordon(name: string, client = `agent:${name}`) {
      patchNode(client, name, { metadata: { annotations: { [cordonKey('s')]: null } }, spec: { unschedulable: null } })
    },
    /** The agent writes its slot. */
    renew(name: string, phase: SlotPhase, index = 0) {
      const lease = server.object('leases', namespace, indexedName(scopeOf('slot'), index))
      const annotations = { [`${apiGroup}/phase`]: phase }
      send(`agent:${name}`, 'PATCH', `${leasesPath}/${lease?.metadata.name ?? ''}`, { metadata: { annotations } })
    },
    sayReason(name: string, reason: string, message = '') {
      const text = JSON.stringify({ reason, message, since: '' })
      patchNode(`agent:${name}`, name, { metadata: { annotations: { [reasonKey('s')]: text } } })
    },
    sayNothing: (name: string) =>
      patchNode(`agent:${name}`, name, { metadata: { annotations: { [reasonKey('s')]: null } } }),
    annotate: (name: string, annotations: object, client = `agent:${name}`) =>
      patchNode(client, name, { metadata: { annotations } }),
    taint: (name: string, isTainted: boolean, client = 'admin') =>
      patchNode(client, name, { spec: { taints: isTainted ? [requiredTaint] : [] } }),
    label: (name: string, labels: object) => patchNode('admin', name, { metadata: { labels } }),
    createPolicy: (name: string) =>
      send('admin', 'POST', policiesPath, {
        metadata: { name },
        spec: { default: { budget: { count: 1 }, strategy: { fixed: { initialBatch: 1 } } } },
      }),
    replaceSkyhook(): void {
      send('admin', 'DELETE', `${skyhooksPath}/s`)
      createSkyhook()
    },
    editSkyhook: (patch: object) => send('admin', 'PATCH', `${skyhooksPath}/s`, patch),
    setStatus: (status: object) => send('census:n1', 'PATCH', `${skyhooksPath}/s/status`, { status }),
    generation: () => skyhook()?.metadata.generation ?? 0,
    deleteNode: (name: string) => send('admin', 'DELETE', `/api/v1/nodes/${name}`),
    backUp: (): Backup => server.backUp(),
    restore: (backup: Backup) => server.restore(backup, server.revision() + 1),
    /** Lets so many virtual seconds pass. */
    async pass(seconds: number) {
      for (let second = 0; second < seconds; second++) {
        await clock.advance(1_000)
        watch.tick?.(clock.monotonicMs())
      }
    },
  }
}
