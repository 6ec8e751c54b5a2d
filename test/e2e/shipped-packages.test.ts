/** The packages of this repository, installed from the registry by the agent, and uninstalled again. */
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import { manifest, publishedState } from '../kit/cluster/skyhooks.ts'

const cluster = useCluster()
const node = 'node-3'
const name = uniqueName('shipped')
const versions = { shellscript: '1.2.0', tuning: '1.2.0', tuned: '1.3.0' } as const
const sh = async (script: string): Promise<string> => (await cluster.host(node).exec('sh', '-c', script)).trim()
const complete = async (): Promise<void> => {
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), 60_000)
}

beforeAll(async () => {
  for (const [folder, version] of Object.entries(versions))
    await cluster.sandbox.must([
      'push',
      join(import.meta.dirname, '../../packages', folder),
      `packages/${folder}:${version}`,
    ])
})

test('one Skyhook installs a script, kernel settings and a tuned profile, and its deletion removes them without a trace', async () => {
  // sysctl was seen to print a value without its line break
  const settings = 'echo $(sysctl -n vm.swappiness); tuned-adm active || true'
  const before = await sh(settings)
  const pack = (folder: keyof typeof versions, configMap: Record<string, string>) => ({
    version: versions[folder],
    image: `${cluster.registry}/packages/${folder}`,
    configMap,
    uninstall: { enabled: true },
  })
  const packages = {
    note: pack('shellscript', {
      'config.sh': 'echo "$NOTE" >/etc/shipped-note',
      'config_check.sh': 'grep -qx here /etc/shipped-note',
      'uninstall.sh': 'rm /etc/shipped-note',
    }),
    kernel: pack('tuning', { 'sysctl.conf': '# of a test\nvm.swappiness = 13\n' }),
    profile: {
      ...pack('tuned', {
        tuned_profile: 'shipped',
        shipped: '[main]\nsummary=For a test\n[sysctl]\nvm.dirty_ratio=17\n',
      }),
      dependsOn: { kernel: versions.tuning },
    },
    stays: pack('shellscript', {}),
  }
  const note = { ...packages.note, env: [{ name: 'NOTE', value: 'here' }] }
  await cluster.apply(manifest(name, { packages: { ...packages, note } }), node)
  await complete()
  expect(
    await sh('echo $(cat /etc/shipped-note) $(sysctl -n vm.swappiness) $(sysctl -n vm.dirty_ratio); tuned-adm active'),
  ).toBe('here 13 17\nCurrent active profile: shipped')

  await cluster.edit(name, { packages: { note: null, kernel: null, profile: null } })
  await cluster.history.eventually(
    'only one package is left',
    (view) => Object.keys(publishedState(view.nodes.get(node), name).state).join() === 'stays|1.2.0',
    60_000,
  )
  await complete()
  expect(
    await sh('ls -d /etc/shipped-note /etc/sysctl.d/*kernel-tuning* /etc/tuned/shipped 2>/dev/null || echo none'),
  ).toBe('none')
  expect(await sh(settings)).toBe(before)
})
