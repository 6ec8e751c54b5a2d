/** What an administrator changes while a fleet works: Skyhooks, and Nodes. */
import { disableKey, ignoreLabel, pauseKey, resetBatchesKey } from '../../../src/schemas/annotations.ts'
import { policiesPath } from '../../../src/schemas/api.ts'
import type { DeploymentPolicySpec } from '../../../src/schemas/deployment-policy.ts'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { type ActionKind, specOf, type Target } from './action-kind.ts'
import { nodePath, skyhookPath } from './cluster-writer.ts'
import { controlPlaneLabel, serviceName } from './fleet-host.ts'
import { healObjects } from './heal.ts'
import { policyName } from './plan-policies.ts'
import { packageSpec, paces } from './plan-skyhooks.ts'

/** Nodes are idle until there is one. */
const impossible = { idle: 'there is no Skyhook yet' }

/** Refused where the Skyhook is not there. */
function patchSpec({ world, skyhook }: Target, spec: object): 'skipped' | undefined {
  if (specOf({ world, skyhook }) === undefined) return 'skipped'
  world.admin.patch(skyhookPath(skyhook), { spec })
  return undefined
}

const annotate = (key: string): ActionKind => ({
  impossible,
  lastsMs: [5_000, 60_000],
  start({ world, skyhook }) {
    const path = skyhookPath(skyhook)
    if (specOf({ world, skyhook }) === undefined) return 'skipped'
    world.admin.patch(path, { metadata: { annotations: { [key]: 'true' } } })
    return () => world.admin.patch(path, { metadata: { annotations: { [key]: null } } })
  },
})

function label({ world, host }: Target, key: string, value: string | null, former: string | null): () => void {
  world.admin.patch(nodePath(host.nodeName()), { metadata: { labels: { [key]: value } } })
  return () => world.admin.patch(nodePath(host.nodeName()), { metadata: { labels: { [key]: former } } })
}

/** A package of the Skyhook and what is to change of it. */
function patchPackage(target: Target, changeOf: (spec: PackageSpec) => object): 'skipped' | undefined {
  const packages = Object.entries(specOf(target)?.packages ?? {})
  const chosen = packages[Number(target.detail['index']) % packages.length]
  if (chosen === undefined) return 'skipped'
  return patchSpec(target, { packages: { [chosen[0]]: changeOf(chosen[1]) } })
}

const nextVersion = (version: string): string => `1.${Number(version.split('.')[1]) + 1}.0`
const interrupts: readonly Interrupt[] = [{ type: 'reboot' }, { type: 'service', services: [serviceName] }]

export const edits = {
  budget: {
    impossible,
    draw: (chance) => ({
      budget: chance.pick([{ count: 3 }, { count: 1 }, { count: 0 }, { count: 2 }, { percent: 34 }, { percent: 67 }]),
    }),
    start: (target) =>
      patchSpec(target, { interruptionBudget: { count: null, percent: null, ...(target.detail['budget'] as object) } }),
  },
  selector: {
    impossible,
    lastsMs: [5_000, 60_000],
    start(target) {
      const select = (pool: string) => patchSpec(target, { nodeSelectors: { matchLabels: { pool } } })
      return select('b') ?? (() => void select('a'))
    },
  },
  'node-relabeled': { lastsMs: [5_000, 60_000], start: (target) => label(target, 'pool', 'b', 'a') },
  paused: annotate(pauseKey),
  disabled: annotate(disableKey),
  ignored: { lastsMs: [5_000, 60_000], start: (target) => label(target, ignoreLabel, 'true', null) },
  priority: {
    impossible,
    draw: (chance) => ({ priority: chance.pick([50, 200, 300]) }),
    start: (target) => patchSpec(target, { priority: target.detail['priority'] }),
  },
  pace: {
    impossible,
    draw: (chance) => ({ pace: chance.pick([...paces, null]) }),
    start: (target) => patchSpec(target, { pace: target.detail['pace'] }),
  },
  /** The budget of joining nodes. */
  bootstrap: {
    impossible,
    draw: (chance) => ({ count: chance.pick([0, 1, 2, null]) }),
    start: (target) => patchSpec(target, { bootstrap: { count: target.detail['count'] } }),
  },
  'runtime-required': {
    impossible,
    lastsMs: [5_000, 60_000],
    start(target) {
      const former = specOf(target)?.runtimeRequired === true
      const set = (runtimeRequired: boolean) => patchSpec(target, { runtimeRequired })
      return set(!former) ?? (() => void set(former))
    },
  },
  'package-added': {
    impossible,
    draw: (chance) => ({
      name: chance.pick(['new1', 'new2']),
      interrupt: chance.pick([...interrupts, undefined, undefined]),
    }),
    start: (target) =>
      patchSpec(target, {
        packages: {
          [String(target.detail['name'])]: packageSpec(
            String(target.detail['name']),
            target.detail['interrupt'] as Interrupt,
          ),
        },
      }),
  },
  'package-removed': {
    impossible,
    draw: (chance) => ({ index: chance.integer(0, 5) }),
    start(target) {
      const names = Object.keys(specOf(target)?.packages ?? {})
      const name = names[Number(target.detail['index']) % names.length]
      return names.length < 2 || name === undefined ? 'skipped' : patchSpec(target, { packages: { [name]: null } })
    },
  },
  'package-version': {
    impossible,
    draw: (chance) => ({ index: chance.integer(0, 5) }),
    start: (target) => patchPackage(target, ({ version }) => ({ version: nextVersion(version) })),
  },
  'package-config': {
    impossible,
    draw: (chance) => ({ index: chance.integer(0, 5), value: String(chance.integer(1, 1_000)) }),
    start: (target) => patchPackage(target, () => ({ configMap: { 'a.conf': target.detail['value'] } })),
  },
  'interrupt-added': {
    impossible,
    draw: (chance) => ({ index: chance.integer(0, 5), interrupt: chance.pick(interrupts) }),
    start: (target) => patchPackage(target, () => ({ interrupt: target.detail['interrupt'] })),
  },
  'skyhook-deleted': {
    impossible,
    lastsMs: [3_000, 40_000],
    draw: (chance) => ({ isCreatedAgain: chance.isHit(0.8) }),
    start({ world, skyhook, detail }) {
      const spec: SkyhookSpec | undefined = specOf({ world, skyhook })
      if (spec === undefined) return 'skipped'
      world.admin.send('DELETE', skyhookPath(skyhook))
      return () => {
        if (detail['isCreatedAgain'] === true) world.createSkyhook({ name: skyhook, spec })
      }
    },
  },
  cordoned: {
    lastsMs: [5_000, 60_000],
    start({ world, host }) {
      const set = (unschedulable: boolean | null): void =>
        world.admin.patch(nodePath(host.nodeName()), { spec: { unschedulable } })
      set(true)
      return () => set(null)
    },
  },
  uncordoned: {
    start: ({ world, host }) => world.admin.patch(nodePath(host.nodeName()), { spec: { unschedulable: null } }),
  },
  'control-plane-labeled': {
    lastsMs: [10_000, 120_000],
    start: (target) =>
      target.host.isControlPlane
        ? label(target, controlPlaneLabel, null, '')
        : label(target, controlPlaneLabel, '', null),
  },
} satisfies Readonly<Record<string, ActionKind>>

