/** What the demo shows of a rollout: one row per node and package, read from Nodes and slots as everybody can read them. */
import type { View } from '../e2e/moments.ts'
import { shown } from '../e2e/skyhooks.ts'
import { slotsOf } from '../e2e/slots.ts'

export type Row = {
  readonly node: string
  readonly status: string
  readonly package: string
  readonly stage: string
  readonly reason: string
  /** Phase of the slot that this node holds. */
  readonly slot: string
}

const heading = ['NODE', 'STATUS', 'PACKAGE', 'STAGE', 'SLOT', 'WAITS FOR']

export function rowsOf(view: View, skyhook: string, nodes: readonly string[]): Row[] {
  const slots = new Map(slotsOf(view, skyhook).map(({ holder, phase }) => [holder, phase]))
  return nodes.flatMap((node) => {
    const { status = '-', state, reason } = shown(view.nodes.get(node), skyhook)
    const packages = Object.values(state)
    const common = { node, status, reason: reason ? `${reason.reason}: ${reason.message}` : '', slot: slots.get(node) ?? '' }
    if (packages.length === 0) return [{ ...common, package: '', stage: '' }]
    return packages.map(({ name, version, stage, state: reached = '' }) => ({
      ...common,
      package: `${name} ${version}`,
      stage: `${stage} ${reached}`.trim(),
    }))
  })
}

/** Cells of the table, the heading first. */
export function cellsOf(rows: readonly Row[]): string[][] {
  return [heading, ...rows.map(({ node, status, package: name, stage, slot, reason }) => [node, status, name, stage, slot, reason])]
}

/** A line for each row that says something else than before. */
export function news(before: readonly Row[], after: readonly Row[]): string[] {
  const known = new Set(before.map(textOf))
  return after.map(textOf).filter((text) => !known.has(text))
}

function textOf({ node, status, package: name, stage, slot, reason }: Row): string {
  const facts = [name && `${name}: ${stage}`, slot && `holds a slot (${slot})`, reason].filter((fact) => fact !== '')
  return [`${node}  ${status.padEnd(11)}`, ...facts].join('  ')
}
