/** What a judge of budgets reads, of the facts and of the world as it goes on. */
import { labelKeys } from '../../src/lease/names.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import type { DeploymentPolicySpec } from '../../src/schemas/deployment-policy.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { hasRequiredTaint } from '../../src/stages/drain/node-spec.ts'
import {
  hostOfClient,
  isFormer,
  isJoining,
  isSelected,
  isSlotOf,
  nodeOf,
  skyhookOf,
  skyhooksOf,
  slotsOf,
} from './cluster.ts'
import { type Evidence, evidenceOf } from './evidence.ts'
import { type Exemptions, followExemptions } from './exemptions.ts'
import { isRunningOn, isStatic, type RunningPod } from './may-end.ts'
import type { Promised } from './promised.ts'
import { requiredTaint } from '../kit/fleet/fleet-host.ts'
import type { AdmissionFact, AdmissionWorld, Judge } from './admission-facts.ts'
import type { Fact, Host, World } from './facts.ts'
import { countDelayMs } from './counts.ts'

/** A promise that a judge of admissions keeps. */
export const onAdmissions = (
  name: string,
  start: (world: AdmissionWorld, violate: (text: string, atMs?: number) => void) => Judge,
): Promised => ({
  name,
  watch(view, violate) {
    const evidence = evidenceOf(view)
    const excuses = new Map<string, Exemptions>()
    const excusesOf = (skyhook: string): Exemptions => {
      const known = excuses.get(skyhook) ?? followExemptions(view, evidence, (slot) => isSlotOf(slot, skyhook))
      excuses.set(skyhook, known)
      return known
    }
    let countedUntilMs = 0
    const world = worldOf(view, evidence, { excuses: excusesOf, countedUntilMs: () => countedUntilMs })
    const judge = start(world, violate)
    const tell = (fact: AdmissionFact): void => judge.on(fact)
    for (const { name: skyhook } of view.plan.skyhooks) excusesOf(skyhook)

    evidence.disruption.onChange((change) => {
      const isUnasked = change.cause === 'etcd restored'
      tell({ kind: 'out', atMs: view.clock.monotonicMs(), ...change, ...(isUnasked && { isUnasked }) })
    })

    return {
      on(event, atMs) {
        evidence.see(event)
        for (const one of excuses.values()) one.see(event)
        if (event.kind === 'restored') for (const fact of restored(view, atMs)) tell(fact)
        const fact = event.kind === 'commit' ? committed(view, event, atMs) : answered(event, atMs)
        if (fact) tell(fact)
      },
      tick(atMs) {
        evidence.tick(atMs)
        for (const one of excuses.values()) one.tick()
        const since = [...view.hosts.keys()].map((host) => evidence.health.sinceMs(host) ?? Infinity)
        if (atMs - Math.min(...since) >= countDelayMs) countedUntilMs = atMs - countDelayMs
        judge.tick?.(atMs)
      },
      end: () => judge.end?.(),
      checks: () => judge.checks(),
    }
  },
})

function worldOf(
  view: World,
  evidence: Evidence,
  own: Pick<AdmissionWorld, 'excuses' | 'countedUntilMs'>,
): AdmissionWorld {
  const { server, hosts } = view
  return {
    ...own,
    order: evidence.order,
    skyhook: (name) => skyhookOf(view, name),
    policy: (name) =>
      server.object('deploymentpolicies', undefined, name)?.['spec'] as DeploymentPolicySpec | undefined,
    nodes: () => server.objects('nodes') as unknown as readonly KubernetesNode[],
    hostOf: (node) => evidence.hostNamed(node)?.name,
    isOut: evidence.disruption.isOut,
    isTainted: (node) => hasRequiredTaint(node, requiredTaint),
    isJoining(name, skyhookName) {
      const [host, skyhook] = [hosts.get(name), skyhookOf(view, skyhookName)]
      if (host === undefined) return undefined
      return skyhook !== undefined && isJoining(view, host, skyhook) && !isWorkedOff(view, evidence, host)
    },
    defaultBudgets: () => [...hosts.values()].flatMap(({ defaultBudgets }) => defaultBudgets()),
    soaksUntilMs: evidence.soaks.untilMs,
    slackMs: view.slackMs,
  }
}