/** For plans with policies alone: others are drawn from the kinds above. */
export const policyEdits = {
  policy: {
    impossible,
    start({ world, skyhook, detail }) {
      const name = specOf({ world, skyhook })?.deploymentPolicy ?? policyName(skyhook)
      if (world.server.object('deploymentpolicies', undefined, name) === undefined) return 'skipped'
      const { default: fallback, compartments = [] } = detail['spec'] as DeploymentPolicySpec
      const absent = { percent: null, count: null, fixed: null, linear: null, exponential: null }
      const { percent, count, ...strategies } = absent
      const budget = { percent, count, ...fallback.budget }
      const strategy = { ...strategies, ...fallback.strategy }
      const spec = { default: { budget, strategy }, compartments }
      world.admin.patch(`${policiesPath}/${name}`, { spec })
      return undefined
    },
  },
  /** The same policy under another name: it is created, named, and the old one deleted. */
  'policy-renamed': {
    impossible,
    start(target) {
      const { world, detail } = target
      const before = specOf(target)?.deploymentPolicy ?? ''
      const spec = world.server.object('deploymentpolicies', undefined, before)?.['spec']
      if (spec === undefined) return 'skipped'
      const name = String(detail['name'])
      world.admin.send('POST', policiesPath, { metadata: { name }, spec })
      patchSpec(target, { deploymentPolicy: name })
      world.admin.send('DELETE', `${policiesPath}/${before}`)
      return undefined
    },
  },
  'batches-reset': {
    impossible,
    start({ world, skyhook, detail }) {
      if (specOf({ world, skyhook }) === undefined) return 'skipped'
      world.admin.patch(skyhookPath(skyhook), { metadata: { annotations: { [resetBatchesKey]: detail['text'] } } })
      return undefined
    },
  },
} satisfies Readonly<Record<string, ActionKind>>

/** Of a few seeds, by plan-lives.ts. */
export const lifeEdits = {
  /** Deleted, and created again under its name as soon as that can be, or a little later. */
  'skyhook-replaced': {
    impossible,
    lastsMs: [60_000, 60_001],
    draw: (chance) => ({
      afterMs: chance.pick([0, 0, 100, 1_000, 5_000]),
      keepsPackages: chance.isHit(0.3),
      adds: chance.pick(['none', 'none', 'plain', 'reboot']),
      drops: chance.isHit(0.3),
    }),
    start(target) {
      const { world, skyhook, detail } = target
      const before = specOf(target)
      if (before === undefined) return 'skipped'
      const { keepsPackages, adds, drops } = detail
      const names = Object.keys(before.packages ?? {})
      if (keepsPackages === true)
        patchSpec(target, {
          packages: Object.fromEntries(names.map((name) => [name, { uninstall: { enabled: false } }])),
        })
      const packages = { ...before.packages }
      if (adds !== 'none') packages['again'] = packageSpec('again', adds === 'reboot' ? { type: 'reboot' } : undefined)
      if (drops === true && names.length > 1) delete packages[names[0] as string]
      world.admin.send('DELETE', skyhookPath(skyhook))
      let isCreated = false
      const create = (): void => {
        if (isCreated) return
        if (world.server.object('skyhooks', undefined, skyhook) !== undefined)
          return void world.clock.startTimer(100, create, { isBackground: true })
        isCreated = true
        world.createSkyhook({ name: skyhook, spec: { ...before, packages } })
        // e.g. a budget of 0, which was taken back of the one before
        if (world.faultsEndedAtMs() !== undefined) healObjects(world)
      }
      world.clock.startTimer(Number(detail['afterMs']), create)
      return create
    },
  },
} satisfies Readonly<Record<string, ActionKind>>

/** Of plans with pods that stay, and of clusters that grow and shrink. */
export const drainEdits = {
  tolerating: {
    impossible,
    start: (target) => patchSpec(target, { drain: { tolerating: target.detail['tolerating'] } }),
  },
  'single-node': {
    impossible,
    start: (target) => patchSpec(target, { drain: { singleNode: target.detail['singleNode'] } }),
  },
} satisfies Readonly<Record<string, ActionKind>>
