/**
 * Clusters that NodeWright, the successor of the Skyhook operator, has migrated or is migrating, made from the recorded
 * moments by what it documents: objects and keys of the old group, of the new one, and what its agents leave on hosts.
 */
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { parseJson } from '../../src/schemas/json.ts'
import type { HostView } from '../kit/fleet/world-view.ts'
import { filesOf } from '../kit/files/host-files.ts'
import { hostOf, operatorEntries } from './simulation.ts'
import type { Moment, RecordedSkyhook } from '../kit/takeover/moments.ts'

const oldPrefix = 'skyhook.nvidia.com/'
const newPrefix = 'nodewright.nvidia.com/'

/** What the migration copies: of annotations and labels, by the part before the name of the rollout. */
const copied = /^skyhook\.nvidia\.com\/((nodeState|status|version|cordon|drainStart|autoTaint)_.*|ignore)$/

type Texts = Readonly<Record<string, string>>
type KeysOf = (all: Texts, version: string) => Texts

/** Keys of both groups: the old ones frozen, the new ones live. */
const copiedKeys: KeysOf = (all, version) => ({ ...all, ...newKeys(all, version) })

function newKeys(all: Texts, version: string): Texts {
  const entries = Object.entries(all).flatMap(([key, value]): [string, string][] => {
    if (!copied.test(key)) return []
    const name = key.slice(oldPrefix.length)
    return [[newPrefix + name, name.startsWith('version_') ? version : value]]
  })
  return Object.fromEntries(entries)
}

/** The old ones are gone, but for those that the prune leaves. */
const prunedKeys: KeysOf = (all, version) => {
  const kept = Object.entries(all).filter(([key]) => !copied.test(key) || /\/(autoTaint_|ignore)/.test(key))
  return { ...Object.fromEntries(kept), ...newKeys(all, version) }
}

const noKeys: KeysOf = (all) => Object.fromEntries(Object.entries(all).filter(([key]) => !key.startsWith(oldPrefix)))

function withKeys(node: KubernetesNode, keysOf: KeysOf, version: string): KubernetesNode {
  const { annotations = {}, labels = {} } = node.metadata
  const ofGroup = (type: string): boolean => type.startsWith(oldPrefix)
  const conditions = (node.status?.conditions ?? []).flatMap((condition) => {
    if (!ofGroup(condition.type)) return [condition]
    const renamed = { ...condition, type: condition.type.replace(oldPrefix, newPrefix) }
    return keysOf === copiedKeys ? [condition, renamed] : keysOf === prunedKeys ? [renamed] : []
  })
  const extra = extraKeys(annotations, version)
  return {
    ...node,
    metadata: {
      ...node.metadata,
      annotations: { ...keysOf(annotations, version), ...(keysOf === noKeys ? {} : extra) },
      labels: keysOf(labels, version),
    },
    status: { ...node.status, conditions },
  }
}

/** Of a node that it has cordoned: what newer versions of it write besides. */
function extraKeys(annotations: Texts, version: string): Texts {
  const [, name] = Object.keys(annotations).flatMap((key) => /\/cordon_(.+)$/.exec(key) ?? [])
  if (name === undefined) return {}
  const blocker = { namespace: 'apps', name: 'web-0', reason: 'PodDisruptionBudget' }
  return {
    [`${newPrefix}drainStart_${name}`]: '2026-11-22T08:38:42.123456789Z',
    ...(version >= 'v0.20' && { [`${newPrefix}drainBlocked_${name}`]: JSON.stringify([blocker]) }),
  }
}

/** What the Skyhooks of the old group show. */
type Legacy = 'as recorded' | 'last text' | 'empty'

const legacySkyhook = (skyhook: RecordedSkyhook, legacy: Legacy): RecordedSkyhook =>
  legacy === 'empty' ? ({ ...skyhook, status: {} } as unknown as RecordedSkyhook) : skyhook

export type World = {
  readonly moment: Moment
  /** Its group is served. */
  readonly isServed: boolean
  /** Of the program that ran the steps: what it leaves on the hosts differs. */
  readonly agent: 6 | 7
}

