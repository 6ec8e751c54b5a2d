/** The edits of administrators. One that is not meant to stay is taken back after a while. */
import { setTimeout as sleep } from 'node:timers/promises'
import { readSlot } from '../../src/lease/slot.ts'
import { disableKey, ignoreLabel, pauseKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { InterruptionBudget, PackageSpec, Skyhook } from '../../src/schemas/skyhook.ts'
import { ignoreNotFound, paths } from '../kit/cluster/kube.ts'
import { isCordoned, isNodeReady } from '../kit/cluster/node-availability.ts'
import { agentCommand } from '../kit/cluster/agent-process.ts'
import { killProcesses, Missed, withFree, write, type Arena } from './arena.ts'
import type { EditKind, PlannedAction } from './plan.ts'
import {
  finalBudget,
  incomplete,
  interrupts,
  labelNode,
  nodeLabelOf,
  packageOf,
  skyhookNames,
  type SkyhookName,
} from './scene.ts'
import { namespace, protectedLabels } from './protected-pods.ts'

const versions = ['1.1.0', '1.1.1'] as const
/** The changed packages of each Skyhook. */
const mainPackage = { reboots: 'kernel', services: 'web' } as const
const extraPackage = 'extra'
/** With 0 nothing moves, so that one is followed by more. */
const budgets: readonly InterruptionBudget[] = [
  { count: 3 },
  { count: 1 },
  { count: 0 },
  { percent: 40 },
  { percent: 75 },
  { count: 2 },
]
/** How long an edit waits for a host that is about to reboot. */
const rebootWaitMs = 25_000
/** A boot under load. */
const maxBootMs = 60_000
/** After the boot agents come back in this time and see what was edited meanwhile. */
const agentStartMs = 8_000
let round = 0

/** Returns what it edited, in words. Throws `Missed` if there is nothing to edit. */
export async function makeEdit(arena: Arena, kind: EditKind, action: PlannedAction): Promise<string> {
  const { history, nodes } = arena
  const skyhook = skyhookNames[Math.floor(action.target * skyhookNames.length)] as SkyhookName
  /** One at a time of those that are taken back. */
  const forAWhile = async (
    what: string,
    edit: () => Promise<unknown>,
    undo: () => Promise<unknown>,
    meanwhile: () => Promise<unknown> = async () => await sleep(action.lastsMs),
  ): Promise<string> =>
    await withFree(arena, [what], 0, async () => {
      const startedMs = Date.now()
      await edit()
      await meanwhile()
      await undo()
      return `${what} for ${((Date.now() - startedMs) / 1000).toFixed(1)} s`
    })
  const annotated = async (name: SkyhookName, key: string, meanwhile?: () => Promise<unknown>): Promise<string> =>
    await forAWhile(
      `${name} ${key}`,
      async () => await editSkyhook(arena, name, { metadata: { annotations: { [key]: 'true' } } }),
      async () => await editSkyhook(arena, name, { metadata: { annotations: { [key]: null } } }),
      meanwhile,
    )
  /** The edit lasts until the node has rebooted and its agent has had some time. */
  const whileRebooting = async (edit: (meanwhile: () => Promise<unknown>) => Promise<string>): Promise<string> => {
    const [node, boot] = await rebootingNode(arena)
    const hasBooted = (): boolean => bootOf(arena, node) !== boot && isNodeReady(history.now.nodes.get(node))
    const edited = await edit(async () => {
      // another fault may keep it down
      await history.eventually(`${node} has rebooted`, hasBooted, maxBootMs).catch(() => undefined)
      await sleep(agentStartMs + action.lastsMs / 2)
    })
    return `${node} reboots: ${edited}`
  }

  switch (kind) {
    case 'budget changed': {
      const budget = budgets[Math.floor(action.value * budgets.length)] ?? {}
      if (budget.count !== 0) {
        await setBudget(arena, skyhook, budget)
        return `${skyhook} ${JSON.stringify(budget)}`
      }
      return await forAWhile(
        `${skyhook} budget 0`,
        async () => await setBudget(arena, skyhook, budget),
        async () => await setBudget(arena, skyhook, { count: 2 }),
      )
    }
    case 'budget cut in mid-reboot':
      return await whileRebooting(async (meanwhile) => {
        const count = action.value < 0.5 ? 0 : 1
        return await forAWhile(
          `reboots budget ${count}`,
          async () => await setBudget(arena, 'reboots', { count }),
          async () => await setBudget(arena, 'reboots', { count: 3 }),
          meanwhile,
        )
      })
    case 'paused':
      return await annotated(skyhook, pauseKey)
    case 'disabled':
      return await annotated(skyhook, disableKey)
    case 'paused in mid-reboot':
      return await whileRebooting(async (meanwhile) => await annotated('reboots', pauseKey, meanwhile))
    case 'paused, then a holder of a slot loses its agent': {
      const slots = [...history.now.leases.values()].flatMap((lease) => readSlot(lease) ?? [])
      const held = slots[Math.floor(action.value * slots.length)]
      const name = skyhookNames.find((each) => held?.name.startsWith(`${each}-`))
      if (!held || !name) throw new Missed('no slot is held')
      const paused = await annotated(name, pauseKey, async () => {
        killProcesses(arena, held.holder, agentCommand)
        await sleep(agentStartMs + action.lastsMs / 2)
      })
      return `${held.holder} has ${held.name}: ${paused}`
    }
    case 'disabled in mid-reboot':
      return await whileRebooting(async (meanwhile) => await annotated('reboots', disableKey, meanwhile))
    case 'selector changed':
      return await withFree(arena, nodes, action.value, async (node) => {
        const requirement = { key: 'kubernetes.io/hostname', operator: 'NotIn', values: [node] }
        const select = async (expressions: object[] | null): Promise<unknown> =>
          await editSkyhook(arena, skyhook, { spec: { nodeSelectors: { matchExpressions: expressions } } })
        const what = `${skyhook} without ${node}`
        return await forAWhile(
          what,
          async () => await select([requirement]),
          async () => await select(null),
        )
      })
    case 'node leaves the selector':
      return await withFree(arena, nodes, action.value, async (node) => {
        const label = async (value: string | null): Promise<unknown> =>
          await editNode(arena, node, { metadata: { labels: { [nodeLabelOf(skyhook)]: value } } })
        return await forAWhile(
          `${node} without ${skyhook}`,
          async () => await label(null),
          async () => await label('true'),
        )
      })
    case 'node ignored':
      return await withFree(arena, nodes, action.value, async (node) => {
        const label = async (value: string | null): Promise<unknown> =>
          await editNode(arena, node, { metadata: { labels: { [ignoreLabel]: value } } })
        return await forAWhile(
          `${node} ignored`,
          async () => await label('true'),
          async () => await label(null),
        )
      })
    case 'priorities swapped': {
      const [one, other] = skyhookNames.map((name) => history.now.skyhooks.get(name)?.spec.priority)
      await editSkyhook(arena, skyhookNames[0], { spec: { priority: other } })
      await editSkyhook(arena, skyhookNames[1], { spec: { priority: one } })
      return `${skyhookNames[0]} ${other}, ${skyhookNames[1]} ${one}`
    }
    case 'package version changed': {
      const name = mainPackage[skyhook]
      const version = versions.find((each) => each !== packageNow(arena, skyhook, name)?.version) ?? versions[0]
      return await setPackage(arena, skyhook, name, { version })
    }
    case 'package configuration changed':
      return await setPackage(arena, skyhook, skyhook === 'reboots' ? 'tools' : 'settings', {})
    case 'package added or removed':
      if (!packageNow(arena, skyhook, extraPackage)) return await setPackage(arena, skyhook, extraPackage, {})
      await editSkyhook(arena, skyhook, { spec: { packages: { [extraPackage]: null } } })
      return `${skyhook} without ${extraPackage}`
    case 'interrupt added or removed': {
      const name = skyhook === 'reboots' ? 'tools' : 'settings'
      const has = packageNow(arena, skyhook, name)?.interrupt !== undefined
      const added = skyhook === 'reboots' ? interrupts.reboot : interrupts.service
      const interrupt = (has ? null : added) as PackageSpec['interrupt']
      return await setPackage(arena, skyhook, name, { interrupt: interrupt as NonNullable<typeof interrupt> })
    }
    case 'node cordoned by the administrator':
      return await withFree(arena, nodes, action.value, async (node) => {
        const cordon = async (value: boolean): Promise<unknown> =>
          await editNode(arena, node, { spec: { unschedulable: value } })
        return await forAWhile(
          `${node} cordoned`,
          async () => await cordon(true),
          async () => await cordon(false),
        )
      })
    case 'node uncordoned by the administrator': {
      const cordoned = nodes.filter((node) => isCordoned(history.now.nodes.get(node)))
      return await withFree(arena, cordoned, action.value, async (node) => {
        await editNode(arena, node, { spec: { unschedulable: false } })
        return node
      })
    }
    case 'protected pod runs for a while': {
      const open = nodes.filter((node) => {
        const found = history.now.nodes.get(node)
        return !isCordoned(found) && isNodeReady(found)
      })
      const node = open[Math.floor(action.value * open.length)]
      if (node === undefined) throw new Missed('no node takes a pod')
      const name = `protected-${action.number}`
      const create = async (): Promise<unknown> =>
        await arena.api.json('POST', podsPath, {
          body: { metadata: { name, labels: protectedLabels }, spec: podSpec(node) },
        })
      return await forAWhile(`${name} on ${node}`, create, async () => await endPod(arena, name))
    }
  }
}

/** Gives Skyhooks that are complete everywhere new work, as an administrator with many changes. */
export async function keepBusy(arena: Arena): Promise<string[]> {
  const { history, nodes } = arena
  const idle = skyhookNames.filter((name) => incomplete(history.now, name, nodes).length === 0)
  return await Promise.all(
    idle.map(async (name) => {
      const main = mainPackage[name]
      const version = versions.find((each) => each !== packageNow(arena, name, main)?.version) ?? versions[0]
      return await setPackage(arena, name, main, { version })
    }),
  )
}

/** Undoes every edit that stands in the way of completion, whether it is over or not. */
export async function healEdits(arena: Arena): Promise<void> {
  const { api, history, nodes } = arena
  for (const name of skyhookNames) {
    await setBudget(arena, name, { count: finalBudget })
    await editSkyhook(arena, name, {
      metadata: { annotations: { [pauseKey]: null, [disableKey]: null } },
      spec: { nodeSelectors: { matchExpressions: null } },
    })
  }
  for (const node of nodes) {
    await labelNode(arena, node)
    await editNode(arena, node, { metadata: { labels: { [ignoreLabel]: null } } })
  }
  const pods = [...history.now.pods.values()].filter(({ metadata }) => metadata.labels?.['app'] === protectedLabels.app)
  for (const { metadata } of pods) await ignoreNotFound(api, 'DELETE', `${podsPath}/${metadata.name}`)
}

const podsPath = `/api/v1/namespaces/${namespace}/pods`
const podSpec = (node: string): object => ({
  nodeName: node,
  terminationGracePeriodSeconds: 1,
  automountServiceAccountToken: false,
  containers: [{ name: 'workload', image: 'sandbox.local/workload:1', imagePullPolicy: 'Never' }],
})

const endPod = async ({ api }: Arena, name: string): Promise<unknown> =>
  await ignoreNotFound(api, 'DELETE', `${podsPath}/${name}`)

const editSkyhook = async (arena: Arena, name: SkyhookName, body: object): Promise<Skyhook> =>
  await write<Skyhook>(arena, `${paths.skyhooks}/${name}`, body)

async function editNode(arena: Arena, node: string, body: object): Promise<void> {
  if (!arena.history.now.nodes.has(node)) throw new Missed(`${node} has no Node`)
  await write<KubernetesNode>(arena, `${paths.nodes}/${node}`, body)
}

/** A merge patch keeps what it does not name, so all three are named. */
const setBudget = async (arena: Arena, name: SkyhookName, budget: InterruptionBudget): Promise<Skyhook> =>
  await editSkyhook(arena, name, {
    spec: { interruptionBudget: { count: budget.count ?? null, percent: budget.percent ?? null } },
  })

const packageNow = ({ history }: Arena, skyhook: SkyhookName, name: string): PackageSpec | undefined =>
  history.now.skyhooks.get(skyhook)?.spec.packages?.[name]

/** The package with new scripts and these changes. */
async function setPackage(
  arena: Arena,
  skyhook: SkyhookName,
  name: string,
  changes: Partial<PackageSpec>,
): Promise<string> {
  round++
  const version = changes.version ?? packageNow(arena, skyhook, name)?.version ?? versions[0]
  const spec = packageOf(arena.registry, name, skyhook, { ...changes, version, round })
  await editSkyhook(arena, skyhook, { spec: { packages: { [name]: spec } } })
  const { configMap: _, image: __, ...shown } = { ...changes, version, round } as PackageSpec & { round: number }
  return `${skyhook} ${name} ${JSON.stringify(shown)}`
}

/** A node that is about to reboot or on its way, and its boot until then; waits for one. */
async function rebootingNode(arena: Arena): Promise<readonly [node: string, boot: string | undefined]> {
  const find = (): string | undefined =>
    [...arena.history.now.leases.values()]
      .flatMap((lease) => readSlot(lease) ?? [])
      .find(({ phase, name, holder, bootId }) => {
        const isOurs = phase === 'rebooting' && name.startsWith('reboots-')
        return isOurs && bootOf(arena, holder) === bootId
      })?.holder
  for (const endMs = Date.now() + rebootWaitMs; Date.now() < endMs; await sleep(50)) {
    const node = find()
    if (node !== undefined) return [node, bootOf(arena, node)]
  }
  throw new Missed('no host rebooted')
}

const bootOf = ({ history }: Arena, node: string): string | undefined =>
  history.now.nodes.get(node)?.status?.nodeInfo?.bootID
