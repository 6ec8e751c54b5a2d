/**
 * docs/usage/takeover.md on a real API server: its commands as printed, on objects that the operator left. A chart with
 * the operator's names stands for the operator's. There are no hosts here: test/takeover has agents at work.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkTakeover } from '../../src/cli/doctor/read/read-takeover.ts'
import { takeoverReport } from '../../src/cli/doctor/takeover/report.ts'
import { reportText } from '../../src/cli/doctor/finding.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import { skyhooksPath } from '../../src/schemas/api.ts'
import { buildTool, type ToolProgram } from '../kit/tool/tool-program.ts'
import { loadMoment } from '../kit/takeover/load-cluster.ts'
import { readMoment } from '../kit/takeover/moments.ts'
import { factsOf } from '../kit/takeover/takeover-facts.ts'
import { startApiServer } from './api-server.ts'
import { chart, namespace, startChartCluster, until, type ChartCluster } from './chart-cluster.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..', '..')
const definitions = join(root, 'crds')
const webhook = 'skyhook-operator-validating-webhook'
const { signal } = new AbortController()
const merge = 'application/merge-patch+json'

let cluster: ChartCluster
let tool: ToolProgram
let folder: string
let environment: NodeJS.ProcessEnv

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skyhookd-takeover-'))
  cluster = await startChartCluster(await startApiServer())
  await cluster.server.startControllerManager()
  const { kubeconfig } = cluster.server
  tool = await buildTool({ KUBECONFIG: kubeconfig })
  const bin = (await run(join(root, 'test/sandbox/build-binaries.sh'), ['--path'])).stdout.trim()
  environment = {
    ...process.env,
    KUBECONFIG: kubeconfig,
    PATH: `${bin}:${folder}:${dirname(process.execPath)}:${process.env['PATH']}`,
  }
  await writeFile(join(folder, 'kubectl-skyhook'), `#!/bin/sh\nexec ${tool.file} "$@"\n`, { mode: 0o755 })
  await makeOperatorChart(join(folder, 'skyhook-operator'))
  await run(join(bin, 'helm'), ['package', chart, '--destination', folder])
  await cluster.server.kubectl('create', 'namespace', namespace)
  for (const file of ['skyhooks', 'deploymentpolicies'])
    await cluster.server.kubectl('apply', '--server-side', '-f', join(definitions, `skyhook.nvidia.com_${file}.yaml`))
  await until(
    () => cluster.admin('GET', `/api/v1/namespaces/${namespace}/serviceaccounts/default`),
    ({ status }) => status === 200,
  )
})
afterAll(async () => {
  await tool?.remove()
  await cluster?.stop()
  await rm(folder, { recursive: true, force: true })
})

/** What doctor goes by, and what refuses changes when nobody answers; it owns the definitions, as the operator's does. */
async function makeOperatorChart(path: string): Promise<void> {
  await mkdir(join(path, 'templates'), { recursive: true })
  await writeFile(join(path, 'Chart.yaml'), 'apiVersion: v2\nname: skyhook-operator\nversion: 0.13.1\n')
  for (const file of ['skyhooks', 'deploymentpolicies']) {
    const text = await readFile(join(definitions, `skyhook.nvidia.com_${file}.yaml`), 'utf8')
    await writeFile(join(path, 'templates', `${file}.yaml`), text.replaceAll('{{', '{{ "{{" }}'))
  }
  const name = 'skyhook-operator-controller-manager'
  const labels = { 'control-plane': 'controller-manager' }
  const env = ['AGENT_IMAGE', 'RUNTIME_REQUIRED_TAINT'].map((one) => ({ name: one, value: 'x' }))
  const rule = { apiGroups: ['skyhook.nvidia.com'], apiVersions: ['v1alpha1'], operations: ['UPDATE'] }
  const hook = (one: string) => ({
    name: `${one}.nvidia.com`,
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    clientConfig: { service: { name: 'skyhook-operator-webhook-service', namespace } },
    rules: [{ ...rule, resources: ['skyhooks'] }],
  })
  const objects = [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'manager', image: 'operator:0.13.0', env }] } },
      },
    },
    ...(['Validating', 'Mutating'] as const).map((kind) => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: `${kind}WebhookConfiguration`,
      metadata: { name: `skyhook-operator-${kind.toLowerCase()}-webhook` },
      webhooks: [hook(`${kind.toLowerCase()}-skyhook`)],
    })),
  ]
  for (const [index, object] of objects.entries())
    await writeFile(join(path, 'templates', `object-${index}.json`), JSON.stringify(object))
}

describe('doctor --takeover', () => {
  test.each(['07-downgrade-uninstall', '11-operator-stopped-pods-finished', '12-deletion-requested-operator-gone'])(
    'doctor says of %s on a real API server what it says of its file',
    async (name) => {
      const remove = await loadMoment(cluster.server.admin, readMoment(name), namespace)
      const said = reportText(await checkTakeover(cluster.server.admin, signal))
      await remove()
      const expected = reportText(
        takeoverReport({ ...factsOf(readMoment(name)), deployments: { known: true, value: [] } }),
      )
      expect(said).toBe(expected)
    },
  )
})

type Ended = { readonly code: number; readonly output: string }

/** As a shell runs it, in the folder of a release. */
async function shell(line: string): Promise<Ended> {
  try {
    const { stdout, stderr } = await run('/bin/sh', ['-c', line], {
      cwd: folder,
      env: environment,
      timeout: 45_000, // a command that waits for what never comes
    })
    return { code: 0, output: `${stdout}${stderr}` }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, output: `${stdout}${stderr}` }
  }
}

