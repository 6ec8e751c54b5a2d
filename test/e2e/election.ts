/** The election of the agent that counts nodes, and a stranger who wins it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { defaultTiming } from '../../src/lease/election-rule.ts'
import { microTime } from '../../src/lease/slot.ts'
import { censusLeaseName } from '../../src/lease/names.ts'
import { agentOn } from '../kit/cluster/agents.ts'
import type { Cluster } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'

/**
 * Takes the Lease of the census from the agents, and renews it until `release` gives it back: nobody counts meanwhile,
 * as while the process of an elected agent hangs. Resolves once the agent that counted has stopped. A second call of
 * `release` does no harm.
 */
export async function holdCensus(cluster: Cluster, holder: string): Promise<{ release: () => Promise<void> }> {
  const { api, history, sandbox } = cluster
  const holderOf = (): string => history.now.leases.get(censusLeaseName)?.spec?.holderIdentity ?? ''
  await history.eventually('an agent counts', () => holderOf() !== '')
  const agent = agentOn(history.now, holderOf())?.metadata.name ?? ''
  const write = async (holderIdentity: string): Promise<void> => {
    const spec = { holderIdentity, renewTime: microTime(Date.now()) }
    await patch(api, `${paths.leases}/${censusLeaseName}`, { spec })
  }
  const released = new AbortController()
  await write(holder)
  const renewing = renew(async () => await write(holder), released.signal)
  const log = async (): Promise<string> => await sandbox.kubectl(['-n', 'skyhook', 'logs', agent, '--tail=200'])
  await expect.poll(log, { timeout: 3 * defaultTiming.renewIntervalMs }).toContain(`${holder} holds the Lease now`)
  return {
    async release() {
      if (released.signal.aborted) return
      released.abort()
      await renewing
      await write('')
    },
  }
}

async function renew(write: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(defaultTiming.renewIntervalMs, undefined, { signal }).catch(() => undefined)
    if (!signal.aborted) await write()
  }
}
