/** Rows C36 to C39: what a real package of the original leaves on the host. */
import { expect, test } from 'vitest'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { uniqueName, type NodeName } from '../kit/cluster/cluster.ts'
import { manifest, shellscript, type Scripts } from '../kit/cluster/skyhooks.ts'
import { awaitReady, skyhookOf, useConformance } from './conformance.ts'
import { row } from './rows.ts'

const cluster = useConformance()
const node: NodeName = 'node-3'
const version = '1.1.0'
const logFolder = (name: string): string => `/var/log/skyhook/${name}/shellscript/${version}`

/** The key in the Skyhook differs from the name in config.json, which names the folders on the host. */
async function install(name: string, scripts: Scripts, more: Parameters<typeof shellscript>[2] = {}): Promise<void> {
  const packages: SkyhookSpec['packages'] = { 'simple-agent-operator': shellscript(cluster.registry, scripts, more) }
  await cluster.apply(manifest(name, { packages }), node)
  await awaitReady(cluster, name)
}

test(row('C36'), async () => {
  const name = uniqueName('files')
  const host = cluster.host(node)
  const apply = 'echo "from apply"\ncat "$SKYHOOK_DIR/configmaps/extra.txt"\n'
  await install(name, {}, { configMap: { 'apply.sh': apply, 'extra.txt': 'extra words\n' } })
  const logs = (await host.list(logFolder(name))).filter((file) => file.endsWith('.log'))
  const texts = await Promise.all(logs.map((file) => host.read(`${logFolder(name)}/${file}`)))
  expect(texts).toContain('from apply\nextra words\n')
  expect(await host.exists(`/var/lib/skyhook/${name}/flags/START`)).toBe(true)
  const flags = await host.list(`/var/lib/skyhook/${name}/flags/shellscript/${version}`)
  expect(flags.filter((flag) => flag.startsWith('shellscript_run.sh'))).not.toEqual([])
  expect(await host.exists(`/var/lib/skyhook/${name}/history/shellscript.json`)).toBe(true)
})

test(row('C37'), async () => {
  const name = uniqueName('noop')
  await install(name, {}, { interrupt: { type: 'noop' } })
  const { uid, generation } = skyhookOf(cluster.history.now, name)?.metadata ?? {}
  const id = `${name}-${uid}-${generation}_simple-agent-operator_${version}`
  expect(await cluster.host(node).list(`/var/lib/skyhook/${name}/interrupts/flags/${id}`)).toEqual(['no_op.complete'])
})

test(row('C38'), async () => {
  const name = uniqueName('nologs')
  await install(name, { apply: 'echo "from apply"' }, { env: [{ name: 'SKYHOOK_AGENT_WRITE_LOGS', value: 'false' }] })
  expect(await cluster.host(node).exists(`/var/log/skyhook/${name}`)).toBe(false)
})

test(row('C39'), async () => {
  const name = uniqueName('reap')
  const host = cluster.host(node)
  const older = ['2020-01-01-000000', '2020-01-02-000000', '2020-01-03-000000'].map(
    (at) => `shellscript_run.sh-${at}.log`,
  )
  await host.exec('mkdir', '-p', logFolder(name))
  for (const file of older) await host.write(`${logFolder(name)}/${file}`, 'old\n')
  const tries = `/var/tmp/${name}.tries`
  const apply = `echo try >>${tries}\ntest "$(ls ${logFolder(name)}/*.log | wc -l)" -ge 5\n`
  await install(name, { apply, config: 'true' })
  expect(await host.lines(tries)).toEqual(['try', 'try'])
  const logs = (await host.list(logFolder(name))).filter((file) => file.endsWith('.log'))
  expect(logs).toHaveLength(5)
  expect(logs).not.toContain(older[0])
  expect(logs).not.toContain(older[1])
})
