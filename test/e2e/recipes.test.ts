/** The packages and Skyhooks of docs/usage/recipes.md, as they are printed: rolled out, edited and uninstalled. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type NodeName, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import { packageArchive, publishPackages } from '../kit/cluster/package-repositories.ts'
import { manifest, type Manifest, publishedState } from '../kit/cluster/skyhooks.ts'
import type { PackageSpec } from '../../src/schemas/skyhook.ts'
import { filesOn, writeFilesOf } from '../kit/pages/page-examples.ts'

const run = promisify(execFile)
const cluster = useCluster()
const page = 'usage/recipes.md'
const recipes = ['debs', 'rpms', 'hello', 'driver']
const sh = async (node: NodeName, script: string): Promise<string> =>
  (await cluster.host(node).exec('sh', '-c', script)).trim()
const rootOf = async (node: NodeName): Promise<string> =>
  `/proc/${(await cluster.sandbox.must(['leader', node])).trim()}/root`

function printed(name: string, packages: readonly string[]): Manifest['spec'] {
  const text = (filesOn(page).get(`${name}.yaml`) ?? '').replaceAll('registry.example.com', cluster.registry)
  const { nodeSelectors: _, ...spec } = (parse(text) as Manifest).spec
  expect(Object.keys(spec.packages ?? {})).toEqual(packages)
  return spec
}

async function rollOut(name: string, node: NodeName, spec: Manifest['spec']): Promise<void> {
  await cluster.apply(manifest(name, spec), node)
  await complete(name, node)
}

const complete = async (name: string, node: NodeName): Promise<void> =>
  void (await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), 90_000))

/** Takes packages out of the spec, of which one stays. */
async function uninstall(name: string, node: NodeName, packages: readonly string[]): Promise<void> {
  const stays = { version: '1.2.0', image: `${cluster.registry}/packages/shellscript` }
  await cluster.edit(name, { packages: { stays, ...Object.fromEntries(packages.map((one) => [one, null])) } })
  await cluster.history.eventually(
    'only one package is left',
    (view) => Object.keys(publishedState(view.nodes.get(node), name).state).join() === 'stays|1.2.0',
    90_000,
  )
  await complete(name, node)
}

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'recipes-'))
  writeFilesOf(page, folder)
  for (const one of recipes) await cluster.sandbox.must(['push', join(folder, one), `packages/${one}:1.0.0`])
  rmSync(folder, { recursive: true })
  await cluster.sandbox.must([
    'push',
    join(import.meta.dirname, '../../packages/shellscript'),
    'packages/shellscript:1.2.0',
  ])
})

test('packages of apt come before a driver, whose node reboots once, and both leave nothing', async () => {
  const [name, node] = [uniqueName('driver'), 'node-1'] as const
  const installed = "dpkg-query -W -f '${Package} ${db:Status-Abbrev}' wireguard-tools 2>/dev/null || echo none"
  const module = 'cat /etc/modules-load.d/skyhook-driver.conf 2>/dev/null || echo none'
  await publishPackages(cluster.host(node), { recipes: [{ name: 'wireguard-tools', version: '1.0' }] })
  const before = await cluster.host(node).bootId()
  await rollOut(name, node, printed('driver', ['debs', 'driver']))
  const after = await cluster.host(node).bootId()
  expect([await sh(node, installed), await sh(node, module), before === after]).toEqual([
    'wireguard-tools ii',
    'wireguard',
    false,
  ])
  await uninstall(name, node, ['debs', 'driver'])
  expect([await sh(node, installed), await sh(node, module)]).toEqual(['none', 'none'])
  await sh(node, 'rm -rf /etc/apt/sources.list /srv/recipes')
})

test('packages of dnf are installed, and leave nothing', async () => {
  const [name, node] = [uniqueName('rpms'), 'node-2'] as const
  await run('tar', ['-xf', await packageArchive('dnf'), '-C', await rootOf(node)])
  await sh(node, 'ldconfig')
  const installed = 'rpm -q plain || :'
  const spec = printed('rpms', ['rpms'])
  const rpms = { ...spec.packages?.['rpms'], configMap: { packages: 'plain' } } as PackageSpec
  await rollOut(name, node, { ...spec, packages: { rpms } })
  expect(await sh(node, installed)).toBe('plain-2.0-1.noarch')
  await uninstall(name, node, ['rpms'])
  expect(await sh(node, installed)).toBe('package plain is not installed')
})

test('a service of systemd starts again with new settings, and only then, and leaves nothing', async () => {
  const [name, node] = [uniqueName('hello'), 'node-3'] as const
  const process = 'systemctl show hello.service -P MainPID'
  const greeting = `tr '\\0' '\\n' </proc/$(${process})/environ | grep GREETING; systemctl is-enabled hello.service`
  await rollOut(name, node, printed('hello', ['hello']))
  const first = await sh(node, process)
  expect(await sh(node, greeting)).toBe('GREETING=hello\nenabled')
  await cluster.edit(name, { packages: { hello: { configMap: { settings: 'GREETING=hi\n' } } } })
  await cluster.history.eventually('it works again', (view) => !isCompleteOn(view, name, [node]), 20_000)
  await complete(name, node)
  expect([await sh(node, greeting), (await sh(node, process)) === first]).toEqual(['GREETING=hi\nenabled', false])
  await uninstall(name, node, ['hello'])
  expect(
    await sh(node, 'ls -d /etc/hello /etc/systemd/system/hello.service /run/hello.started 2>/dev/null || echo none'),
  ).toBe('none')
})
