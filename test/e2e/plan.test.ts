/** `kubectl skyhook plan`, and then `kubectl apply`: what happens on each node is what the plan said. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { skyhooksPath } from '../../src/schemas/api.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { schemaErrors } from '../kit/pages/document-schemas.ts'
import { hasReadyAgent } from '../kit/cluster/agents.ts'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { ignoreNotFound } from '../kit/cluster/kube.ts'
import { claimWithPods } from '../kit/cluster/node-locks.ts'
import { hasEvent, isCompleteOn, serviceStates, uncordonedStates } from '../kit/cluster/node-availability.ts'
import { journaled, journalOf, type Manifest, manifest, shellscript, withoutTimes } from '../kit/cluster/skyhooks.ts'

const cluster = useCluster()
const nodes = ['node-1', 'node-2'] as const

type Step = { readonly do: string; readonly stage?: string; readonly type?: string; readonly services?: string[] }
type Group = {
  readonly nodes: readonly string[]
  readonly steps: readonly Step[]
  readonly interruptCauses: readonly { readonly field: string; readonly key?: string }[]
  readonly pods?: { readonly leaving: readonly string[]; readonly budgets: readonly object[] }
}
type Plan = {
  readonly disrupts: boolean | null
  readonly objects: readonly { readonly change: string; readonly admission: { readonly checkedBy: string } }[]
  readonly items: readonly {
    readonly compartments: readonly { readonly limit: number | string }[]
    readonly duration: { readonly state: string; readonly p50Seconds?: number; readonly history?: { nodes: number } }
    readonly groups: readonly Group[] | null
  }[]
}

const main = join(import.meta.dirname, '../../src/cli/main.ts')

/** Runs `plan -f -` as a process of its own. */
async function plan(object: Manifest, ...flags: readonly string[]) {
  const args = [main, '--kubeconfig', cluster.kubeconfig, '-n', 'skyhook', 'plan', '-f', '-', ...flags]
  const child = spawn(process.execPath, args, { stdio: 'pipe' })
  child.stdin.end(JSON.stringify(object))
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  return { code: await exited, stdout, stderr }
}

async function planned(
  object: Manifest,
  ...flags: readonly string[]
): Promise<Plan & { readonly code: number | null }> {
  const { code, stdout, stderr } = await plan(object, '-o', 'json', ...flags)
  expect(stderr).toBe('')
  const document = JSON.parse(stdout) as Plan
  expect(schemaErrors('plan.json', document)).toEqual([])
  return { ...document, code }
}

