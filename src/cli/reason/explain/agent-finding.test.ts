import { expect, test } from 'vitest'
import { agentOn, fitCluster, nodeOf } from '../../../../test/kit/tool/doctor-facts.ts'
import { known, unknown } from '../../../stages/model/snapshot.ts'
import type { AgentPod } from '../../fleet/fleet-view/fleet-view.ts'
import { agentFinding } from './agent-finding.ts'
import type { Finding } from './finding.ts'

const old = 'registry.test/skyhookd:0.9.0'
const current = 'registry.test/skyhookd:1.0.0'

/** The finding about the agent of node n1. */
function found(agents: readonly AgentPod[], hasDaemonSet = true): Finding | undefined {
  const { fleet } = fitCluster
  const daemonSet = hasDaemonSet ? fleet.daemonSet : unknown('you may not read DaemonSets')
  return agentFinding({ ...fleet, agents: known(agents), daemonSet }, nodeOf('n1'))
}

test('an agent that has restarted is explained with the log before its restart', () => {
  const agent = agentOn('n1', { isReady: false, containerError: 'CrashLoopBackOff', restarts: 2 })
  expect(found([agent])).toMatchObject({
    cause: 'agent-dead',
    message: 'the agent does not answer: pod skyhook/skyhookd-n1 is not Ready (CrashLoopBackOff)',
    command: 'kubectl -n skyhook describe pod skyhookd-n1 && kubectl -n skyhook logs skyhookd-n1 --previous',
  })
})

test('an agent that hangs is explained with the log that it has, since there is none before it', () => {
  const { command } = found([agentOn('n1', { isReady: false })]) ?? {}
  expect(command).toBe('kubectl -n skyhook describe pod skyhookd-n1 && kubectl -n skyhook logs skyhookd-n1')
})

test('an agent that the rolling update has not reached is compared with the DaemonSet', () => {
  expect(found([agentOn('n1', { image: old }), agentOn('n2', { image: old })])).toMatchObject({
    cause: 'agent-too-old',
    message: `the agent runs ${old}, and DaemonSet skyhook/skyhookd has ${current}`,
    objects: [{ kind: 'Pod', name: 'skyhookd-n1' }],
    command: 'kubectl -n skyhook delete pod skyhookd-n1',
  })
})

test('where the DaemonSet may not be read, an agent is compared with most others', () => {
  const agents = [agentOn('n1', { image: old }), agentOn('n2'), agentOn('n3')]
  expect(found(agents, false)?.message).toBe(`the agent runs ${old}, and most other agents run ${current}`)
})

test('a rolling update that stands still names the agent that it waits for, and does not advise to delete another', () => {
  const stuck = agentOn('n2', { isReady: false, containerError: 'ImagePullBackOff' })
  expect(found([agentOn('n1', { image: old }), stuck])).toMatchObject({
    cause: 'agent-too-old',
    message:
      `the agent runs ${old}, and DaemonSet skyhook/skyhookd has ${current}: its rolling update waits for pod ` +
      'skyhookd-n2 on node n2, which is not Ready (ImagePullBackOff)',
    objects: [
      { kind: 'Pod', name: 'skyhookd-n1' },
      { kind: 'Pod', name: 'skyhookd-n2' },
    ],
    unblock: 'pod skyhookd-n2 must become Ready: the rolling update of the DaemonSet waits for it',
    command: 'kubectl -n skyhook describe pod skyhookd-n2',
  })
})
