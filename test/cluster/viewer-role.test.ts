/** Every command that reads, under the chart's viewer role and under no role at all, on a real API server. */
import { beforeAll, afterAll, describe, expect, test } from 'vitest'
import { allCommands } from '../../src/cli/commands/all.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { createKubeTransport, type KubeTransport } from '../../src/kube/transport.ts'
import { type CommandLine, commandLine } from '../kit/tool/command-line.ts'
import { tuningFile } from '../kit/tool/example-cluster.ts'
import { staticCredentials } from '../kit/tool/static-credentials.ts'
import { type CensusCluster, namespace, startCensusCluster } from './census-cluster.ts'
import { borrowChartCluster } from './shared-cluster.ts'

const packages = { shellscript: { version: '1.0.0', image: 'registry.example.com/shellscript' } }
const rbac = '/apis/rbac.authorization.k8s.io/v1'
let census: CensusCluster
const people = new Map<string, { readonly tool: CommandLine; readonly transport: KubeTransport }>()

async function login(name: string): Promise<void> {
  const { admin } = census
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  await admin.json('POST', accounts, { body: { metadata: { name } } })
  const path = `${accounts}/${name}/token`
  const { status } = await admin.json<{ status: { token: string } }>('POST', path, { body: { spec: {} } })
  const { url: server } = census.cluster.server
  const credentials = staticCredentials({ server, ca: census.ca, token: status.token })
  const transport = createKubeTransport({ credentials, version: 'test', clock: systemClock, rate: false })
  people.set(name, { tool: commandLine({ client: transport, clock: systemClock }), transport })
}

/** As chart/README.md says. */
async function bindViewer(name: string): Promise<void> {
  const subjects = [{ kind: 'ServiceAccount', name, namespace: 'default' }]
  const bind = async (path: string, kind: string): Promise<void> => {
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind, name: 'skyhook-viewer-role' }
    await census.admin.json('POST', `${rbac}${path}`, { body: { metadata: { name: 'viewers' }, roleRef, subjects } })
  }
  await bind('/clusterrolebindings', 'ClusterRole')
  await bind(`/namespaces/${namespace}/rolebindings`, 'Role')
  await bind('/namespaces/default/rolebindings', 'Role')
}

beforeAll(async () => {
  census = await startCensusCluster(await borrowChartCluster())
  await census.cluster.helm(
    'upgrade',
    'skyhookd',
    'chart',
    '--reuse-values',
    '--set',
    'rbac.createSkyhookViewerRole=true',
  )
  await census.createNode('n1')
  await census.createNode('n2')
  for (const name of ['n1', 'n2']) {
    const patch = async (path: string, kind: 'merge' | 'strategic-merge', body: object) =>
      await census.admin.json('PATCH', path, { body, contentType: `application/${kind}-patch+json` })
    await patch(`/api/v1/nodes/${name}`, 'merge', { spec: { taints: null } })
    const containers = [{ name: 'agent', image: 'skyhookd:0.1.0' }]
    await patch(`/api/v1/namespaces/${namespace}/pods/agent-of-${name}`, 'strategic-merge', { spec: { containers } })
  }
  await census.apply('tuning', { interruptionBudget: { count: 1 }, packages })
  await census.publish('n1', 'tuning', {
    status: 'erroring',
    entries: { shellscript: 'apply/erroring' },
    reason: ['StepFailed', 'package shellscript: apply step apply.sh exited with 1'],
  })
  for (const name of ['viewer', 'nobody']) await login(name)
  await bindViewer('viewer')
}, 240_000)
afterAll(async () => {
  for (const { transport } of people.values()) transport.close()
  await census.stop()
})

const run = async (name: string, line: string) => {
  const person = people.get(name)
  if (person === undefined) throw new Error(`nobody is called ${name}`)
  return await person.tool.run(line, { readFile: () => Promise.resolve(tuningFile) })
}

/** Logs need kubelets, and the page that is served ends with ctrl-C: they have tests of their own. */
const elsewhere = new Set(['package logs', 'logs', 'history', 'dashboard', 'bundle'])
const readers = allCommands.filter(
  ({ name, isLocal, isAction }) => isLocal !== true && isAction !== true && !elsewhere.has(name),
)
const calls = readers.map(({ name, example }) => [name, example.replace('kubectl skyhook ', '')] as const)

describe('Under the viewer role', () => {
  test.each(calls)('%s answers', async (_, line) => {
    const { code, stdout, stderr } = await run('viewer', line)
    expect({ code, stderr: stderr.match(/may not|cannot|forbidden| at /g) }).toEqual({ code: 0, stderr: null })
    expect(`${stdout}${stderr}`).not.toBe('')
  })

  test('status knows nodes, reasons, agents and the budget', async () => {
    const { stdout } = await run('viewer', 'status tuning')
    expect(stdout).toContain('1 node StepFailed')
    expect(stdout).toContain('budget: 0 of 1 in use')
    expect(stdout).not.toMatch(/may not|unknown|AgentNotReady/)
  })

  test('explain names the cause, and says that pods of other namespaces are unknown', async () => {
    const { stdout } = await run('viewer', 'explain tuning n1')
    expect(stdout).toContain('Skyhook tuning on node n1: held up (step-failing)')
    expect(stdout).toMatch(/^drain +unknown +you may not read Pods of all namespaces$/m)
  })

  test('the version of the agents is found without -n', async () => {
    expect((await run('viewer', 'version')).stdout).toMatch(new RegExp(`skyhookd +\\d.*${namespace}`))
  })

  test('a viewer changes nothing', async () => {
    for (const line of ['pause tuning --yes', 'node ignore n1', 'reset tuning --yes'])
      expect(await run('viewer', line)).toMatchObject({ code: 4, stderr: expect.stringMatching(/^error: .*cannot/) })
  })
})

describe('Under no role', () => {
  test.each(calls)('%s says that it is refused', async (_, line) => {
    const { code, stdout, stderr } = await run('nobody', line)
    expect({ code: code === 0 ? 4 : code }).toEqual({ code: 4 })
    expect(`${stdout}${stderr}`).not.toMatch(/\n {4}at |undefined/)
    if (!line.includes('--client-only')) expect(`${stdout}${stderr}`).toMatch(/may not|cannot|unknown/)
  })
})
