/** The faults. Each returns when it is over and what it hit is back. */
import { setTimeout as sleep } from 'node:timers/promises'
import { readSlot } from '../../src/lease/slot.ts'
import { agentCommand, censusCommand } from '../kit/cluster/agent-process.ts'
import { agentOn } from '../kit/cluster/agents.ts'
import { ignoreNotFound, paths } from '../kit/cluster/kube.ts'
import { isNodeReady } from '../kit/cluster/node-availability.ts'
import { killProcesses, Missed, withFree, type Arena } from './arena.ts'
import type { FaultKind, PlannedAction } from './plan.ts'
import { labelNode } from './scene.ts'

/** Shorter than the 16 s after which the sandbox takes nodes for lost. */
const maxApiOutageMs = 8_000
const bootTimeoutMs = 90_000

/** Returns what it hit, in words. Throws `Missed` if there is nothing to hit. */
export async function injectFault(arena: Arena, kind: FaultKind, action: PlannedAction): Promise<string> {
  const { box, api, history, nodes } = arena
  const onHost = async (task: (node: string) => Promise<unknown>): Promise<string> =>
    await withFree(arena, nodes, action.target, async (node) => {
      await task(node)
      return node
    })
  const onComponent = async (name: string, from: string, to: string, lastsMs: number): Promise<string> =>
    await withFree(arena, [name], 0, async () => {
      await box.must([from, name])
      await sleep(lastsMs)
      await box.must([to, name])
      return `${(lastsMs / 1000).toFixed(1)} s`
    })

  switch (kind) {
    case 'agent killed':
      return await onHost(async (node) => killProcesses(arena, node, agentCommand))
    case 'census killed': {
      const node = history.now.leases.get('skyhookd-census')?.spec?.holderIdentity
      if (node === undefined || node === '') throw new Missed('no census')
      killProcesses(arena, node, censusCommand)
      return node
    }
    case 'agent pod deleted':
      return await onHost(async (node) => {
        const pod = agentOn(history.now, node)
        if (!pod) throw new Missed(`no agent on ${node}`)
        await ignoreNotFound(api, 'DELETE', `/api/v1/namespaces/skyhook/pods/${pod.metadata.name}`)
      })
    case 'host rebooted':
      return await onHost(async (node) => {
        await box.run(['reboot', node]) // refused if it is going down already
        await box.must(['start', node])
      })
    case 'power cut':
      return await onHost(async (node) => {
        await box.must(['crash', node])
        await sleep(action.lastsMs / 3)
        await box.must(['start', node])
      })
    case 'network cut':
      return await onHost(async (node) => {
        await box.must(['cut', node])
        await sleep(action.lastsMs)
        await box.must(['join', node])
      })
    case 'API server restarted':
      return await onComponent('apiserver', 'stop', 'start', Math.min(action.lastsMs, maxApiOutageMs) / 2)
    case 'API server paused':
      return await onComponent('apiserver', 'pause', 'resume', Math.min(action.lastsMs, maxApiOutageMs))
    case 'registry paused':
      return await onComponent('registry', 'pause', 'resume', action.lastsMs)
    case 'D-Bus restarted':
      return await onHost(async (node) => await box.run(['exec', node, '--', 'systemctl', 'restart', 'dbus']))
    case 'logind restarted':
      return await onHost(async (node) => await box.run(['exec', node, '--', 'systemctl', 'restart', 'systemd-logind']))
    case 'slot deleted by hand': {
      const slots = [...history.now.leases.values()].filter((lease) => readSlot(lease) !== undefined)
      const lease = slots[Math.floor(action.target * slots.length)]
      if (!lease) throw new Missed('no slot is held')
      const node = lease.spec?.holderIdentity ?? ''
      arena.registerDeletion({ node, atMs: Date.now(), what: 'slot' })
      await ignoreNotFound(api, 'DELETE', `${paths.leases}/${lease.metadata.name}`)
      return `${lease.metadata.name} of ${node}`
    }
    case 'Node deleted':
      return await onHost(async (node) => await deleteNode(arena, node))
  }
}

/** A kubelet registers only when it starts; the new Node has none of the labels that select it. */
async function deleteNode(arena: Arena, node: string): Promise<void> {
  const { api, box, history } = arena
  arena.registerDeletion({ node, atMs: Date.now(), what: 'Node' })
  const old = history.now.nodes.get(node)?.metadata.uid
  await ignoreNotFound(api, 'DELETE', `${paths.nodes}/${node}`)
  const isBack = (): boolean => ![undefined, old].includes(history.now.nodes.get(node)?.metadata.uid)
  for (const endMs = Date.now() + bootTimeoutMs; !isBack(); await sleep(2_000)) {
    if (Date.now() > endMs) throw new Error(`${node} did not register again within ${bootTimeoutMs / 1000} s`)
    await box.run(['exec', node, '--', 'systemctl', 'restart', 'kubelet']) // the host may be rebooting
  }
  await labelNode(arena, node)
  await history.eventually(`${node} is Ready`, ({ nodes }) => isNodeReady(nodes.get(node)), bootTimeoutMs)
}

/** Undoes every fault, whether it is over or not. */
export async function healFaults(arena: Arena): Promise<void> {
  const { box, nodes } = arena
  for (const component of ['apiserver', 'registry']) {
    await box.must(['resume', component])
    await box.must(['start', component])
  }
  for (const node of nodes) {
    await box.must(['join', node])
    await box.must(['start', node])
  }
  for (const node of nodes) await labelNode(arena, node)
}
