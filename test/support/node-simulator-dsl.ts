/** Short words for tests on the node model: a package `a` of the image `r/pkg`, what it runs, pods, and how a node looks. */
import type { Interrupt, PackageSpec } from '../../src/schemas/skyhook.ts'
import { NodeModel } from './node-simulator.ts'
import type { Pod } from '../../src/stages/drain/pods.ts'

export const pkg = (version: string, change: Partial<PackageSpec> = {}): PackageSpec => ({ version, image: 'r/pkg', ...change })
export const pkgWith = (interrupt?: Interrupt, change: Partial<PackageSpec> = {}): PackageSpec =>
  pkg('1.0.0', { ...(interrupt && { interrupt }), ...change })
export const cron: Interrupt = { type: 'service', services: ['cron'] }
export const reboot: Interrupt = { type: 'reboot' }

export const install = ['a apply run.sh', 'a apply-check run_check.sh', 'a config run.sh', 'a config-check run_check.sh']
export const upgrade = ['a upgrade run.sh', 'a upgrade-check run_check.sh', 'a config run.sh', 'a config-check run_check.sh']
export const uninstall = ['a uninstall run.sh', 'a uninstall-check run_check.sh']

/** A node on which the package is complete. */
export function installed(change: Partial<PackageSpec> = {}): NodeModel {
  const node = new NodeModel()
  node.apply('s', { packages: { a: pkg('1.0.0', change) } })
  node.settleOver(5_000)
  if (node.status() !== 'complete') throw new Error(`the package is ${node.status()}`)
  node.ran.length = 0
  return node
}

export const pod = (name: string, labels: Record<string, string> = {}): Pod => ({
  metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: '1', labels },
  status: { phase: 'Running' },
})

export const cordoned = (node: NodeModel): boolean => node.node.spec?.unschedulable === true
/** What the node carries as long as somebody holds its cordon. */
export const marks = (node: NodeModel): string[] =>
  Object.keys(node.node.metadata.annotations ?? {}).filter((key) => /cordon|keepOff|autoscaler|karpenter/.test(key))
/** What ran in a mode. */
export const lines = (node: NodeModel, mode: string): string[] => node.ran.filter((line) => line.split(' ')[1] === mode)
