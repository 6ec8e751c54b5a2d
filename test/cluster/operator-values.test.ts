/** Values that were written for the Skyhook operator's chart, given to this one. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chart, helmProgram, type Json } from './chart-cluster.ts'

let helm: (...parameters: string[]) => Promise<string>
let folder: string
beforeAll(async () => {
  helm = await helmProgram()
  folder = await mkdtemp(join(tmpdir(), 'skyhookd-values-'))
})
afterAll(async () => await rm(folder, { recursive: true }))

async function withValues(command: readonly string[], values: Json): Promise<string> {
  const file = join(folder, 'values.yaml')
  await writeFile(file, JSON.stringify(values))
  return await helm(...command, 'skyhookd', chart, '--namespace', 'skyhook', '-f', file)
}
const render = async (values: Json): Promise<string> => await withValues(['template'], values)
const notes = async (values: Json): Promise<string> =>
  (await withValues(['install', '--dry-run=client'], values)).replace(/^[\s\S]*\nNOTES:\n/, '')

const operatorEnv = (env: Json): Json => ({ controllerManager: { manager: { env } } })

/** As helm writes them when somebody asks the operator's release for its values. */
const hostValues = {
  copyDirRoot: '/opt/skyhook',
  agentLogRoot: '/opt/logs',
  runtimeRequiredTaint: 'example.com/new=yes:NoExecute',
  reapplyOnReboot: 'true',
  logLevel: 'debug',
}

/** What becomes of a value; `taken`: what is in the rendered objects. */
type Outcome = 'no effect' | { readonly taken: string } | { readonly refused: RegExp }
const env = 'controllerManager.manager.env'

/** Each value of the operator's charts 0.13 to 0.20, with another one than its default where it has one. */
const outcomes: readonly (readonly [name: string, value: unknown, outcome: Outcome])[] = [
  [`${env}.copyDirRoot`, '/opt/skyhook', { taken: 'copyDirRoot: /opt/skyhook' }],
  [`${env}.agentLogRoot`, '/opt/logs', { taken: 'agentLogRoot: /opt/logs' }],
  [`${env}.logLevel`, 'debug', { taken: 'logLevel: debug' }],
  [`${env}.reapplyOnReboot`, 'true', { taken: 'reapplyOnReboot: "true"' }],
  [`${env}.reapplyOnReboot`, 'false', { taken: 'reapplyOnReboot: "false"' }],
  [
    `${env}.runtimeRequiredTaint`,
    'nodewright.nvidia.com=runtime-required:NoSchedule',
    { taken: 'runtimeRequiredTaint: nodewright.nvidia.com=runtime-required:NoSchedule' },
  ],
  ['imagePullSecret', 'registry-login', { taken: '"registry-login"' }],
  ['estimatedNodeCount', 7, { taken: 'estimatedNodeCount: "7"' }],
  ['rbac.createSkyhookViewerRole', true, { taken: 'name: skyhook-viewer-role' }],
  ['rbac.createSkyhookEditorRole', true, { taken: 'name: skyhook-editor-role' }],
  ['fullnameOverride', 'hosts', { taken: 'name: hosts' }],
  [`${env}.jobStageTimeout`, '1h', { refused: /jobStageTimeout: set stageTimeout of packages/ }],
  [`${env}.jobStageTimeout`, '0', 'no effect'],
  [`${env}.jobBackoffLimit`, '3', { refused: /jobBackoffLimit: .*failureThreshold of a DeploymentPolicy/ }],
  [`${env}.jobTtlSucceeded`, '1h', { refused: /jobTtlSucceeded: there are no Jobs; .*agentLogRoot/ }],
  [`${env}.jobTtlFailed`, '24h', { refused: /jobTtlFailed: there are no Jobs; .*agentLogRoot/ }],
  [`${env}.legacyCleanupDelay`, '24h', { refused: /legacyCleanupDelay: agents keep the keys/ }],
  [`${env}.publishLegacyMetrics`, 'false', { refused: /publishLegacyMetrics: agents publish the series skyhook_\*/ }],
  [`${env}.publishLegacyMetrics`, 'true', 'no effect'],
  ['nameOverride', 'x', { taken: 'name: skyhookd-x' }],
  [`${env}.leaderElection`, 'false', 'no effect'],
  [`${env}.metricsPort`, ':8443', 'no effect'],
  [`${env}.probePort`, ':8082', 'no effect'],
  [`${env}.pauseImage`, 'registry.k8s.io/pause:3.9', 'no effect'],
  ['controllerManager.tolerations', [{ operator: 'Exists' }], 'no effect'],
  ['controllerManager.selectors', { pool: 'infra' }, 'no effect'],
  ['controllerManager.nodeAffinity', { matchExpressions: [] }, 'no effect'],
  ['controllerManager.replicas', 3, 'no effect'],
  ['controllerManager.podDisruptionBudget', { minAvailable: 2 }, 'no effect'],
  ['controllerManager.serviceAccount', { annotations: { role: 'x' } }, 'no effect'],
  ['controllerManager.kubeRbacProxy', { image: { tag: 'v0.15.0' } }, 'no effect'],
  ['controllerManager.manager.containerSecurityContext', { capabilities: {} }, 'no effect'],
  ['controllerManager.manager.image', { repository: 'operator', tag: 'v0.20.0' }, 'no effect'],
  ['controllerManager.manager.agent', { repository: 'agent', tag: 'v7.0.0' }, 'no effect'],
  ['controllerManager.manager.resources', { limits: { memory: '1Gi' } }, 'no effect'],
  ['kubernetesClusterDomain', 'example.com', 'no effect'],
  ['metricsService', { type: 'NodePort' }, 'no effect'],
  ['metrics.addServiceAccountBinding', true, 'no effect'],
  ['metrics.serviceAccountName', 'prometheus', 'no effect'],
  ['metrics.serviceAccountNamespace', 'monitoring', 'no effect'],
  ['webhookService', { type: 'ClusterIP' }, 'no effect'],
  ['webhook', { enable: false, serviceName: '', removalTag: '1.36.2' }, 'no effect'],
  ['cleanup', { enabled: true, jobTimeoutSeconds: 60 }, 'no effect'],
  ['selectorMigration', { enabled: true, jobTimeoutSeconds: 60 }, 'no effect'],
  ['limitRange', { default: { cpu: '1' } }, 'no effect'],
  ['useHostNetwork', true, 'no effect'],
  ['estimatedPackageCount', 9, 'no effect'],
]