/** By letter of the contract, then what differs from it. `version`: of the operator that wrote last. */
export const worlds = {
  'A by v0.15': (moment) => ({ moment: versioned(moment, 'v0.15.0'), isServed: false, agent: 6 }),
  'A by v0.17': (moment) => ({ moment: versioned(moment, 'v0.17.1'), isServed: false, agent: 6 }),
  'B held by v0.18': (moment) => ({ moment: versioned(moment, 'v0.17.1'), isServed: true, agent: 6 }),
  'B held by v0.20': (moment) => ({ moment: versioned(moment, 'v0.17.1'), isServed: true, agent: 6 }),
  'in mid-migration to v0.19': (moment) => {
    const nodes = moment.nodes.map((node, index) => (index === 1 ? node : withKeys(node, copiedKeys, 'v0.19.0')))
    return { moment: { ...moment, nodes }, isServed: true, agent: 6 }
  },
  'C converged by v0.18': (moment) => migrated(moment, copiedKeys, { version: 'v0.18.0', legacy: 'last text' }),
  'C converged by v0.20': (moment) => migrated(moment, copiedKeys, { version: 'v0.20.0', legacy: 'last text' }),
  'D pruned by v0.19': (moment) => migrated(moment, prunedKeys, { version: 'v0.19.1', legacy: 'last text' }),
  'D pruned by v0.20, Skyhook created after it': (moment) =>
    migrated(moment, prunedKeys, { version: 'v0.20.0', legacy: 'empty' }),
  'E or F, and somebody applies a Skyhook of that name': (moment) =>
    migrated({ ...moment, skyhooks: moment.skyhooks.map(created) }, prunedKeys, {
      version: 'v0.20.0',
      legacy: 'empty',
    }),
  'E or F, its definitions deleted, and somebody applies a Skyhook of that name': (moment) => ({
    ...migrated({ ...moment, skyhooks: moment.skyhooks.map(created) }, prunedKeys, {
      version: 'v0.20.0',
      legacy: 'empty',
    }),
    isServed: false,
  }),
  'D, its definitions deleted': (moment) => ({
    ...migrated(moment, prunedKeys, { version: 'v0.20.0', legacy: 'last text' }),
    isServed: false,
  }),
  'C, its definitions deleted': (moment) => ({
    ...migrated(moment, copiedKeys, { version: 'v0.18.0', legacy: 'last text' }),
    isServed: false,
  }),
  'D, its definitions deleted, and the Skyhook made from its object': (moment) => {
    const annotations = {
      'nodewright.nvidia.com/mirrored-from': 'it',
      'nodewright.nvidia.com/mirrored-generation': '1',
    }
    const world = migrated(moment, noKeys, { version: 'v0.20.0', legacy: 'empty' })
    const skyhooks = world.moment.skyhooks.map((one) => ({
      ...created(one),
      metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, ...annotations } },
    }))
    return { moment: { ...world.moment, skyhooks }, isServed: false, agent: 7 }
  },
  'D, its definitions and all keys deleted': (moment) => ({
    ...migrated(moment, noKeys, { version: 'v0.20.0', legacy: 'empty' }),
    isServed: false,
  }),
  'A, all keys lost': (moment) => ({
    ...migrated(moment, noKeys, { version: 'v0.17.1', legacy: 'as recorded' }),
    isServed: false,
    agent: 6,
  }),
} as const satisfies Readonly<Record<string, (moment: Moment) => World>>

/** Agents take over what they find in these, as they always did. */
export const takenOver: readonly string[] = ['A by v0.15', 'A by v0.17']

function migrated(moment: Moment, keysOf: KeysOf, by: { readonly version: string; readonly legacy: Legacy }): World {
  return {
    moment: {
      ...moment,
      skyhooks: moment.skyhooks.map((one) => legacySkyhook(one, by.legacy)),
      nodes: moment.nodes.map((node) => withKeys(node, keysOf, by.version)),
      pods: [], // its Jobs have pods of their own, which have ended
    },
    isServed: true,
    agent: 7,
  }
}

/** By a person, or by GitOps: nothing of the operator is on it. */
const created = ({ metadata, ...rest }: RecordedSkyhook): RecordedSkyhook => {
  const { name, uid, creationTimestamp, resourceVersion } = metadata
  return { ...rest, metadata: { name, uid, creationTimestamp, resourceVersion } }
}

const versioned = (moment: Moment, version: string): Moment =>
  JSON.parse(
    JSON.stringify(moment).replaceAll(/(skyhook\.nvidia\.com\/version[^"]*":")[^"]*/g, `$1${version}`),
  ) as Moment

/** What has run on a host is there, whatever the Node shows: flags of steps, history, a marker of a reboot. */
export function leaveFiles(moment: Moment, agent: 6 | 7, view: HostView): void {
  const mine = operatorEntries(moment).filter(({ host }) => host === hostOf(view.nodeName()))
  const files = filesOf(view.host.disk)
  for (const { skyhook, package: name, version, passed } of mine) {
    const folder = `/var/lib/skyhook/${skyhook}`
    files.write(`${folder}/flags/START`, '')
    if (passed.length === 0) continue
    files.write(`${folder}/flags/apply-check_ALL_CHECKED`, '')
    files.write(`${folder}/flags/check_results`, 'apply-check.sh False')
    const [flag, history] = agent === 6 ? filesOfAgent6(version) : filesOfAgent7(version)
    files.write(`${folder}/flags/${name}/${version}/${flag.name}`, flag.content)
    files.write(`${folder}/history/${name}.json`, history)
    const resource = `${skyhook}-11111111-2222-3333-4444-555555555555-1_${name}_${version}`
    if (passed.includes('interrupt'))
      files.write(`${folder}/interrupts/flags/${resource}/no_op.complete`, '1790066282.123456')
  }
  view.host.disk.syncAll()
}

type Flag = { readonly name: string; readonly content: string }

/** Written by Python: its spelling of JSON, and microseconds. */
function filesOfAgent6(version: string): readonly [Flag, string] {
  const content = 'last_run: 2026-11-22T08:38:42.123456\nstep_always_runs: False'
  const entry = `{"version": "${version}", "time": "2026-11-22T08:38:42.654321+00:00"}`
  return [
    { name: `apply.sh_${Buffer.from('[]_[0]').toString('base64')}`, content },
    `{"current-version": "${version}", "history": [${entry}]}`,
  ]
}

/** Written by Go, indented, with a line feed at the end. */
function filesOfAgent7(version: string): readonly [Flag, string] {
  const hash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
  const history = { 'current-version': version, history: [{ version, time: '2026-11-22T08:38:42.654321987Z' }] }
  return [
    { name: `apply.sh-${hash}.flag`, content: 'last_run: 2026-11-22T08:38:42Z\nstep_always_runs: false\n' },
    `${JSON.stringify(history, undefined, 2)}\n`,
  ]
}

/** The reason that a Node shows for a Skyhook. */
export function shownReason(
  node: KubernetesNode,
  skyhook: string,
): { readonly reason?: string; readonly message?: string } {
  const text = node.metadata.annotations?.[`skyhook.nvidia.com/reason_${skyhook}`]
  return (text === undefined ? {} : parseJson(text)) as { readonly reason?: string; readonly message?: string }
}
