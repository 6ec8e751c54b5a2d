/** A whole control plane on three hosts, and somebody who writes to it while they reboot. */
import { spawn } from 'node:child_process'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cgroupOf } from '../sandbox/sandbox.ts'
import { nodeNames, uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn, isCordoned } from '../kit/cluster/node-availability.ts'
import type { OnTestFinished } from '../kit/cluster/node-locks.ts'
import { bootMs, components, programsOf, startMembers, type Members } from './quorum-members.ts'
import type { QuorumLine } from './quorum-writer.ts'
import { journaled, manifest, shellscript } from '../kit/cluster/skyhooks.ts'
import { isReady } from '../kit/cluster/workloads.ts'

const role = 'node-role.kubernetes.io/control-plane'
const nodes: readonly NodeName[] = nodeNames
const cluster = useCluster()
let members: Members

const label = async (value: string | null): Promise<unknown> =>
  await Promise.all(
    nodes.map((node) => patch(cluster.api, `${paths.nodes}/${node}`, { metadata: { labels: { [role]: value } } })),
  )
beforeAll(async () => {
  await label('')
  members = await startMembers(cluster, nodes, programsOf(cluster))
  await cluster.history.eventually('all members are Ready', areMembersReady, 120_000)
}, 300_000)
afterAll(async () => {
  await members.remove()
  await label(null)
}, 120_000)

/** The boot of a node, and the containers of its static pods that are Ready, as the API server shows them. */
function memberOf({ nodes: all, pods }: View, node: string) {
  const ready = components
    .map((component) => pods.get(`kube-system/${component}-${node}`))
    .filter((pod) => pod && isReady(pod))
  return {
    bootId: all.get(node)?.status?.nodeInfo?.bootID,
    containers: ready.map((pod) => pod?.status?.containerStatuses?.[0]?.containerID),
  }
}

const areMembersReady = (view: View): boolean =>
  nodes.every((node) => memberOf(view, node).containers.length === components.length)

/** Runs where no host is: in the network of the sandbox's own control plane. `finish` resolves with all lines. */
function startWriter(onTestFinished: OnTestFinished): {
  readonly lines: QuorumLine[]
  finish(): Promise<readonly QuorumLine[]>
} {
  const network = basename(cgroupOf(cluster.sandbox), '.service')
  const script = join(import.meta.dirname, 'quorum-writer.ts')
  const command = [process.execPath, script, members.credentials, ...members.servers]
  const child = spawn('ip', ['netns', 'exec', network, ...command], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill())
  const lines: QuorumLine[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(JSON.parse(line) as QuorumLine))
  const ended = new Promise((resolve) => child.once('close', resolve))
  return {
    lines,
    async finish() {
      child.stdin.end()
      expect(await ended).toBe(0)
      return lines
    },
  }
}

test('three hosts with etcd and kube-apiserver reboot one after the other under a budget of three, and no write is lost or waits for a boot', async ({
  onTestFinished,
}) => {
  const writer = startWriter(onTestFinished)
  await expect.poll(() => writer.lines.length, { timeout: 30_000 }).toBeGreaterThan(0)
  const before = new Map(nodes.map((node) => [node as string, memberOf(cluster.history.now, node)]))

  const name = uniqueName('quorum')
  const work = shellscript(cluster.registry, journaled(name), { interrupt: { type: 'reboot' } })
  await cluster.apply(manifest(name, { interruptionBudget: { count: nodes.length }, packages: { work } }), ...nodes)
  await cluster.history.eventually('all are complete', (view) => isCompleteOn(view, name, nodes), 400_000)
  await cluster.history.eventually('all members are Ready again', areMembersReady, 120_000)
  const lines = await writer.finish()

  const notRestarted = (node: string, { containers }: ReturnType<typeof memberOf>): boolean =>
    containers.length < components.length || containers.some((one) => before.get(node)?.containers.includes(one))
  for (const node of nodes) {
    const now = memberOf(cluster.history.now, node)
    expect(now.bootId).toBe(await cluster.host(node).bootId())
    expect(now.bootId).not.toBe(before.get(node)?.bootId)
    expect(notRestarted(node, now)).toBe(false)
  }
  await cluster.history.never('a node that leaves while another does not run its static pods', (moment) => {
    if (moment.change.kind !== 'nodes' || !isCordoned(moment.change.object)) return undefined
    const leaving = moment.change.object.metadata.name
    const missing = nodes.find((node) => {
      const member = memberOf(moment, node)
      return node !== leaving && member.bootId !== before.get(node)?.bootId && notRestarted(node, member)
    })
    return missing && `${leaving} is cordoned, and the static pods of ${missing} do not run in its new boot`
  })
  const acknowledged = lines.filter((line) => line.kind === 'acknowledged')
  const found = lines.filter((line) => line.kind === 'found')
  expect(found).toHaveLength(nodes.length)
  for (const { server, names } of found) {
    const has = new Set(names)
    expect({ server, lost: acknowledged.filter((write) => !has.has(write.name)) }).toEqual({ server, lost: [] })
  }
  // With one member down, the others elect a leader within two seconds. With two, nobody writes until one has booted.
  const pauses = acknowledged.slice(1).map(({ atMs }, index) => atMs - (acknowledged[index]?.atMs ?? atMs))
  expect(Math.max(...pauses)).toBeLessThan(bootMs)
}, 600_000)
