/** Injects faults. Each returns when it is over and the host is up again. */
import { setTimeout as sleep } from 'node:timers/promises'
import { hostOf } from '../kit/cluster/host.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { waitUntil, type AgentProcess } from '../kit/cluster/agent-process.ts'
import type { FaultName } from './fault-names.ts'

/** Whether the fault ends everything on the host, which allows more deviations. */
export const terminatesHost = (fault: FaultName): boolean => fault === 'host rebooted' || fault === 'power cut'

const apiServerDownMs = 20_000
/** Time for the agent to hit the full disk, and to find that it stays full. */
const diskFullMs = 3_000

export type FaultTarget = { readonly box: Sandbox; readonly node: string; readonly agent: AgentProcess }

/**
 * All faults but that of the API server, which affects all nodes: see `withoutApiServer`. The agent is stopped at its
 * failpoint, or has killed itself. A host that is already going down at the agent's request may refuse the fault.
 */
export async function injectFault(
  fault: Exclude<FaultName, 'API server down'>,
  { box, node, agent }: FaultTarget,
): Promise<void> {
  switch (fault) {
    case 'agent killed':
      return // it killed itself; the kubelet restarts it
    case 'host rebooted': {
      const host = hostOf(box, node)
      const before = await host.bootId().catch(() => '') // already down if the agent has requested it
      const rebooting = box.run(['reboot', node])
      await sleep(50)
      agent.resume() // it runs on into the shutdown
      const { stderr } = await rebooting // refused if the agent's own reboot request was quicker
      const isAnotherBoot = async (): Promise<boolean> => ![before, ''].includes(await host.bootId().catch(() => ''))
      if (!(await waitUntil(60_000, isAnotherBoot, 100))) throw new Error(`${node} did not reboot: ${stderr}`)
      await box.must(['start', node]) // it is booting: this waits until it is up
      return
    }
    case 'power cut':
      await box.must(['crash', node])
      await box.must(['start', node])
      return
    case 'bus restarted':
      await box.run(['exec', node, '--', 'systemctl', 'restart', 'dbus'])
      agent.resume()
      return
    case 'disk full': {
      await box.run(['exec', node, '--', 'sh', '-c', 'dd if=/dev/zero of=/filler bs=64k 2>/dev/null; true'])
      agent.resume()
      await sleep(diskFullMs)
      const isEmptied = async (): Promise<boolean> =>
        (await box.run(['exec', node, '--', 'rm', '-f', '/filler'])).status === 0
      if (!(await waitUntil(30_000, isEmptied))) throw new Error(`could not free the disk of ${node} within 30 s`)
      return
    }
  }
}

/** Stops the API server for 20 s for all nodes; their agents continue once it is down. */
export async function withoutApiServer(box: Sandbox, agents: readonly AgentProcess[]): Promise<void> {
  await box.must(['stop', 'apiserver'])
  for (const agent of agents) agent.resume()
  await sleep(apiServerDownMs)
  await box.must(['start', 'apiserver'])
}
