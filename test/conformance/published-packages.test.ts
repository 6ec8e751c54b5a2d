/**
 * Stand-ins for the packages that the original publishes, of the same structure: what their users do with them, and
 * what was seen to go wrong. Like there, the version of an image need not be that of its config.json.
 */
import { join } from 'node:path'
import { beforeAll, describe, test } from 'vitest'
import type { PackageSpec } from '../../src/schemas/skyhook.ts'
import { fixturePackages, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import type { View } from '../kit/cluster/moments.ts'
import { hasEvent, isCompleteOn, isCordoned, serviceStates } from '../kit/cluster/node-availability.ts'
import { type OnTestFinished, claimNodes } from '../kit/cluster/node-locks.ts'
import { journalOf, manifest, publishedState } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const bootsWithinMs = 90_000
const images = { shellscript: '1.1.1', 'published-tuned': '1.2.0', 'published-kdump': '1.1.0' } as const

beforeAll(async () => {
  const push = async ([folder, version]: readonly [string, string]): Promise<unknown> =>
    await cluster.sandbox.must(['push', join(fixturePackages, folder), `published/${folder}:${version}`])
  await Promise.all(Object.entries(images).map(push))
})

const pack = (folder: keyof typeof images, more: Partial<PackageSpec>): PackageSpec => ({
  version: images[folder],
  image: `${cluster.registry}/published/${folder}`,
  ...more,
})

type Scene = {
  readonly name: string
  apply(packages: Readonly<Record<string, PackageSpec>>): Promise<void>
  edit(packages: object): Promise<void>
  /** Complete for the newest spec, in service, without a slot. */
  completes(withinMs?: number): Promise<void>
  shows(reason: string, ...fragments: readonly string[]): Promise<void>
  sh(script: string): Promise<string>
}

async function scene(node: NodeName, stem: string, onTestFinished: OnTestFinished): Promise<Scene> {
  const { history } = cluster
  const name = await claimNodes(cluster, onTestFinished, stem, node)
  const at = ({ nodes }: View) => publishedState(nodes.get(node), name)
  let before: string | undefined
  return {
    name,
    apply: async (packages) =>
      void (await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages }), node)),
    edit: async (packages) => {
      before = at(history.now).companion?.applied
      await cluster.edit(name, { packages })
    },
    completes: async (withinMs) => {
      await history.eventually(
        `${name} is complete`,
        (view) => isCompleteOn(view, name, [node]) && at(view).companion?.applied !== before,
        withinMs,
      )
      await history.eventually(
        'the slot is released and the node in service',
        (view) => slotsOf(view, name).length === 0 && !isCordoned(view.nodes.get(node)),
      )
    },
    shows: async (reason, ...fragments) =>
      void (await history.eventually(
        `${reason}: ${fragments.join(', ')}`,
        (view) =>
          at(view).reason?.reason === reason &&
          fragments.every((words) => at(view).reason?.message.includes(words) === true),
        bootsWithinMs,
      )),
    sh: async (script) => (await cluster.host(node).exec('sh', '-c', script)).trim(),
  }
}

