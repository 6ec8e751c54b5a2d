/** Skyhooks for tests, and what a Node shows of them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import * as keys from '../../../src/schemas/annotations.ts'
import type { Companion, NodeStateEntry, PublishedReason } from '../../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { PackageSpec, Skyhook, SkyhookSpec } from '../../../src/schemas/skyhook.ts'

export type Manifest = Pick<Skyhook, 'apiVersion' | 'kind' | 'spec'> & {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
}

/** Skyhooks of these tests select nodes with this label and their name as value. */
export const selectorLabel = 'skyhook.nvidia.com/test-node'

const folder = join(import.meta.dirname, '..', '..', 'fixtures', 'skyhooks')

/** A file of test/fixtures/skyhooks under another name, selecting the nodes labelled with that. */
export function fixture(file: string, name: string, registry: string): Manifest {
  const read = parse(readFileSync(join(folder, file), 'utf8').replaceAll('REGISTRY', registry)) as Manifest
  return manifest(name, read.spec)
}

export function manifest(name: string, spec: SkyhookSpec): Manifest {
  return {
    apiVersion: 'skyhook.nvidia.com/v1alpha1',
    kind: 'Skyhook',
    metadata: { name },
    spec: { ...spec, nodeSelectors: { matchLabels: { [selectorLabel]: name } } },
  }
}

export type Scripts = Partial<
  Record<
    | 'apply'
    | 'apply_check'
    | 'config'
    | 'config_check'
    | 'post_interrupt'
    | 'post_interrupt_check'
    | 'uninstall'
    | 'uninstall_check',
    string
  >
>

/** The package `shellscript` with these scripts by mode; modes without one have nothing to do. */
export function shellscript(registry: string, scripts: Scripts, more: Partial<PackageSpec> = {}): PackageSpec {
  const configMap = Object.fromEntries(Object.entries(scripts).map(([mode, script]) => [`${mode}.sh`, script]))
  return { version: '1.1.0', image: `${registry}/skyhook-packages/shellscript`, configMap, ...more }
}

/** The journal of the scripts of `journaled`, and the file that they wait for. */
export const journalOf = (name: string): string => `/var/tmp/${name}.journal`
export const releaseFileOf = (name: string): string => `/var/tmp/${name}.go`

/**
 * Scripts of all modes but uninstall's that write `<seconds> <mode> begins` and `… ends` to a journal on the host,
 * which proves what ran, how often and when. `waiting` names the mode that continues only once the file
 * `releaseFileOf(name)` exists.
 */
export function journaled(name: string, waiting?: keyof Scripts): Scripts {
  const script = (mode: keyof Scripts): string =>
    [
      `echo "$(date +%s.%N) ${mode} begins" >>${journalOf(name)}`,
      ...(mode === waiting ? [`until [ -e ${releaseFileOf(name)} ]; do sleep 0.05; done`] : []),
      `echo "$(date +%s.%N) ${mode} ends" >>${journalOf(name)}`,
    ].join('\n')
  const modes = ['apply', 'apply_check', 'config', 'config_check', 'post_interrupt'] as const
  return Object.fromEntries(modes.map((mode) => [mode, script(mode)]))
}

/** Lines of such a journal without their times. */
export const withoutTimes = (lines: readonly string[]): string[] => lines.map((line) => line.replace(/^\S+ /, ''))

export const onceEach = (...modes: (keyof Scripts)[]): string[] =>
  modes.flatMap((mode) => [`${mode} begins`, `${mode} ends`])

export type PublishedState = {
  readonly status: string | undefined
  readonly label: string | undefined
  readonly version: string | undefined
  readonly stateText: string | undefined
  readonly state: Readonly<Record<string, NodeStateEntry>>
  readonly companion: Companion | undefined
  readonly reason: PublishedReason | undefined
  /** `True Incomplete` and the like. */
  readonly notReady: string | undefined
  readonly erroring: string | undefined
}

/** Everything that a Node publishes of one Skyhook. */
export function publishedState(node: KubernetesNode | undefined, skyhook: string): PublishedState {
  const { annotations = {}, labels = {} } = node?.metadata ?? {}
  const json = (key: string): unknown => (annotations[key] === undefined ? undefined : JSON.parse(annotations[key]))
  const condition = (type: string): string | undefined => {
    const found = node?.status?.conditions?.find((one) => one.type === type)
    return found && `${found.status} ${found.reason}`
  }
  return {
    status: annotations[keys.statusKey(skyhook)],
    label: labels[keys.statusKey(skyhook)],
    version: annotations[keys.versionKey(skyhook)],
    stateText: annotations[keys.nodeStateKey(skyhook)],
    state: (json(keys.nodeStateKey(skyhook)) ?? {}) as PublishedState['state'],
    companion: json(keys.journalKey(skyhook)) as Companion | undefined,
    reason: json(keys.reasonKey(skyhook)) as PublishedReason | undefined,
    notReady: condition(keys.notReadyCondition(skyhook)),
    erroring: condition(keys.erroringCondition(skyhook)),
  }
}

/** Keys of annotations, labels and conditions that mention the Skyhook. */
export function traces(node: KubernetesNode, skyhook: string): string[] {
  const { annotations = {}, labels = {} } = node.metadata
  const names = [
    ...Object.keys(annotations),
    ...Object.keys(labels),
    ...(node.status?.conditions ?? []).map(({ type }) => type),
  ]
  return names.filter((key) => key.endsWith(`_${skyhook}`) || key.includes(`/${skyhook}/`))
}