/** Each line ends with 0. */
async function succeed(...lines: readonly string[]): Promise<void> {
  for (const line of lines) {
    const ended = await shell(line)
    expect(ended.code, `${line}: ${ended.output}`).toBe(0)
  }
}

/** Of the page, by the number of its step in a section. */
async function commandsOf(section: string): Promise<readonly (readonly string[])[]> {
  const page = await readFile(join(root, 'docs/usage/takeover.md'), 'utf8')
  const text = page.split(/^## /m).find((one) => one.startsWith(`${section}\n`)) ?? ''
  const [, ...steps] = text.split(/^\*\*\d+\. /m)
  return steps.map((step) =>
    [...step.matchAll(/^```\n([^]*?)^```/gm)].flatMap(([, block = '']) => block.trim().split('\n')),
  )
}

const idsIn = ({ output }: Ended): readonly string[] =>
  [...output.matchAll(/\b([a-z]+(?:-[a-z]+)+): /g)].flatMap((one) => one[1] ?? [])
const change = async () =>
  await cluster.admin('PATCH', `${skyhooksPath}/drivers`, { metadata: { annotations: { note: 'x' } } }, merge)
/**
 * As the census counts a Skyhook that is complete; `kubectl wait` looks at the generation that was counted. The
 * finalizer stays, as for packages with an uninstall.
 */
async function complete(): Promise<void> {
  const path = `${skyhooksPath}/drivers`
  const { metadata } = await cluster.server.admin.json<KubeObject>('GET', path)
  const counted = { observedGeneration: metadata.generation }
  const since = '2026-01-01T00:00:00Z'
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'Complete',
    message: '',
    lastTransitionTime: since,
    ...counted,
  }
  const ofOperator = { ...ready, type: 'skyhook.nvidia.com/Transition', reason: 'complete' }
  const status = { ...counted, status: 'complete', conditions: [ready, ofOperator] }
  expect(await cluster.admin('PATCH', `${path}/status`, { status }, merge)).toMatchObject({ status: 200 })
}

async function conditions(): Promise<readonly string[]> {
  const { body } = await cluster.admin('GET', `${skyhooksPath}/drivers`)
  const { status } = body as { readonly status: { readonly conditions: readonly { readonly type: string }[] } }
  return status.conditions.map(({ type }) => type)
}

test('the commands of the takeover and of the way back do what the page says', async () => {
  await loadMoment(cluster.server.admin, readMoment('10-admin-cordon-before-interrupt'), namespace)
  const installed = await shell(
    `helm install skyhook-operator ./skyhook-operator -n ${namespace} --take-ownership --force-conflicts`,
  )
  expect(installed.code, installed.output).toBe(0)
  expect((await change()).message).toMatch(/failed calling webhook/)

  const [look = [], wait = [], stop = [], pods = [], cordons = [], again = [], install = [], forget = []] =
    await commandsOf('Switch to skyhookd')
  const first = await shell(look.join('\n'))
  expect([first.code, idsIn(first)]).toEqual([
    1,
    expect.arrayContaining([
      'stage-repeated',
      'operator-running',
      'operator-webhook',
      'package-pod-running',
      'cordon-of-person',
      'operator-release',
    ]),
  ])
  for (const line of stop) expect(first.output).toContain(line) // doctor prints the same command
  for (const line of cordons) expect(first.output).toContain(line)
  for (const line of [...wait, ...stop]) expect(await shell(line)).toMatchObject({ code: 0 })
  expect(await change()).toMatchObject({ status: 200 })
  expect((await shell(pods[0] ?? '')).output).toContain('drivers-interrupt-service-node-1')
  // without a kubelet nobody else ends them
  for (const line of [`${pods[1] ?? ''} --force --grace-period=0`, ...cordons])
    expect(await shell(line)).toMatchObject({ code: 0 })
  await until(
    async () => await shell(again.join('\n')),
    ({ code }) => code === 0,
    30_000,
  )

  await complete()
  await succeed(...install)
  expect((await cluster.admin('GET', `/apis/apps/v1/namespaces/${namespace}/daemonsets/skyhookd`)).status).toBe(200)

  const [ready = [], remove = [], handBack = [], configMaps = [], start = []] = await commandsOf('Back')
  const packageConfigMaps = async () =>
    (await shell(`kubectl -n ${namespace} get configmaps -o name`)).output.match(/\S*driver-5\.0\.0\S*/g) ?? []
  expect(await packageConfigMaps()).not.toEqual([])
  await succeed(...ready, ...remove)
  expect(await conditions()).toContain('Ready')
  await succeed(...handBack, ...configMaps)
  expect(await conditions()).toEqual(['skyhook.nvidia.com/Transition'])
  expect(await packageConfigMaps()).toEqual([])
  expect((await cluster.admin('GET', `${skyhooksPath}/drivers`)).status).toBe(200)
  await succeed(...start, "kubectl wait --for=jsonpath='{.status.status}'=complete skyhooks --all --timeout=10s")
  expect((await shell(`kubectl get validatingwebhookconfiguration ${webhook}`)).code).toBe(0)

  // another time, for good
  await succeed(...stop, ...forget)
  expect((await shell(`helm list -n ${namespace} -q`)).output).not.toContain('skyhook-operator')
  expect((await cluster.admin('GET', `${skyhooksPath}/drivers`)).status).toBe(200)
})
