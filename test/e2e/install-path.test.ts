/**
 * What README.md prints to install a release, run as printed: from the folder of the release alone, on a sandbox whose
 * registry needs no password. Only the name of the registry is another one, in the command that builds the release.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest'
import { readVersion } from '../../build/bundle.ts'
import { releaseWorkingTree } from '../kit/pages/working-tree.ts'
import { sandbox, type Sandbox } from '../sandbox/sandbox.ts'
import { agentLogs } from '../kit/cluster/agent-logs.ts'

const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
const [, install = ''] = /^## Install\n([\s\S]*?)^## /m.exec(readme) ?? []
const blocks = [...install.matchAll(/^```\n([\s\S]*?)^```/gm)].map(([, text = '']) => text)
const [build = '', withHelm = '', withoutHelm = ''] = blocks

const nodes = ['node-1', 'node-2']
const [upMs, releaseMs, testMs] = [300_000, 600_000, 400_000]
const work = mkdtempSync(join(tmpdir(), 'install-path-'))
let box: Sandbox
let release: string

beforeAll(async () => {
  box = sandbox(`${inject('sandbox')}-readme`)
  await box.must(['up', String(nodes.length)], { env: { AGENT: '0', REGISTRY_LOGIN: '0' } })
}, upMs)
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') console.error(`${task.name}: agent logs:\n${await agentLogs(box)}`)
})
afterAll(async () => {
  await box?.must(['down'])
  await rm(work, { recursive: true })
})

/** A block of the README in the folder of the release. The first command that fails ends it. */
async function inRelease(commands: string): Promise<string> {
  const env = { ...process.env, ...box.env() }
  const { stdout } = await promisify(execFile)('bash', ['-euxc', commands], { cwd: release, env })
  return stdout
}

/** What the commands have brought: agents by the image that the release names, and the sample's file on every host. */
async function installed(): Promise<{ images: string[]; greetings: string[] }> {
  const jsonpath = 'jsonpath={.items[*].spec.containers[0].image}'
  const images = await box.kubectl(['get', 'pods', '-n', 'skyhook', '-o', jsonpath])
  const greetings = nodes.map(async (node) => await box.must(['exec', node, '--', 'cat', '/etc/skyhook-greeting']))
  return { images: images.split(' '), greetings: await Promise.all(greetings) }
}
const everywhere = {
  images: nodes.map(() => expect.stringMatching(/^127\.0\.0\.1:\d+\/infra\/skyhookd@sha256:/) as string),
  greetings: nodes.map((node) => `hello from ${node}\ngreetings are polite\n`),
}

test(
  'the command of the README builds a release and pushes it',
  () => {
    const [, version, registry, path] = /^make release VERSION=(\S+) PUSH=([^\s/]+)\/(\S+)\n$/.exec(build) ?? []
    expect([version, registry]).toEqual([readVersion(), 'registry.example.com'])
    const { REGISTRY = '', ...env } = box.env()
    release = releaseWorkingTree(work, { env: { ...process.env, ...env, REGISTRY }, push: `${REGISTRY}/${path}` })
    rmSync(join(work, 'sources'), { recursive: true }) // nothing below can come from a checkout
  },
  releaseMs,
)

test(
  'helm and a sample, as the README prints them, complete from the folder of the release',
  async () => {
    await inRelease(withHelm)
    expect(await installed()).toEqual(everywhere)
    expect(
      await inRelease('kubectl rollout status daemonset/skyhookd -n skyhook && helm test skyhookd -n skyhook'),
    ).toContain('Succeeded')
  },
  testMs,
)

test(
  'the agents take their finalizer off before helm removes them',
  async () => {
    await expect(inRelease('helm uninstall skyhookd -n skyhook')).rejects.toThrow(
      /kubectl delete skyhook (demo|rollout)"/,
    ) // either of them
    expect(await inRelease('kubectl rollout status daemonset/skyhookd -n skyhook')).toContain('successfully')
    await inRelease('kubectl delete -k samples --timeout=120s')
    await inRelease('helm uninstall skyhookd -n skyhook --wait')
    for (const node of nodes)
      expect((await box.run(['exec', node, '--', 'cat', '/etc/skyhook-greeting'])).status).not.toBe(0)
  },
  testMs,
)

test(
  'kustomize and a sample, as the README prints them, complete from the folder of the release',
  async () => {
    await inRelease('kubectl delete namespace skyhook && kubectl delete -f crds')
    // "the first line" of the other block is replaced by these
    await inRelease(withHelm.replace(/^.*\n/, withoutHelm))
    expect(await installed()).toEqual(everywhere)
  },
  testMs,
)