test('an apply does on each node what its plan said, and the next plan knows how long that took', async ({
  onTestFinished,
}) => {
  const { name, shop } = await claimWithPods(cluster, onTestFinished, 'plan', ...nodes)
  const { history, registry, sandbox } = cluster
  const files = (tuning: string): Manifest => {
    const work = shellscript(registry, journaled(name), {
      configInterrupts: { '*.conf': { type: 'service', services: ['foobar'] } },
    })
    const configMap = { ...work.configMap, 'tuning.conf': tuning }
    return manifest(name, { interruptionBudget: { count: 1 }, packages: { work: { ...work, configMap } } })
  }
  await cluster.apply(files('1'), ...nodes)
  await history.eventually('it is complete', (view) => isCompleteOn(view, name, nodes), 60_000)
  // an agent that was restarted before this test may not be Ready yet, and a plan says so
  await history.eventually('their agents are Ready', (view) => nodes.every((node) => hasReadyAgent(view, node)))
  // so that the next apply knows what the last one had
  await sandbox.kubectl(['apply', '-f', '-'], JSON.stringify(files('1')))
  await shop.pod('cart', 'node-1')
  await shop.budget('free', 'cart', 0)

  const same = await planned(files('1'), '--detailed-exitcode')
  expect(same).toMatchObject({ code: 0, disrupts: false, objects: [{ change: 'unchanged' }] })
  expect(same.items[0]?.groups).toMatchObject([{ nodes, steps: [] }])

  const stored = async (): Promise<Skyhook> => await cluster.api.json<Skyhook>('GET', `${skyhooksPath}/${name}`)
  const before = await stored()
  const found = await planned(files('2'), '--detailed-exitcode', '--check-evictions')
  expect(found).toMatchObject({
    code: 7,
    disrupts: true,
    objects: [
      {
        change: 'changed',
        admission: { checkedBy: 'server', refusals: [] },
        fields: [{ field: 'spec.packages.work.configMap["tuning.conf"]', change: 'changed' }],
      },
    ],
  })
  const [group, ...others] = found.items[0]?.groups ?? []
  expect(others).toEqual([])
  expect(group).toMatchObject({
    nodes,
    interruptCauses: [{ field: 'packages.work.configInterrupts["*.conf"]', key: 'tuning.conf' }],
    pods: { leaving: [`${name}/cart`], budgets: [{ budget: `${name}/free`, pods: 1, allowed: 1, refused: 0 }] },
  })
  expect(found.items[0]?.compartments).toMatchObject([{ limit: 1 }])
  // the plan has changed nothing
  const unchanged = await stored()
  expect(unchanged.metadata.generation).toBe(before.metadata.generation)
  expect(shop.pods(history.now, 'cart')).toHaveLength(1)

  const linesBefore = new Map<string, number>()
  const cordonsBefore = new Map<string, number>()
  for (const node of nodes) {
    linesBefore.set(node, (await cluster.host(node).lines(journalOf(name))).length)
    cordonsBefore.set(node, uncordonedStates(await serviceStates(history, node)).length)
  }
  await sandbox.kubectl(['apply', '-f', '-'], JSON.stringify(files('2')))
  for (const node of nodes) await cluster.host(node).awaitLine(journalOf(name), 'post_interrupt ends', 90_000)
  await history.eventually('it is complete again', (view) => isCompleteOn(view, name, nodes), 60_000)

  const steps = group?.steps ?? []
  const stagesPlanned = steps.flatMap(({ stage }) => (stage === undefined ? [] : [stage]))
  for (const node of nodes) {
    const lines = withoutTimes(await cluster.host(node).lines(journalOf(name))).slice(linesBefore.get(node))
    const stagesSeen = lines.flatMap((line) => {
      const [, mode = ''] = /^(\w+) begins$/.exec(line) ?? []
      return mode === '' || mode.endsWith('_check') ? [] : [mode.replace('_', '-')]
    })
    expect({ node, stages: stagesSeen }).toEqual({ node, stages: stagesPlanned })
    const interrupts = steps.filter((step) => step.do === 'interrupt')
    expect(interrupts).toMatchObject([{ type: 'service', services: ['foobar'] }])
    await history.eventually('the Event of the interrupt', (view) =>
      hasEvent(view, node, 'InterruptCompleted', name, 'service'),
    )
    const cordons = uncordonedStates(await serviceStates(history, node)).length - (cordonsBefore.get(node) ?? 0)
    expect({ node, drains: cordons }).toEqual({ node, drains: steps.filter((step) => step.do === 'drain').length })
  }
  expect(shop.pods(history.now, 'cart')).toEqual([])

  // counters in the ledger are written with some delay
  let next = await planned(files('3'))
  for (const endMs = Date.now() + 20_000; next.items[0]?.duration.state !== 'estimated' && Date.now() < endMs; ) {
    await sleep(500)
    next = await planned(files('3'))
  }
  expect(next.items[0]?.duration).toMatchObject({
    state: 'estimated',
    history: { nodes: expect.any(Number) as number },
  })
  expect(next.items[0]?.duration.p50Seconds).toBeGreaterThan(0)
  expect(next.items[0]?.duration.p50Seconds).toBeLessThan(180)
})

test('a refusal of the API server is told, and who may not write is judged by the tool', async ({ onTestFinished }) => {
  const name = uniqueName('viewer')
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const role = (rules: readonly object[]) => ({ metadata: { name }, rules })
  const read = ['get', 'list', 'watch']
  const skyhooks = {
    apiGroups: ['skyhook.nvidia.com'],
    resources: ['skyhooks', 'deploymentpolicies'],
    verbs: read,
  }
  onTestFinished(async () => {
    await ignoreNotFound(cluster.api, 'DELETE', `${rbac}/clusterrolebindings/${name}`)
    await ignoreNotFound(cluster.api, 'DELETE', `${rbac}/clusterroles/${name}`)
  })
  await cluster.api.json('POST', `${rbac}/clusterroles`, { body: role([skyhooks]) })
  await cluster.api.json('POST', `${rbac}/clusterrolebindings`, {
    body: {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
    },
  })
  const packages = { work: shellscript(cluster.registry, {}) }
  const fine = manifest(name, { packages })

  const refused = await plan(manifest(name, { packages, priority: 'high' as never }))
  expect(refused).toMatchObject({ code: 4, stderr: '' })
  expect(refused.stdout).toMatch(/REFUSED: .*spec\.priority: Invalid value: "string"/)

  const asViewer = await planned(fine, '--as', name)
  expect(asViewer).toMatchObject({
    code: 0,
    disrupts: null,
    objects: [{ change: 'created', admission: { checkedBy: 'tool', why: 'you may not create skyhooks' } }],
    items: [{ groups: null, unknown: 'you may not read Nodes' }],
  })
  expect(await plan(fine, '--as', name, '--detailed-exitcode')).toMatchObject({ code: 1 })

  await cluster.api.json('PUT', `${rbac}/clusterroles/${name}`, {
    body: role([skyhooks, { apiGroups: [''], resources: ['nodes'], verbs: read }]),
  })
  const withNodes = await planned(fine, '--as', name, '--detailed-exitcode')
  expect(withNodes).toMatchObject({ code: 0, disrupts: false, items: [{ groups: [] }] })
})
