import { appliedHash } from '../../../src/stages/model/package-inputs.ts'
import type { NodeSimulator } from '../../kit/node-simulator/node-simulator.ts'
import type { NodeObserver } from '../../kit/node-simulator/node-state.ts'
import { violate } from './invariant.ts'

/** A Node shows `complete` with a package that needs a reboot only if the host has booted since it was asked to. */
export const rebootsAreMade = ({ node }: { readonly node: NodeSimulator }): NodeObserver => {
  /** By `<skyhook>/<package>`, the boot in which the host was to be asked last. */
  const askedInBoot = new Map<string, string>()
  return {
    decided(_, { actions }) {
      for (const action of actions) {
        if (action.do !== 'interrupt' || action.run.interrupt.type !== 'reboot' || action.run.abandoned) continue
        for (const owner of action.run.owners)
          askedInBoot.set(`${action.view.metadata.name}/${owner.split('|')[0]}`, action.run.bootId)
      }
    },
    published({ annotations }) {
      for (const [skyhook, { spec }] of node.views) {
        const shown = (key: string): string | null | undefined =>
          annotations[`skyhook.nvidia.com/${key}_${skyhook}`] ?? node.annotation(`${key}_${skyhook}`)
        const isForSpec = shown('journal')?.includes(`"applied":"${appliedHash(spec)}"`) === true
        if (shown('status') !== 'complete' || !isForSpec) continue
        for (const [key, bootId] of askedInBoot) {
          if (!key.startsWith(`${skyhook}/`)) continue
          const { interrupt } = spec.packages?.[key.slice(skyhook.length + 1)] ?? {}
          const isNeeded = interrupt?.type === 'reboot' && interrupt.when !== 'required'
          if (isNeeded && bootId === node.bootId) violate(`complete is published, but ${key} was not rebooted`)
          askedInBoot.delete(key)
        }
      }
    },
  }
}