test.each(outcomes)("the operator's value %s=%j has the outcome of its row", async (name, value, outcome) => {
  const values = withValue(name, value)
  if (outcome === 'no effect') {
    expect(await render(values)).toBe(await render({}))
    expect(await notes(values)).toContain(`\n    ${name} has no effect: `)
  } else if ('taken' in outcome) expect(await render(values)).toContain(outcome.taken)
  else await expect(render(values)).rejects.toThrow(outcome.refused)
})

test('all refused values are named at once', async () => {
  const refused = outcomes.filter(([, , outcome]) => typeof outcome === 'object' && 'refused' in outcome)
  const values = refused.reduce<Json>((all, [name, value]) => withValue(name, value, all), {})
  const message = await render(values).then(() => '', String)
  expect([...message.matchAll(/^ {2}(\S+): /gm)].map(([, name]) => name)).toEqual(
    refused.map(([name]) => name).toSorted(),
  )
})

test("the README tells the outcome of each of the operator's values", async () => {
  const tested = (is: (outcome: Outcome) => boolean): string[] => [
    ...new Set(outcomes.filter(([, , outcome]) => is(outcome)).map(([name]) => name)),
  ]
  const refused = tested((outcome) => typeof outcome === 'object' && 'refused' in outcome)
  expect((await namesInReadme('refused')).toSorted()).toEqual(refused.toSorted())
  const withoutEffect = tested((outcome) => outcome === 'no effect').filter((name) => !refused.includes(name))
  expect((await namesInReadme('no effect')).toSorted()).toEqual(withoutEffect.toSorted())
})

test("the operator's taint is the one that the policies let agents remove", async () => {
  expect(await render(operatorEnv(hostValues))).toContain("t.key != 'example.com/new'")
})

test("the notes name each of the operator's values that is given, and no other", async () => {
  expect(await notes({})).not.toMatch(/operator|no effect/)
  const ignored = await namesInReadme('no effect')
  const noted = [...(await notes(await withoutEffect())).matchAll(/^ {4}(\S+) has no effect: /gm)]
  expect(new Set(noted.map(([, name]) => name))).toEqual(new Set(ignored))
  const taken = [...(await notes(operatorEnv(hostValues))).matchAll(/^ {4}(\S+) is taken as (\S+)$/gm)]
  expect(taken.map(([, from, to]) => [from, to])).toEqual(
    Object.keys(hostValues)
      .toSorted()
      .map((name) => [`controllerManager.manager.env.${name}`, name]),
  )
})

test("a misspelt value of the operator's is refused", async () => {
  await expect(render(operatorEnv({ logLevle: 'debug' }))).rejects.toThrow(/logLevle/)
})

/** Names in the table of chart/README.md whose row says this. */
async function namesInReadme(what: string): Promise<string[]> {
  const rows = (await readFile(join(chart, 'README.md'), 'utf8')).split('\n').filter((line) => line.startsWith('| `'))
  return rows
    .filter((row) => row.split(' | ')[1]?.startsWith(what) === true)
    .flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name))
}

/** Each value that the README says to have no effect. */
const withoutEffect = async (): Promise<Json> =>
  (await namesInReadme('no effect')).reduce<Json>((values, name) => withValue(name, { given: true }, values), {})

/** `values` with one more, by its path. */
function withValue(name: string, value: unknown, values: Json = {}): Json {
  const [first = '', ...rest] = name.split('.')
  const inner = rest.length === 0 ? value : withValue(rest.join('.'), value, (values[first] ?? {}) as Json)
  return { ...values, [first]: inner }
}
