import { expect, test } from 'vitest'
import { type FleetScene, pod, specOf, startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { schemaErrors } from '../../../test/kit/pages/document-schemas.ts'
import { commandContext } from '../../../test/kit/tool/command-context.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { ApiError } from '../../kube/errors.ts'
import { skyhookTypeMeta } from '../../schemas/api.ts'
import type { OutputFormat } from '../base/framework/command.ts'
import { plan } from './files.ts'

const skyhook = (spec: object, name = 's', metadata: object = {}): string =>
  JSON.stringify({ ...skyhookTypeMeta, metadata: { name, ...metadata }, spec })
const policy = (name: string, spec: object): string =>
  JSON.stringify({ ...skyhookTypeMeta, kind: 'DeploymentPolicy', metadata: { name }, spec })
const package1 = (rest: object): object =>
  specOf({ packages: { p0a: { image: 'registry.test/p0a', ...rest } as never } })

async function completed(options: Parameters<typeof startScene>[0] = {}): Promise<FleetScene> {
  const scene = startScene({ nodes: [{ name: 'host1', pods: [pod('shop')] }, { name: 'host2' }], ...options })
  await scene.until(
    () => ['node1', 'node2'].every((name) => scene.annotation(name, statusKey('s')) === 'complete'),
    'complete',
  )
  await scene.pass(8_000)
  return scene
}

type Flags = { readonly delete?: boolean; readonly checkEvictions?: boolean }

/** The output of a plan, which changes nothing in the cluster. */
async function planned(scene: FleetScene, text: string, format: OutputFormat = 'table', flags: Flags = {}) {
  const { server, clock } = scene.simulation
  const revisions = () =>
    ['skyhooks', 'deploymentpolicies', 'pods', 'poddisruptionbudgets'].map((plural) =>
      server.objects(plural).map(({ metadata }) => metadata.resourceVersion),
    )
  const before = revisions()
  const { context, stdout } = commandContext({ transport: scene.transport, clock, format })
  const code = await plan.run(
    { ...context, readText: async () => await Promise.resolve(text) },
    { arguments: {}, flags: { filename: 'f.yaml', detailedExitcode: true, ...flags } },
  )
  expect(revisions()).toEqual(before)
  return { code, stdout: stdout() }
}

const upgrade = skyhook(package1({ version: '1.1.0', interrupt: { type: 'reboot' } }))

test('a plan of an edit with a reboot shows what is drained and why, and exits with 7', async () => {
  const scene = await completed()
  const { code, stdout } = await planned(scene, upgrade)
  expect(code).toBe(7)
  await expect(stdout).toMatchFileSnapshot('goldens/rollout-plan.txt')
  const { stdout: markdown } = await planned(scene, upgrade, 'markdown')
  await expect(markdown).toMatchFileSnapshot('goldens/rollout-plan.md')
  const { stdout: json } = await planned(scene, upgrade, 'json')
  expect(schemaErrors('plan.json', JSON.parse(json))).toEqual([])
  await expect(json).toMatchFileSnapshot('goldens/rollout-plan.json')
})

test('a plan of the current spec finds nothing to do, and exits with 0', async () => {
  const { code, stdout } = await planned(await completed(), skyhook(specOf()))
  expect([code, stdout]).toMatchInlineSnapshot(`
    [
      0,
      "Skyhook s would not change
    Nodes of Skyhook s
      at most 1 of 2 nodes at once (interruptionBudget.count 1)
      2 nodes (node1, node2): nothing to do
    No node would be disrupted.
    ",
    ]
  `)
})

test('an object that would be refused is not planned, and exits with 4', async () => {
  const scene = await completed()
  const { code, stdout } = await planned(scene, skyhook({ ...specOf(), priority: 'high' }))
  expect(code).toBe(4)
  expect(stdout).toMatchInlineSnapshot(`
    "Skyhook s would be changed
      REFUSED: /spec/priority must be an integer, got string; write an integer: Of several Skyhooks on a node, the one with the lowest number runs first; equal numbers are ordered by name
      changed spec.priority: 200 -> "high"
    Refused: nothing would be done.
    "
  `)
})

test('several documents are planned together: a policy decides how many nodes start', async () => {
  const scene = await completed()
  const strategy = { exponential: { initialBatch: 1 } }
  const text = [
    policy('careful', { default: { budget: { count: 1 }, strategy } }),
    skyhook({
      ...package1({ version: '1.1.0', interrupt: { type: 'reboot' } }),
      interruptionBudget: null,
      deploymentPolicy: 'careful',
    }),
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other' } }),
  ].join('\n---\n')
  const { code, stdout } = await planned(scene, text)
  expect(stdout).toMatchInlineSnapshot(`
    "DeploymentPolicy careful would be created
      the API server accepts it (dry run)
      added spec.default.budget.count: 1
      added spec.default.strategy.exponential.initialBatch: 1
    Skyhook s would be changed
      the API server accepts it (dry run)
      added spec.deploymentPolicy: "careful"
      removed spec.interruptionBudget.count: 1
      added spec.packages.p0a.interrupt.type: "reboot"
      changed spec.packages.p0a.version: "1.0.0" -> "1.1.0"
    Nodes of Skyhook s
      compartment __default__: at most 1 of 2 nodes at once (DeploymentPolicy careful), in 2 batches (1, 1) if none fails
      about 10s to 12s of work (p50 and p95 of 2 nodes in the last rollout), drains and steps as then
      2 nodes (node1, node2): DISRUPTED
        cordon and drain
          1 pod leaves: apps/shop-1
          no controller replaces apps/shop-1
        p0a 1.1.0: upgrade
        p0a 1.1.0: config
        interrupt: reboot, because of packages.p0a.interrupt
        p0a 1.1.0: post-interrupt
    Not planned
      agents ignore ConfigMap/other
    Nodes would be disrupted.
    "
  `)
  expect(code).toBe(7)
})

test('a deletion runs the uninstalls that the spec asks for', async () => {
  const scene = await completed({
    skyhooks: { s: package1({ version: '1.0.0', uninstall: { enabled: true } }) as never },
  })
  const { stdout } = await planned(scene, skyhook({}), 'table', { delete: true })
  expect(stdout).toMatchInlineSnapshot(`
    "Skyhook s would be deleted
      the API server accepts it (dry run)
    Nodes of Skyhook s
      at most 1 of 2 nodes at once (interruptionBudget.count 1)
      about 10s to 12s of work (p50 and p95 of 2 nodes in the last rollout), drains and steps as then
      2 nodes (node1, node2): not disrupted
        p0a 1.0.0: uninstall
    No node would be disrupted.
    "
  `)
})

test('a budget of 0 disrupts no node, which is shown beside what waits for it', async () => {
  const scene = await completed()
  const stopped = { ...package1({ version: '1.1.0', interrupt: { type: 'reboot' } }), interruptionBudget: { count: 0 } }
  const { code, stdout } = await planned(scene, skyhook(stopped))
  expect(code).toBe(0)
  expect(stdout).toContain('none of 2 nodes may start (interruptionBudget.count 0)')
  expect(stdout).toContain('2 nodes (node1, node2): none may start')
  expect(stdout).toContain('how long it takes is unknown: the budget lets no node start')
})

test('a caller who may not read Nodes gets a partial plan without a verdict', async () => {
  const scene = await completed()
  const { transport, simulation } = scene
  const json: typeof transport.json = async (method, path, options) => {
    if (path.startsWith('/api/v1/nodes')) throw new ApiError({ status: 403, reason: 'Forbidden', message: 'no' })
    return await transport.json(method, path, options)
  }
  const { context, stdout } = commandContext({ transport: { ...transport, json }, clock: simulation.clock })
  const withFile = { ...context, readText: async () => await Promise.resolve(upgrade) }
  const input = { arguments: {}, flags: { filename: 'f.yaml', detailedExitcode: false } }
  expect(await plan.run(withFile, input)).toBe(0)
  expect(stdout()).toContain('what nodes would do is unknown: you may not read Nodes')
  expect(stdout()).toContain('Whether nodes would be disrupted is unknown.')
  const strict = { ...input, flags: { ...input.flags, detailedExitcode: true } }
  await expect(plan.run(withFile, strict)).rejects.toMatchObject({ exitCode: 1 })
})

test('dry runs of evictions are summed by budget, and nothing is evicted', async () => {
  const scene = await completed()
  scene.simulation.admin.send('POST', '/apis/policy/v1/namespaces/apps/poddisruptionbudgets', {
    metadata: { name: 'strict' },
    spec: { selector: {}, maxUnavailable: 0 },
  })
  await scene.pass(3_000)
  const { stdout } = await planned(scene, upgrade, 'table', { checkEvictions: true })
  expect(stdout.split('\n').filter((line) => line.includes('PodDisruptionBudget'))).toMatchInlineSnapshot(`
    [
      "      HELD UP: PodDisruptionBudget apps/strict guards 1 of these pods and allows 0 disruptions now; dry runs refused 1 of 1, each pod asked alone",
    ]
  `)
})

test.each([
  ['without a Skyhook', 'kind: ConfigMap', 'f.yaml has no Skyhook and no DeploymentPolicy'],
  ['with a Skyhook without a name', JSON.stringify({ ...skyhookTypeMeta }), 'f.yaml:1: a Skyhook has no metadata.name'],
  ['with the same Skyhook twice', `${skyhook({})}\n---\n${skyhook({})}`, 'f.yaml:3: Skyhook s is in the file twice'],
  ['that is not YAML', 'a: [', /^f\.yaml:1: is not YAML/],
  ['with text instead of objects', 'hello', 'f.yaml:1: a document is not an object'],
])('a file %s is a usage error', async (_, text, message) => {
  const scene = startScene({ nodes: [{ name: 'host1' }], skyhooks: {} })
  const expected = typeof message === 'string' ? message : (expect.stringMatching(message) as string)
  await expect(planned(scene, text)).rejects.toMatchObject({ exitCode: 2, message: expected })
})

test('a plan of autoTaintNewNodes names the nodes long in service that it closes, and exits with 0', async () => {
  const scene = startScene({ nodes: [{ name: 'host1', pods: [pod('shop')] }, { name: 'host2' }], skyhooks: {} })
  await scene.pass(30_000)
  const { code, stdout } = await planned(
    scene,
    skyhook({ ...specOf(), runtimeRequired: true, autoTaintNewNodes: true }),
  )
  expect(code).toBe(0)
  // without pods a closed node counts as one that joins the cluster
  for (const title of ['1 node (node1), newly selected', '1 node (node2), newly selected, joining the cluster'])
    expect(stdout).toContain(
      [
        `  ${title}: not disrupted`,
        '    CLOSED FOR NEW PODS until it is complete (autoTaintNewNodes): no Skyhook has worked on it before',
      ].join('\n'),
    )
  expect(stdout).toContain('No node would be disrupted, and 2 would be closed for new pods.')
})

test('a plan of a Skyhook that would select no node warns, and one that deletes it does not', async () => {
  const scene = await completed()
  const typo = skyhook(specOf({ nodeSelectors: { matchLabels: { pool: 'typo' } } }))
  const { code, stdout } = await planned(scene, typo)
  expect(code).toBe(0)
  expect(stdout).toContain('warning: spec.nodeSelectors matches no node')
  const { stdout: json } = await planned(scene, typo, 'json')
  expect(schemaErrors('plan.json', JSON.parse(json))).toEqual([])
  expect(JSON.parse(json)).toMatchObject({ items: [{ warnings: [expect.stringContaining('matches no node')] }] })
  const deletion = await planned(scene, typo, 'table', { delete: true })
  expect(deletion.stdout).not.toContain('warning: spec.nodeSelectors')
})

test('a plan says how many nodes that join the cluster start, and that the others wait at a budget of 0', async () => {
  const scene = startScene({ nodes: [{ name: 'host1', pods: [pod('shop')] }, { name: 'host2' }], skyhooks: {} })
  await scene.pass(30_000)
  const spec = {
    ...specOf(),
    runtimeRequired: true,
    autoTaintNewNodes: true,
    interruptionBudget: { count: 0 },
    bootstrap: { count: 1 },
  }
  const { stdout } = await planned(scene, skyhook(spec))
  expect(stdout).toContain('none of 1 node may start (interruptionBudget.count 0)')
  expect(stdout).toContain('at most 1 of 1 joining node at once (bootstrap.count 1)')
  expect(stdout).toContain('1 node (node1), newly selected: none may start')
  expect(stdout).toContain('1 node (node2), newly selected, joining the cluster: not disrupted')
  const { stdout: json } = await planned(scene, skyhook(spec), 'json')
  expect(schemaErrors('plan.json', JSON.parse(json))).toEqual([])
  expect(JSON.parse(json)).toMatchObject({
    items: [{ compartments: [{ limit: 0 }, { joining: true, limit: 1 }], groups: [{}, { joining: true }] }],
  })
})
