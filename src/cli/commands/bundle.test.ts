import { existsSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { type FleetScene, startScene, startBlockedScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { commandContext } from '../../../test/kit/tool/command-context.ts'
import { ApiError } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { bundle } from './bundle.ts'
import { explain } from './explain.ts'

let folder: string
beforeEach(() => (folder = temporaryFolder()))

const file = (name = 'b.tar.gz'): string => join(folder, name)
const literal = 'literal-of-an-environment'
const content = 'content-of-a-configuration-file'

type Options = { readonly transport?: KubeTransport; readonly name?: string; readonly force?: boolean }

async function make(scene: FleetScene, { transport = scene.transport, name, force = false }: Options = {}) {
  const shown = commandContext({ transport, clock: scene.simulation.clock, format: 'json' })
  const flags = { file: file(name), node: [], force }
  const ended = bundle.run(shown.context, { arguments: {}, flags } as never)
  ended.catch(() => undefined)
  await scene.pass(6_000) // the second look of doctor
  expect(await ended).toBe(0)
  return JSON.parse(shown.stdout()) as {
    items: [{ sources: { what: string; count?: number; unknown?: string }[]; leftOut: string[] }]
  }
}

async function explained(
  scene: FleetScene,
  node: string | undefined,
  from?: string,
  format: 'json' | 'table' = 'json',
): Promise<string> {
  const shown = commandContext({ transport: scene.transport, clock: scene.simulation.clock, format })
  await explain.run(shown.context, { arguments: { skyhook: 's', node }, flags: { from } } as never)
  return shown.stdout()
}

/** Its package has an environment and a configuration. */
const blockedScene = async (): Promise<FleetScene> =>
  await startBlockedScene({
    p0a: {
      version: '1.0.0',
      image: 'registry.test/p0a',
      interrupt: { type: 'reboot' },
      env: [{ name: 'PASSPHRASE', value: literal }],
      configMap: { 'a.conf': content },
    },
  })

test('explain says the same of a bundle as of the cluster that it is of', async () => {
  const scene = await blockedScene()
  const live = await Promise.all([undefined, 'node1', 'node2'].map((node) => explained(scene, node)))
  const made = await make(scene)
  expect(made.items[0].sources.find(({ what }) => what === 'Pods on node node1')).toMatchObject({ count: 2 })
  const early = await explained(scene, 'node1', file(), 'table')
  await scene.pass(60_000)
  // ages depend on the time at which the bundle was made
  expect(early).toMatch(/\(for \d+s\)/)
  expect(await explained(scene, 'node1', file(), 'table')).toBe(early)
  const archived = await Promise.all([undefined, 'node1'].map((node) => explained(scene, node, file())))
  expect(archived.map(withoutTimes)).toEqual(live.slice(0, 2).map(withoutTimes))
  const json = JSON.parse(await explained(scene, 'node2', file())) as { items: { verdict: { cause: string } }[] }
  expect(json.items).toMatchObject([{ verdict: { cause: 'budget-full' } }])
})

/** Ages depend on the time of the call. */
const withoutTimes = (text: string): unknown =>
  JSON.parse(text.replaceAll(/"takenAtMs": \d+/g, '"takenAtMs": 0')) as unknown

test('a node that was complete is complete in the bundle, although the spec has lost its values', async () => {
  const scene = startScene({
    nodes: [{ name: 'host1' }],
    skyhooks: {
      s: {
        packages: {
          p0a: {
            version: '1.0.0',
            image: 'registry.test/p0a',
            env: [{ name: 'MODE', value: literal }],
            configMap: { 'a.conf': content },
          },
        },
      },
    },
  })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'complete')
  await scene.pass(10_000)
  await make(scene)
  const complete = JSON.parse(await explained(scene, 'node1', file())) as { items: object[] }
  expect(complete).toMatchObject({ items: [{ state: 'complete' }] })
  expect(complete.items[0]).not.toHaveProperty('doubt')
  scene.host('host1').conditions.change({ stepMs: 900_000 }) // the edit is not done while the bundle is made
  scene.editSkyhook('s', { spec: { packages: { p0a: { configMap: { 'a.conf': 'another content' } } } } })
  await make(scene, { name: 'edited.tar.gz' })
  const [edited] = (
    JSON.parse(await explained(scene, 'node1', file('edited.tar.gz'))) as { items: { state: string }[] }
  ).items
  expect(edited?.state).not.toBe('complete')
})

test('a bundle has no value of an environment, no configuration and no last-applied annotation, and is for its owner only', async () => {
  const scene = await blockedScene()
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"from":"kubectl-apply"}' }
  scene.editSkyhook('s', { metadata: { annotations } })
  scene.editNode('node1', { metadata: { annotations } })
  const { items } = await make(scene)
  const text = gunzipSync(await readFile(file())).toString('utf8')
  const forbidden = [literal, content, 'kubectl-apply', 'last-applied-configuration', '"managedFields"']
  expect(forbidden.filter((secret) => text.includes(secret))).toEqual([])
  for (const name of ['"PASSPHRASE"', '"a.conf"']) expect(text.includes(name)).toBe(true)
  expect(items[0].leftOut).toEqual(
    expect.arrayContaining([
      'Secrets: none was read',
      'values of environment variables: 1',
      expect.stringMatching(/^contents of configuration files of packages: 1;/),
      'last-applied annotations: 1',
    ]),
  )
  expect(statSync(file()).mode & 0o777).toBe(0o600)
})

test('the same cluster at the same moment gives the same bytes', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(60_000)
  const { clock } = scene.simulation
  const frozen = { ...clock, wallMs: () => 1_800_000_000_000 }
  for (const name of ['one.tar.gz', 'two.tar.gz']) {
    const shown = commandContext({ transport: scene.transport, clock: frozen })
    await bundle.run(shown.context, { arguments: {}, flags: { file: file(name), node: [], force: false } } as never)
  }
  expect(await readFile(file('one.tar.gz'))).toEqual(await readFile(file('two.tar.gz')))
})

test('what may not be read is listed as unknown, and stays unknown when the bundle is read', async () => {
  const scene = await blockedScene()
  const viewer: KubeTransport = {
    ...scene.transport,
    async json(method, path, options) {
      if (path.includes('/leases')) throw new ApiError({ status: 403, reason: 'Forbidden', message: 'you may not' })
      return await scene.transport.json(method, path, options)
    },
  }
  const { items } = await make(scene, { transport: viewer })
  expect(items[0].sources.find(({ what }) => what.startsWith('Leases'))).toMatchObject({
    unknown: 'you may not read Leases in namespace skyhook',
  })
  const archived = await explained(scene, 'node2', file())
  expect(archived).toContain('when the bundle was made: you may not read Leases in namespace skyhook')
})

test('a file is overwritten only by force', async () => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  await scene.pass(60_000)
  writeFileSync(file(), 'mine')
  const { context } = commandContext({ transport: scene.transport, clock: scene.simulation.clock })
  const flags = { file: file(), node: [], force: false }
  await expect(bundle.run(context, { arguments: {}, flags } as never)).rejects.toMatchObject({ exitCode: 4 })
  await make(scene, { force: true })
  expect(existsSync(file())).toBe(true)
})

test.each([
  ['no archive', 'hello'],
  ['nothing', undefined],
])('a file that is %s is refused with a remedy', async (_, text) => {
  const scene = startScene({ nodes: [{ name: 'host1' }] })
  if (text !== undefined) writeFileSync(file(), text)
  await expect(explained(scene, undefined, file())).rejects.toMatchObject({ exitCode: 2 })
})