describe.concurrent('a published package', () => {
  test('shellscript with many keys runs each script with the others beside it, and follows edits and removals of keys', async ({
    onTestFinished,
    expect,
  }) => {
    const work = await scene('node-1', 'many-keys', onTestFinished)
    const journal = journalOf(work.name)
    const script = (mode: string): string => `. "$SKYHOOK_DIR/configmaps/common.sh"; note ${mode}`
    const modes = [
      'apply',
      'apply_check',
      'config',
      'config_check',
      'post_interrupt',
      'post_interrupt_check',
      'uninstall',
    ]
    const scripts = Object.fromEntries(modes.map((mode) => [`${mode}.sh`, script(mode)]))
    const common = [
      'cd "$SKYHOOK_DIR/configmaps"',
      `note() { echo "$1 site=$SITE files=$(echo *.conf) mtu=$(cat mtu.conf)" >>${journal}; }`,
    ]
    const configMap = { ...scripts, 'common.sh': common.join('\n'), 'mtu.conf': '1400\n', 'dns.conf': 'one\n' }
    const services = { type: 'service', services: ['foobar'] } as const
    const more = { configMap, env: [{ name: 'SITE', value: 'north' }], configInterrupts: { '*.conf': services } }
    const lines = async (): Promise<string[]> => {
      const found = await cluster.host('node-1').lines(journal)
      await cluster.host('node-1').remove(journal)
      return found
    }
    const noted = (files: string, mtu: number, ...ran: readonly string[]): string[] =>
      ran.map((mode) => `${mode} site=north files=${files} mtu=${mtu}`)
    const interrupted = ['config', 'config_check', 'post_interrupt', 'post_interrupt_check']

    await work.apply({ 'many-keys': pack('shellscript', more), other: pack('shellscript', {}) })
    await work.completes()
    const both = 'dns.conf mtu.conf'
    expect(await lines()).toEqual(noted(both, 1400, 'apply', 'apply_check', 'config', 'config_check'))
    await work.edit({ 'many-keys': { configMap: { 'mtu.conf': '9000\n' } } })
    await work.completes()
    expect(await lines()).toEqual(noted(both, 9000, ...interrupted))
    await work.edit({ 'many-keys': { configMap: { 'dns.conf': null } } })
    await work.completes()
    expect(await lines()).toEqual(noted('mtu.conf', 9000, ...interrupted))
    await work.edit({ 'many-keys': { configMap: { 'notes.txt': 'no interrupt for this key' } } })
    await work.completes()
    expect(await lines()).toEqual(noted('mtu.conf', 9000, 'config', 'config_check'))
    await work.edit({ 'many-keys': null })
    await work.completes()
    expect(await lines()).toEqual(noted('mtu.conf', 9000, 'uninstall'))
  })

  test('tuned with a profile that is not in force after the reboot says so, and completes with a corrected profile after one more reboot', async ({
    onTestFinished,
    expect,
  }) => {
    const node = 'node-2'
    const work = await scene(node, 'tuned', onTestFinished)
    const profileBefore = await work.sh("tuned-adm active | sed 's/.*: //'")
    onTestFinished(async () => {
      await work.sh(`tuned-adm profile ${profileBefore}; rm -rf /etc/tuned/gpu`)
    })
    const profile = (setting: string): string => `[sysctl]\n${setting}\n`
    const reboot = { type: 'reboot' } as const
    const configMap = { tuned_profile: 'gpu', gpu: profile('net.ipv4.tcp_congestion_control=renoo') }
    const env = [{ name: 'INTERRUPT', value: 'true' }]
    await work.apply({
      tuned: pack('published-tuned', { configMap, env, interrupt: reboot, configInterrupts: { gpu: reboot } }),
    })
    await work.shows('CheckFailed', 'post-interrupt-check', 'the profile is not in force')
    const booted = await cluster.host(node).bootId()
    await work.edit({ tuned: { configMap: { gpu: profile('net.ipv4.tcp_fin_timeout=47') } } })
    await work.completes(bootsWithinMs)
    expect(await work.sh('sysctl -n net.ipv4.tcp_fin_timeout; tuned-adm active')).toBe(
      '47\nCurrent active profile: gpu',
    )
    const boots = [...new Set((await serviceStates(cluster.history, node)).map(({ bootId }) => bootId))]
    expect(boots.slice(boots.indexOf(booted))).toEqual([booted, await cluster.host(node).bootId()])
  })

  test('kdump, whose apt package does not exist, says what apt said, and after its removal frees the node and the slot', async ({
    onTestFinished,
    expect,
  }) => {
    const node = 'node-3'
    const work = await scene(node, 'kdump', onTestFinished)
    const kdump = pack('published-kdump', { configMap: { crashkernel: '512M' }, interrupt: { type: 'reboot' } })
    const boot = await cluster.host(node).bootId()
    await work.apply({ kdump, other: pack('shellscript', {}) })
    await work.shows('StepFailed', 'kdump', 'install.sh exited 100', 'Unable to locate package kdump-tools')
    await work.edit({ kdump: null })
    await work.completes()
    expect(publishedState(cluster.history.now.nodes.get(node), work.name).state).toMatchObject({
      'kdump|1.1.0': { stage: 'uninstall', state: 'unknown' }, // three attempts failed, its rest is left behind
      'other|1.1.1': { state: 'complete' },
    })
    await cluster.history.eventually('an Event says what is left behind', (view) =>
      hasEvent(view, node, 'UninstallFailed', work.name, 'kdump'),
    )
    expect(await cluster.host(node).bootId()).toBe(boot)
  })
})
