/** What `doctor` and `bundle` say of real agents, hosts and permissions. */
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildTool, type ToolEnd, type ToolProgram } from '../kit/tool/tool-program.ts'
import { cordonKey } from '../../src/schemas/annotations.ts'
import { censusLeaseName } from '../../src/lease/names.ts'
import { deleteAgent, hasReadyAgent, withoutAgents } from '../kit/cluster/agents.ts'
import { type NodeName, nodeNames, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import type { View } from '../kit/cluster/moments.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import { manifest, publishedState, shellscript } from '../kit/cluster/skyhooks.ts'

const run = promisify(execFile)
const cluster = useCluster()
const name = uniqueName('doctor')
const metricsPort = 9475
const literal = 'literal-of-an-environment'
let folder: string
let program: ToolProgram

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'doctor-'))
  program = await buildTool({ KUBECONFIG: cluster.kubeconfig })
  const greeting = shellscript(
    cluster.registry,
    { apply: `echo ${literal}-in-a-script` },
    { env: [{ name: 'MODE', value: literal }] },
  )
  await cluster.apply(manifest(name, { packages: { greeting } }), 'node-1')
  await cluster.history.eventually('the Skyhook is complete', ({ nodes }) => {
    const node = nodes.get('node-1')
    return node !== undefined && publishedState(node, name).status === 'complete'
  })
})
afterAll(async () => {
  await program.remove()
  await rm(folder, { recursive: true })
})

type Ended = Pick<ToolEnd, 'code' | 'stdout' | 'stderr'>

const tool = async (call: string): Promise<Ended> => await program.run(call)

type Item = {
  readonly check: string
  readonly verdict: string
  readonly findings: readonly { readonly id: string; readonly message: string }[]
  readonly unknown: readonly string[]
  readonly about: string
}

const itemsOf = ({ stdout, stderr }: Ended): readonly Item[] => {
  if (stdout === '') throw new Error(stderr)
  return (JSON.parse(stdout) as { readonly items: readonly Item[] }).items
}
/** Beside that the machine of the tests may have cgroup v1. */
const findingsOf = (ended: Ended): readonly string[] =>
  itemsOf(ended)
    .flatMap(({ findings }) => findings.map(({ id, message }) => `${id}: ${message}`))
    .filter((text) => !text.startsWith('host-warning: cgroup-v1'))

