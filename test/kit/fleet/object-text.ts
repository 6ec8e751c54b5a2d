/** What people who read a trace want to know of an object. */
import { apiGroup } from '../../../src/schemas/api.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { readSlot } from '../../../src/lease/slot.ts'
import type { SimObject } from '../api-server/versions.ts'

/** Empty for what has nothing to say beyond its name. */
export function objectText(plural: string, object: SimObject): string {
  switch (plural) {
    case 'nodes':
      return nodeText(object as SimObject & KubernetesNode)
    case 'leases': {
      const slot = readSlot(object as never)
      return slot === undefined ? '' : `held by ${slot.holder}, ${slot.phase}, generation ${slot.generation}`
    }
    case 'skyhooks':
      return skyhookText(object)
    default:
      return ''
  }
}

const published = ['status_', 'reason_', 'cordon_', 'cordoned-before']

function nodeText({ metadata: { annotations = {}, labels = {} }, spec, status }: SimObject & KubernetesNode): string {
  const own = Object.entries(annotations).flatMap(([key, value]) => {
    const name = key.slice(apiGroup.length + 1)
    return published.some((prefix) => name.startsWith(prefix)) ? [`${name}=${reasonIn(value)}`] : []
  })
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'absent'
  const cordon = spec?.unschedulable === true ? ['unschedulable'] : []
  return [...cordon, `Ready=${ready}`, ...Object.keys(labels).filter((key) => key.includes('/')), ...own].join(' ')
}

const reasonIn = (value: string): string => (value.startsWith('{') ? value.replace(/,"since".*/, '}') : value)

function skyhookText(object: SimObject): string {
  const { interruptionBudget, packages = {}, nodeSelectors, priority } = object['spec'] as SkyhookSpec
  const { generation, annotations = {} } = object.metadata
  const versions = Object.entries(packages).map(
    ([name, { version, interrupt }]) => `${name} ${version}${interrupt ? ` ${interrupt.type}` : ''}`,
  )
  const spec = { budget: interruptionBudget, selector: nodeSelectors?.matchLabels, priority, packages: versions }
  return `generation ${generation} ${JSON.stringify(spec)} ${Object.keys(annotations).join(' ')}`
}
