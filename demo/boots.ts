import { setTimeout as sleep } from 'node:timers/promises'
import { hostOf } from '../test/kit/cluster/host.ts'
import type { Sandbox } from '../test/sandbox/sandbox.ts'
import type { Boot } from './sights.ts'

const lookEveryMs = 200

/** Looks at the hosts until `signal` aborts, and adds to the returned list whenever one goes off or boots. */
export function watchBoots(box: Sandbox, nodes: readonly string[], signal: AbortSignal): readonly Boot[] {
  const boots: Boot[] = []
  const follow = async (node: string): Promise<void> => {
    const host = hostOf(box, node)
    for (let last: string | undefined; !signal.aborted; ) {
      const bootId = (await host.bootId().catch(() => '')) || undefined // as it goes off and before it is up
      if (bootId !== last) boots.push({ atMs: Date.now(), node, bootId })
      last = bootId
      await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined)
    }
  }
  for (const node of nodes) void follow(node)
  return boots
}
