/** Rows C26 to C28 and N15: the operator's scenarios of its command-line tool, with ours as it is shipped. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ignoreLabel, nodeStateKey, pauseKey, disableKey, statusKey } from '../../src/schemas/annotations.ts'
import { uniqueName } from '../kit/cluster/cluster.ts'
import { paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { manifest, shellscript } from '../kit/cluster/skyhooks.ts'
import { buildTool, type ToolProgram } from '../kit/tool/tool-program.ts'
import { awaitReady, entryOf, expectComplete, nodeOf, useConformance } from './conformance.ts'
import { row } from './rows.ts'

const cluster = useConformance()
const node = 'node-1'
let tool: ToolProgram

beforeAll(async () => {
  tool = await buildTool({ KUBECONFIG: cluster.kubeconfig })
}, 120_000)
afterAll(async () => await tool.remove())

/** Standard output of a call that has to succeed without a word on stderr. */
async function must(line: string): Promise<string> {
  const { code, stdout, stderr } = await tool.run(line)
  expect({ line, code, stderr }).toEqual({ line, code: 0, stderr: '' })
  return stdout
}

type Marked = { readonly metadata: { annotations?: Record<string, string>; labels?: Record<string, string> } }

const annotationsOf = async (name: string): Promise<Record<string, string>> =>
  (await cluster.api.json<Marked>('GET', `${paths.skyhooks}/${name}`)).metadata.annotations ?? {}
const nodeNow = async (): Promise<Marked> => await cluster.api.json<Marked>('GET', `${paths.nodes}/${node}`)

/** A complete Skyhook of one package. */
async function complete(stem: string): Promise<string> {
  const name = uniqueName(stem)
  await cluster.apply(manifest(name, { packages: { 'hello-world': cluster.pack('3.2.3') } }), node)
  await expectComplete(cluster, name, { 'hello-world|3.2.3': 'config' })
  return name
}

/**
 * Runs a verb that makes the node start over, and waits until the node has done all of it again. The Skyhook may say
 * Ready from before for as long: its status is written at most once a second.
 */
async function startOver(name: string, line: string): Promise<void> {
  await must(line)
  const status = (view: View) => nodeOf(view, node, name).status
  await cluster.history.eventually(`${node} starts over`, (view) => status(view) !== 'complete')
  await cluster.history.eventually(`${node} is complete again`, (view) => status(view) === 'complete')
}

test(row('C26'), async () => {
  const name = await complete('lifecycle')
  const switches = async () => {
    const { [pauseKey]: pause, [disableKey]: disable } = await annotationsOf(name)
    return { pause, disable }
  }
  const [set, unset] = ['true', undefined]
  for (const [line, expected] of [
    [`pause ${name} --confirm`, { pause: set, disable: unset }],
    [`resume ${name} --confirm`, { pause: unset, disable: unset }],
    [`disable ${name} --confirm`, { pause: unset, disable: set }],
    [`enable ${name} --confirm`, { pause: unset, disable: unset }],
    [`pause ${name} -y`, { pause: set, disable: unset }],
    [`disable ${name} -y`, { pause: set, disable: set }],
    [`resume ${name} -y`, { pause: unset, disable: set }],
    [`enable ${name} -y`, { pause: unset, disable: unset }],
  ] as const) {
    await must(line)
    expect({ line, ...(await switches()) }).toEqual({ line, ...expected })
  }
  expect(await tool.run(`pause ${name}`)).toMatchObject({ code: 4, stdout: '' })
  await awaitReady(cluster, name)
})

test(row('C27'), async () => {
  const name = await complete('nodes')
  const { nodes } = JSON.parse(await must(`node list --skyhook ${name} -o json`)) as { nodes: object[] }
  expect(nodes).toEqual([{ nodeName: node, status: 'complete', packagesComplete: 1, packagesTotal: 1, restarts: 0 }])
  expect(await must(`node list --skyhook ${name}`)).toMatch(/^node-1 +complete +1\/1$/m)
  for (const line of ['node status', `node status ${node}`, `node status --skyhook ${name}`])
    expect(await must(line)).toMatch(new RegExp(`^${node} +${name} +complete +1/1$`, 'm'))

  await must(`node ignore ${node}`)
  expect((await nodeNow()).metadata.labels).toMatchObject({ [ignoreLabel]: 'true' })
  await cluster.edit(name, {
    packages: { 'hello-world': { env: [{ name: 'X', value: '1' }] }, second: cluster.pack('1.2.3') },
  })
  await cluster.history.eventually(
    'the ignored node does not work on the edit',
    (view) => nodeOf(view, node, name).reason?.reason === 'Ignored',
  )
  expect(entryOf(cluster.history.now, node, name, 'second|1.2.3')).toBe('absent')
  await must(`node unignore ${node}`)
  expect((await nodeNow()).metadata.labels).not.toHaveProperty([ignoreLabel])
  await expectComplete(cluster, name, { 'hello-world|3.2.3': 'config', 'second|1.2.3': 'config' })

  const before = (await cluster.lines(node, name)).length
  await startOver(name, `node reset ${node} --skyhook ${name} --confirm`)
  await expectComplete(cluster, name, { 'hello-world|3.2.3': 'config', 'second|1.2.3': 'config' })
  const stepsOfPackage = ['apply', 'apply-check', 'config', 'config-check']
  expect((await cluster.lines(node, name)).length).toBe(before + 2 * stepsOfPackage.length)
})

test(row('C28'), async () => {
  const name = uniqueName('package')
  const work = shellscript(cluster.registry, { apply: 'echo "hello from the host"' })
  await cluster.apply(manifest(name, { packages: { 'hello-world': work } }), node)
  await awaitReady(cluster, name)
  const entry = { nodeName: node, packageName: 'hello-world', version: '1.1.0', stage: 'config', state: 'complete' }
  for (const more of ['', ` --node ${node}`])
    expect(JSON.parse(await must(`package status hello-world --skyhook ${name}${more} -o json`))).toEqual([
      expect.objectContaining(entry),
    ])
  const logs = await must(`package logs hello-world --skyhook ${name} --node ${node} --stage apply`)
  expect(logs).toContain('hello from the host')

  const rerun = `package rerun hello-world --skyhook ${name} --node ${node}`
  const stateOf = async () => (await nodeNow()).metadata.annotations?.[nodeStateKey(name)]
  const before = await stateOf()
  expect(await must(`${rerun} --dry-run`)).toContain('dry run')
  expect(await must(`${rerun} --dry-run=server`)).toContain('server dry run')
  expect(await stateOf()).toBe(before)
  const seen = await cluster.history.values((view) => nodeOf(view, node, name).status)
  await startOver(name, `${rerun} --stage apply --confirm`)
  await awaitReady(cluster, name)
  expect((await cluster.history.values((view) => nodeOf(view, node, name).status)).length).toBeGreaterThan(seen.length)
})

test(row('N15'), async () => {
  const name = await complete('reset')
  const before = (await cluster.lines(node, name)).length
  expect(await must(`reset ${name} --dry-run -o json`)).toContain('"dryRun": "client"')
  expect((await nodeNow()).metadata.annotations).toHaveProperty([statusKey(name)], 'complete')
  await startOver(name, `reset ${name} --confirm`)
  await expectComplete(cluster, name, { 'hello-world|3.2.3': 'config' })
  expect((await cluster.lines(node, name)).length).toBe(2 * before)
  expect(await tool.run('reset no-such-skyhook --confirm')).toMatchObject({ code: 3, stdout: '' })
})
