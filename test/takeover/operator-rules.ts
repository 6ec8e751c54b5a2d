/**
 * What the operator would still do if it came back, by its own rules: it decides by the state on Nodes, by the key of a
 * ConfigMap that differs from the spec, and by the keys of the last roll in the status.
 */
import { cordonKey, nodeStateKey, statusKey, versionKey } from '../../src/schemas/annotations.ts'
import { isObject, parseJson } from '../../src/schemas/json.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { matchesGlob, selects } from '../../src/schemas/selectors.ts'
import type { PackageSpec, Skyhook } from '../../src/schemas/skyhook.ts'

export type OperatorCluster = {
  readonly skyhooks: readonly Skyhook[]
  readonly nodes: readonly KubernetesNode[]
  /** Data by name. */
  readonly configMaps: ReadonlyMap<string, Readonly<Record<string, string>>>
}

/** Empty: it finds nothing to do. */
export function operatorWork({ skyhooks, nodes, configMaps }: OperatorCluster): readonly string[] {
  return skyhooks.flatMap((skyhook) => {
    const { metadata, spec } = skyhook
    const selected = nodes.filter((node) => selects(spec.nodeSelectors, node.metadata.labels ?? {}))
    const rolls = Object.entries(spec.packages ?? {}).flatMap(([name, { version, configMap = {} }]) => {
      const rolledOut = configMaps.get(`${metadata.name}-${name}-${version}`.toLowerCase())
      const isOther = rolledOut !== undefined && JSON.stringify(rolledOut) !== JSON.stringify(configMap)
      return isOther ? [`${metadata.name} rolls out the configuration of ${name}`] : []
    })
    return [...rolls, ...selected.flatMap((node) => workOn(skyhook, node))]
  })
}

function workOn({ metadata: { name: skyhook }, spec, status }: Skyhook, { metadata }: KubernetesNode): string[] {
  const { name: node, annotations = {}, labels = {} } = metadata
  const parsed = parseJson(annotations[nodeStateKey(skyhook)] ?? '{}')
  const state = isObject(parsed) ? parsed : {}
  const work = Object.entries(spec.packages ?? {}).flatMap(([name, one]) => {
    const entry = state[`${name}|${one.version}`]
    const last = hasInterrupt(name, one, status ?? {}) ? 'post-interrupt' : 'config'
    const isComplete = isObject(entry) && entry['state'] === 'complete' && entry['stage'] === last
    return isComplete ? [] : [`${skyhook} works on ${name} on ${node}: ${JSON.stringify(entry)}`]
  })
  const isUninstalling = Object.values(state).some((entry) => isObject(entry) && entry['stage'] === 'uninstall')
  return [
    ...work,
    ...(isUninstalling ? [`${skyhook} uninstalls on ${node}`] : []),
    ...(annotations[statusKey(skyhook)] === 'complete' ? [] : [`${skyhook} is not complete on ${node}`]),
    ...(labels[statusKey(skyhook)] === 'complete' ? [] : [`${skyhook} has no label on ${node}`]),
    ...(annotations[versionKey(skyhook)]?.startsWith('v') === true ? [] : [`${skyhook} migrates ${node}`]),
    ...(annotations[cordonKey(skyhook)] === undefined ? [] : [`${skyhook} owns a cordon of ${node}`]),
  ]
}

function hasInterrupt(name: string, { interrupt, configInterrupts = {} }: PackageSpec, status: object): boolean {
  const updates = (status as { readonly configUpdates?: Readonly<Record<string, readonly string[]>> }).configUpdates
  const keys = updates?.[name] ?? []
  if (keys.length === 0) return interrupt !== undefined
  return Object.keys(configInterrupts).some((pattern) => keys.some((key) => matchesGlob(pattern, key)))
}
