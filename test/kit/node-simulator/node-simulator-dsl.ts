/**
 * Short names for tests with the node simulator: a package `a` of the image `r/pkg`, its steps, pods, and the state of
 * a node.
 */
import type { Interrupt, PackageSpec } from '../../../src/schemas/skyhook.ts'
import { NodeSimulator } from './node-simulator.ts'
import type { Pod } from '../../../src/stages/model/pods.ts'

export const pkg = (version: string, change: Partial<PackageSpec> = {}): PackageSpec => ({
  version,
  image: 'r/pkg',
  ...change,
})
export const packageWith = (interrupt?: Interrupt, change: Partial<PackageSpec> = {}): PackageSpec =>
  pkg('1.0.0', { ...(interrupt && { interrupt }), ...change })
export const cron: Interrupt = { type: 'service', services: ['cron'] }
export const reboot: Interrupt = { type: 'reboot' }

export const install = [
  'a apply run.sh',
  'a apply-check run_check.sh',
  'a config run.sh',
  'a config-check run_check.sh',
]
export const upgrade = [
  'a upgrade run.sh',
  'a upgrade-check run_check.sh',
  'a config run.sh',
  'a config-check run_check.sh',
]
export const uninstall = ['a uninstall run.sh', 'a uninstall-check run_check.sh']

/** A node on which the package is complete. */
export function installedNode(change: Partial<PackageSpec> = {}): NodeSimulator {
  const node = new NodeSimulator()
  node.apply('s', { packages: { a: pkg('1.0.0', change) } })
  node.settleFor(5_000)
  if (node.status() !== 'complete') throw new Error(`the package is ${node.status()}`)
  node.executedSteps.length = 0
  return node
}

export const pod = (name: string, labels: Record<string, string> = {}): Pod => ({
  metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: '1', labels },
  status: { phase: 'Running' },
})

export const isCordoned = (node: NodeSimulator): boolean => node.node.spec?.unschedulable === true
/** The annotations of a node whose cordon is held. */
export const cordonMarks = (node: NodeSimulator): string[] =>
  Object.keys(node.node.metadata.annotations ?? {}).filter((key) => /cordon|keepOff|autoscaler|karpenter/.test(key))
/** The steps that ran in a mode. */
export const linesOfMode = (node: NodeSimulator, mode: string): string[] =>
  node.executedSteps.filter((line) => line.split(' ')[1] === mode)