describe('doctor', () => {
  test('nothing is found in a cluster as the chart sets it up', async () => {
    const ended = await tool('doctor -o json')
    expect(findingsOf(ended)).toEqual([])
    expect(itemsOf(ended).flatMap(({ unknown }) => unknown)).toEqual([])
    expect(itemsOf(ended)).toHaveLength(11)
    expect(ended.code).toBe(0)
  })

  test('the host of a node is described by its agent', async () => {
    const { code, stdout } = await tool('doctor --node node-1')
    expect(stdout).toMatch(/^hosts +\w+ +Debian .*, kernel .*, systemd \d+/m)
    expect(code).toBe(0)
  })

  test('a binding that somebody deleted is found', async () => {
    const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings'
    const path = `${bindings}/skyhookd-own-node`
    type Binding = {
      readonly metadata: { readonly labels: object; readonly annotations: object }
      readonly spec: object
    }
    const { metadata, spec } = await cluster.api.json<Binding>('GET', path)
    await cluster.api.json('DELETE', path)
    try {
      const ended = await tool('doctor -o json')
      expect(findingsOf(ended)).toEqual([
        'policy-unbound: ValidatingAdmissionPolicy skyhookd-own-node has 0 of 1 binding',
      ])
      expect(ended.code).toBe(1)
    } finally {
      const { labels, annotations } = metadata
      const again = { metadata: { name: 'skyhookd-own-node', labels, annotations }, spec }
      await cluster.api.json('POST', bindings, { body: again })
    }
  })

  test('a cordon is left over while no agent can give it back, and its agent gives it back', async () => {
    await withoutAgents(cluster, async () => {
      const annotations = { [cordonKey('gone')]: 'true' }
      await patch(cluster.api, `${paths.nodes}/node-3`, { metadata: { annotations }, spec: { unschedulable: true } })
      const ended = await tool('doctor --node node-3 -o json')
      expect(itemsOf(ended).find(({ check }) => check === 'cordons')?.findings).toMatchObject([
        { id: 'cordon-left-over', message: '1 node cordoned for Skyhook gone, which does not exist: node-3' },
      ])
      expect(ended.code).toBe(1)
    })
    await cluster.history.eventually('node-3 is schedulable', ({ nodes }) => {
      const node = nodes.get('node-3')
      return node?.spec?.unschedulable !== true && !(cordonKey('gone') in (node?.metadata.annotations ?? {}))
    })
    expect((await tool('doctor --node node-3')).code).toBe(0)
  })

  test('on a host itself it looks at the host, and writes nothing there', async () => {
    const host = cluster.host('node-1')
    const leader = (await cluster.sandbox.must(['leader', 'node-1'])).trim()
    await copyFile(process.execPath, `/proc/${leader}/root/var/tmp/node`)
    for (const file of program.parts) await copyFile(file, `/proc/${leader}/root/var/tmp/${basename(file)}`)
    const library = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/libatomic.so.1`
    await copyFile(library, `/proc/${leader}/root/var/tmp/libatomic.so.1`)
    const before = await host.list('/var/lib/skyhook')
    const start = ['env', 'LD_LIBRARY_PATH=/var/tmp', '/var/tmp/node', '/var/tmp/kubectl-skyhook']
    const ended = { code: 0, stdout: await host.exec(...start, 'doctor', '--host', '-o', 'json'), stderr: '' }
    expect(itemsOf(ended).map(({ check }) => check)).toEqual(['host', 'bus', 'memory', 'disk', 'journal', 'files'])
    expect(findingsOf(ended)).toEqual([])
    expect(itemsOf(ended).find(({ check }) => check === 'host')?.about).toMatch(/^node-1, Debian .*, systemd \d+/)
    expect(itemsOf(ended).find(({ check }) => check === 'journal')?.about).toBe('readable')
    expect(await host.list('/var/lib/skyhook')).toEqual(before)
    const copied = ['node', 'libatomic.so.1', ...program.parts.map((file) => basename(file))]
    await host.exec('rm', ...copied.map((file) => `/var/tmp/${file}`))
  })
})

describe('a census that hangs', () => {
  test('a census that hangs is replaced within 90 s, and is not said to count meanwhile', async () => {
    const leaderIn = ({ leases }: View): string => leases.get(censusLeaseName)?.spec?.holderIdentity ?? ''
    const census = async (): Promise<Item | undefined> =>
      itemsOf(await tool('doctor -o json')).find(({ check }) => check === 'census')
    await cluster.history.eventually('an agent leads', (view) => leaderIn(view) !== '')
    const former = leaderIn(cluster.history.now) as NodeName
    const sayCounting = async (node: string): Promise<string> => {
      const page = await cluster.sandbox.kubectl([
        'get',
        '--raw',
        `${paths.nodes}/${node}:${metricsPort}/proxy/metrics`,
      ])
      return /^skyhookd_census_leader (\d)$/m.exec(page)?.[1] ?? ''
    }
    expect(await sayCounting(former)).toBe('1')
    await cluster.host(former).exec('sh', '-c', 'pkill -STOP -f "skyhookd.cjs censu[s]"')
    await cluster.history.eventually(
      'another agent leads',
      (view) => leaderIn(view) !== '' && leaderIn(view) !== former,
      90_000,
    )
    const next = leaderIn(cluster.history.now)
    await expect.poll(async () => await sayCounting(next), { timeout: 20_000 }).toBe('1')
    await expect.poll(async () => await sayCounting(former), { timeout: 20_000 }).toBe('0')
    expect(await census()).toMatchObject({ verdict: 'ok', about: `held by ${next}` })
    // it cannot end by itself: its agent kills it
    const hung = async (): Promise<string> =>
      await cluster.host(former).exec('sh', '-c', 'pgrep -f "skyhookd.cjs censu[s]" || true')
    await expect.poll(hung, { timeout: 20_000 }).toBe('')
  }, 150_000)

  // its agent lets others lead for half an hour; new agents start fresh
  afterAll(async () => {
    await Promise.all(nodeNames.map(async (node) => await deleteAgent(cluster, node)))
    await cluster.history.eventually('every agent is Ready, and one leads', (view) => {
      const areReady = nodeNames.every((node) => hasReadyAgent(view, node))
      return areReady && (view.leases.get(censusLeaseName)?.spec?.holderIdentity ?? '') !== ''
    })
  }, 60_000)
})

describe('bundle', () => {
  test('explain says the same of a bundle as of the cluster, and the values of variables are not in it', async () => {
    const file = join(folder, 'b.tar.gz')
    const live = await tool(`explain ${name} node-1 -o json`)
    expect((await tool(`bundle --node node-1 --file ${file}`)).code).toBe(0)
    const archived = await tool(`explain ${name} node-1 --from ${file} -o json`)
    expect(JSON.parse(archived.stdout)).toEqual(JSON.parse(live.stdout))
    expect(JSON.parse(live.stdout)).toMatchObject({ items: [{ state: 'complete' }] })
    const text = gunzipSync(await readFile(file)).toString('utf8')
    const forbidden = [literal, '"managedFields"', 'last-applied-configuration', 'PRIVATE KEY']
    expect(forbidden.filter((secret) => text.includes(secret))).toEqual([])
    expect(text.includes('"MODE"')).toBe(true)
  })
})

describe('a person with the role of viewers', () => {
  const viewer = '--as viewer'
  let roles: string

  beforeAll(async () => {
    const chart = join(import.meta.dirname, '../../chart')
    const template = ['template', 'skyhookd', chart, '-n', 'skyhook', '-s', 'templates/people-roles.yaml']
    const env = { ...process.env, ...cluster.sandbox.env() }
    roles = (await run('helm', [...template, '--set', 'rbac.createSkyhookViewerRole=true'], { env })).stdout
    await cluster.sandbox.kubectl(['apply', '-f', '-'], roles)
    const bind = async (...binding: string[]): Promise<string> =>
      await cluster.sandbox.kubectl(['create', ...binding, '--user', 'viewer'])
    await bind('clusterrolebinding', 'test-viewer', '--clusterrole', 'skyhook-viewer-role')
    for (const namespace of ['skyhook', 'default'])
      await bind('rolebinding', 'test-viewer', '--role', 'skyhook-viewer-role', '-n', namespace)
  })
  afterAll(async () => {
    await cluster.sandbox.kubectl(['delete', '-f', '-'], roles)
    await cluster.sandbox.kubectl(['delete', 'clusterrolebinding', 'test-viewer'])
    for (const namespace of ['skyhook', 'default'])
      await cluster.sandbox.kubectl(['delete', 'rolebinding', 'test-viewer', '-n', namespace])
  })

  test('doctor tells such a person what is unknown, and looks at the rest', async () => {
    const ended = await tool(`doctor ${viewer} -o json`)
    const beside = itemsOf(ended).filter(({ check }) => check !== 'hosts')
    expect(beside.map(({ check, verdict }) => [check, verdict])).toEqual([
      ['versions', 'ok'],
      ['permissions', 'unknown'],
      ['policies', 'unknown'],
      ['definitions', 'unknown'],
      ['priority', 'unknown'],
      ['agents', 'ok'],
      ['census', 'ok'],
      ['cordons', 'ok'],
      ['slots', 'ok'],
      ['taints', 'ok'],
    ])
    expect(findingsOf(ended)).toEqual([])
    expect(itemsOf(ended).flatMap(({ unknown }) => unknown)).toContain('you may not read FlowSchemas')
    expect(ended.code).toBe(0)
  })

  test('a bundle of such a person lists what is unknown', async () => {
    const { code, stdout } = await tool(`bundle ${viewer} --file ${folder}/viewer.tar.gz`)
    expect(code).toBe(0)
    expect(stdout).toMatch(/unknown, and not in it\n(?: {2}.*\n)* {2}PodDisruptionBudgets: you may not read/)
    expect(stdout).toMatch(/ {2}Nodes: 3\n/)
  })
})
