/** What goes wrong while the agent stands at a crash point. Each returns when it is over, the host up again. */
import { setTimeout as sleep } from 'node:timers/promises'
import { hostOf } from '../e2e/host.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { waitUntil, type AgentProcess } from './agent-process.ts'

export const faultNames = [
  'agent killed',
  'host rebooted',
  'power cut',
  'bus restarted',
  'API server down',
  'disk full',
] as const
export type FaultName = (typeof faultNames)[number]

/** Ends everything on the host: what only they may do to a workload is known from it. */
export const terminatesHost = (fault: FaultName): boolean => fault === 'host rebooted' || fault === 'power cut'

const apiServerDownMs = 20_000
/** Time for the agent to run into the full disk, and to find that it stays full. */
const diskFullMs = 3_000

export type FaultTarget = { readonly box: Sandbox; readonly node: string; readonly agent: AgentProcess }

/**
 * All but the API server's: that one is everybody's, see `withoutApiServer`. The agent was stopped at its point, or
 * killed by itself. A host that goes down already, because the agent has just asked for it, may refuse what is done to
 * it.
 */
export async function injectFault(
  fault: Exclude<FaultName, 'API server down'>,
  { box, node, agent }: FaultTarget,
): Promise<void> {
  switch (fault) {
    case 'agent killed':
      return // it did that itself; the kubelet starts it again
    case 'host rebooted': {
      const host = hostOf(box, node)
      const before = await host.bootId().catch(() => '') // already down where the agent had asked for it
      const rebooting = box.run(['reboot', node])
      await sleep(50)
      agent.resume() // it lives on into the shutdown
      const { stderr } = await rebooting // refused where an agent that has just asked for the reboot itself was quicker
      const isAnotherBoot = async (): Promise<boolean> => ![before, ''].includes(await host.bootId().catch(() => ''))
      if (!(await waitUntil(60_000, isAnotherBoot, 100))) throw new Error(`${node} did not reboot: ${stderr}`)
      await box.must(['start', node]) // it runs: waits until it is up
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
      if (!(await waitUntil(30_000, isEmptied))) throw new Error(`the disk of ${node} stays full`)
      return
    }
  }
}

/** The API server is away for 20 s for all nodes; their agents go on once it is. */
export async function withoutApiServer(box: Sandbox, agents: readonly AgentProcess[]): Promise<void> {
  await box.must(['stop', 'apiserver'])
  for (const agent of agents) agent.resume()
  await sleep(apiServerDownMs)
  await box.must(['start', 'apiserver'])
}