/**
 * What is required is finished, or uninstalled if it is deleted, and its agent only has to lift the taint: on a host of
 * the control plane it waits for static pods before that.
 */
function isWorkedOff(view: World, { work, lacksStaticPods }: Evidence, host: Host): boolean {
  const pods = view.server.objects('pods') as readonly RunningPod[]
  const hasStaticPods = pods.some((pod) => isStatic(pod) && isRunningOn(pod, host.nodeName()))
  if (hasStaticPods && lacksStaticPods(host.name)) return false
  const node = nodeOf(view, host)
  const required = skyhooksOf(view).filter((one) => one.spec.runtimeRequired === true && isSelected(one, node))
  const leftOf = (one: Skyhook): readonly string[] =>
    one.metadata.deletionTimestamp === undefined ? work.unfinished(host.name, one) : work.toUninstall(host.name, one)
  return required.length > 0 && required.every((one) => leftOf(one).length === 0)
}

function* restored(view: World, atMs: number): Generator<AdmissionFact> {
  yield { kind: 'object', of: 'node', name: '', by: undefined, atMs }
  for (const { metadata } of skyhooksOf(view))
    yield { kind: 'object', of: 'skyhook', name: metadata.name, by: undefined, atMs }
}

const kinds = { nodes: 'node', skyhooks: 'skyhook', deploymentpolicies: 'policy' } as const

function committed(
  view: World,
  { change, client }: Extract<Fact, { kind: 'commit' }>,
  atMs: number,
): AdmissionFact | undefined {
  const { type, resource, version, previous } = change
  const { name } = version.object.metadata
  const by = hostOfClient(client, 'agent')
  if (resource.plural === 'leases') return slotFact(view, { by, type, lease: version.object as unknown as Lease, atMs })
  const of = kinds[resource.plural as keyof typeof kinds]
  if (of === undefined) return undefined
  if (of !== 'node') return { kind: 'object', of, name, by, atMs }
  const [before, after] = [previous?.object, type === 'DELETED' ? undefined : version.object] as readonly (
    | KubernetesNode
    | undefined
  )[]
  return { kind: 'object', of, name, by, before, after, atMs }
}

function slotFact(
  view: World,
  {
    by: host,
    type,
    lease,
    atMs,
  }: { readonly by: string | undefined; readonly type: string; readonly lease: Lease; readonly atMs: number },
): AdmissionFact | undefined {
  const slot = readSlot(lease)
  const skyhook = slot?.lease.metadata.labels?.[labelKeys.name]
  if (host === undefined || !slot || skyhook === undefined || type === 'MODIFIED' || !isSlotOf(slot, skyhook))
    return undefined
  const holder = view.hosts.get(host)
  const hasOther = slotsOf(view).some(
    (one) => one.uid !== slot.uid && one.holder === holder?.nodeName() && isSlotOf(one, skyhook),
  )
  const change = type === 'ADDED' ? 'created' : 'deleted'
  const isOfRegistration = { isFormer: isFormer(view, slot, holder), hasOther }
  const { kind, compartmentName: compartment } = slot
  return {
    kind: 'slot',
    host,
    skyhook,
    change,
    isRecovery: kind === 'recovery',
    compartment,
    ...isOfRegistration,
    atMs,
  }
}

function answered(event: Fact, atMs: number): AdmissionFact | undefined {
  if (event.kind !== 'answered') return undefined
  const { client, code, query, verb, resource, name } = event.entry
  const host = hostOfClient(client, 'agent')
  if (host === undefined || code !== 200 || query['resourceVersion'] !== undefined) return undefined
  const read = { kind: 'read', host, fromMs: event.fromMs ?? atMs, atMs } as const
  if (verb === 'get' && resource === 'skyhooks') return { ...read, of: 'skyhook', name }
  if (verb === 'get' && resource === 'deploymentpolicies') return { ...read, of: 'policy', name }
  const skyhook = verb === 'list' && resource === 'leases' ? skyhookIn(query['labelSelector']) : undefined
  return skyhook === undefined ? undefined : { ...read, of: 'slots', name: skyhook }
}

/** Of a LIST for one scope, or for that and the control plane's. */
const skyhookIn = (labelSelector = ''): string | undefined => {
  const [key, value = ''] = labelSelector.split(/=| in \(,/u)
  return key === labelKeys.name ? value.split(/[,)]/u)[0] : undefined
}
