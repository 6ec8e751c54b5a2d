/** An installation without helm, on a real API server: the commands that docs/usage/install.md prints. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { helmArguments, plainManifests } from '../../build/generate/plain-manifests.ts'
import { startApiServer } from './api-server.ts'
import { chart, startChartCluster, until, type ChartCluster, type Json } from './chart-cluster.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..', '..')
const manifestsFile = join(root, 'daemonset', 'skyhookd.yaml')
const skyhooks = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'
const agents = '/apis/apps/v1/namespaces/skyhook/daemonsets/skyhookd'

type Identified = { readonly metadata: { readonly uid: string } }

let cluster: ChartCluster
let folder: string
beforeAll(async () => {
  cluster = await startChartCluster(await startApiServer())
  await cluster.server.startControllerManager()
  folder = await mkdtemp(join(tmpdir(), 'skyhookd-plain-'))
})
afterAll(async () => {
  await cluster?.stop()
  await rm(folder, { recursive: true })
})

/** `make TARGET` without what it installs first. */
async function deploy(target: string, variables: Record<string, string> = {}): Promise<string> {
  const bin = (await run(join(root, 'test/sandbox/build-binaries.sh'), ['--path'])).stdout.trim()
  const env = {
    ...process.env,
    PATH: `${bin}:${process.env['PATH']}`,
    KUBECONFIG: cluster.server.kubeconfig,
    ...variables,
  }
  return (await run(join(root, 'build/deploy.sh'), [target], { env })).stdout
}
const imageOf = async (): Promise<string | undefined> => {
  const { body } = await cluster.admin('GET', agents)
  return (body as { spec?: { template: { spec: { containers: { image: string }[] } } } }).spec?.template.spec
    .containers[0]?.image
}
/** Grows with each change of a definition's spec. */
const generations = async (): Promise<string> =>
  await cluster.server.kubectl('get', 'customresourcedefinitions', '-o', 'custom-columns=:.metadata.generation')

test('the plain manifests are what helm renders', async () => {
  expect(plainManifests(await cluster.helm(...helmArguments()))).toBe(await readFile(manifestsFile, 'utf8'))
})

test('definitions and agents are installed with two commands, twice without a change', async () => {
  await deploy('install')
  const before = await generations()
  await deploy('install')
  expect(await generations()).toBe(before)
  await cluster.server.kubectl('apply', '-k', join(root, 'daemonset'))
  expect(await imageOf()).toBe('registry.example.com/infra/skyhookd:0.1.0')
  const again = await cluster.server.kubectl('apply', '-k', join(root, 'daemonset'))
  expect(again.split('\n').filter((line) => line !== '' && !line.endsWith('unchanged'))).toEqual([])
})

test('every object of the plain manifests is strictly valid', async () => {
  await expect(
    cluster.server.kubectl('apply', '--dry-run=server', '--validate=strict', '-f', manifestsFile),
  ).resolves.toContain('daemonset')
})

test('the policies of the plain manifests confine the agents', async () => {
  const { body } = await cluster.admin('GET', '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies')
  const items = body['items'] as { metadata: { name: string } }[]
  expect(items.map(({ metadata }) => metadata.name)).toContain('skyhookd-own-node')
  expect(JSON.stringify(items)).toContain('system:serviceaccount:skyhook:skyhookd')
})

test('the samples are created with the registry of the variable', async () => {
  const samples = join(folder, 'samples')
  await cp(join(root, 'samples'), samples, { recursive: true })
  const variable = join(samples, 'registry.yaml')
  const text = await readFile(variable, 'utf8')
  await writeFile(variable, text.replace('registry: registry.example.com', 'registry: localhost:5000/team'))
  await cluster.server.kubectl('apply', '-k', samples)
  const { body } = await cluster.admin('GET', skyhooks)
  const items = body['items'] as { spec: { packages: Record<string, { image: string }> } }[]
  expect(items).toHaveLength(3)
  for (const { spec } of items)
    for (const { image } of Object.values(spec.packages)) expect(image).toBe('localhost:5000/team/packages/shellscript')
})

test.each(['undeploy', 'uninstall'])('%s is refused while there are Skyhooks', async (target) => {
  await expect(deploy(target)).rejects.toThrow('kubectl delete skyhooks --all')
  expect(await cluster.admin('GET', `${skyhooks}/demo`)).toMatchObject({ status: 200 })
  expect(await cluster.admin('GET', agents)).toMatchObject({ status: 200 })
})

test('deploy runs the image of the variable and waits for the agents', async () => {
  const image = `localhost:5000/team/skyhookd@sha256:${'0'.repeat(64)}`
  // this cluster has no nodes, and nothing is pushed for an image by digest
  expect(await deploy('deploy', { IMAGE: image })).toContain('successfully rolled out')
  expect(await imageOf()).toBe(image)
})

test('helm continues what the plain manifests began', async () => {
  const { body } = await cluster.admin('GET', agents)
  const flags = ['--take-ownership', '--force-conflicts', '--set', 'image.repository=localhost:5000/helm']
  await cluster.helm('install', 'skyhookd', chart, ...flags)
  expect(await imageOf()).toBe('localhost:5000/helm:0.1.0')
  const after = await cluster.admin('GET', agents)
  expect((after.body as Identified).metadata.uid).toBe((body as Identified).metadata.uid)
})

test('undeploy removes no definitions and keeps what API servers follow, once there are no Skyhooks', async () => {
  await cluster.server.kubectl('delete', 'skyhooks', '--all')
  expect(await cluster.server.kubectl('get', '--ignore-not-found', '-o', 'name', '-f', manifestsFile)).toContain(
    'daemonset.apps/skyhookd',
  )
  await deploy('undeploy')
  const left = await cluster.server.kubectl('get', '--ignore-not-found', '-o', 'name', '-f', manifestsFile)
  expect(left.split('\n').filter((line) => line !== '' && !line.includes('-follows-'))).toEqual([])
  expect(left).toContain(
    'validatingadmissionpolicybinding.admissionregistration.k8s.io/skyhookd-skyhook-follows-leases',
  )
  expect(await cluster.admin('GET', skyhooks)).toMatchObject({ status: 200 })
  expect(await deploy('undeploy')).toBe('')
})

test('uninstall removes the definitions once there are no objects of them', async () => {
  await deploy('uninstall')
  await until(
    async () => await cluster.admin('GET', skyhooks),
    ({ status }: { status: number; body: Json }) => status === 404,
  )
  expect(await deploy('uninstall')).toBe('')
})
