import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { hostFile, type PackageRunner, preparePackage } from './package-runner.ts'
import { publishPackages, packageArchive } from '../kit/cluster/package-repositories.ts'
import { hasBus, tunedRunsScripts } from '../sandbox/host-os.ts'
import { useHost } from '../kit/cluster/systemd-host.ts'

const { host, agent, sh } = useHost()

const tuned = async (
  configMap: Record<string, string> = {},
  env: Record<string, string> = {},
): Promise<PackageRunner> => await preparePackage({ host, agent, folder: 'tuned', configMap, env })
const profile = (finTimeout: number) =>
  `[main]\nsummary=A profile of this test\n[sysctl]\nnet.ipv4.tcp_fin_timeout=${finTimeout}\n`
const installed = ['apply', 'apply-check'] as const
const configured = ['config', 'config-check'] as const

describe.runIf(hasBus)('with tuned', () => {
  test('a profile with a summary is applied, changed and removed without a trace', async () => {
    await sh('systemctl disable tuned; tuned-adm profile balanced')
    const before = await sh('ls -R /etc/tuned; sysctl -n net.ipv4.tcp_fin_timeout')
    const script = '#!/bin/sh\necho "$1" >>/tmp/said\n. /usr/lib/tuned/functions\nexit 0\n'
    const steps = await tuned({
      tuned_profile: ' mine\n',
      mine: `${profile(31)}[called]\ntype=script\nscript=/etc/tuned/scripts/hello\n`,
      other: profile(32),
      hello_script: script,
    })
    await steps.modes(...installed, ...configured, 'post-interrupt-check')
    expect(await sh('tuned-adm active; sysctl -n net.ipv4.tcp_fin_timeout; systemctl is-enabled tuned')).toBe(
      'Current active profile: mine\n31\nenabled',
    )
    expect(await hostFile(host, '/etc/tuned/scripts/hello')).toBe(script)
    expect(await sh('/etc/tuned/scripts/hello_script by-key; cat /tmp/said')).toContain('by-key')

    steps.configure({ tuned_profile: 'mine', mine: profile(33) })
    await steps.modes(...configured)
    expect(
      await sh('sysctl -n net.ipv4.tcp_fin_timeout; ls -d /etc/tuned/other /etc/tuned/scripts/* 2>/dev/null || true'),
    ).toBe('33')

    steps.configure({})
    expect(await steps.mode('uninstall-check')).toMatchObject({ ok: false })
    await steps.modes('uninstall', 'uninstall-check', 'uninstall', 'uninstall-check')
    expect(await sh('ls -R /etc/tuned; sysctl -n net.ipv4.tcp_fin_timeout')).toBe(before)
    expect(await sh('tuned-adm active; systemctl is-enabled tuned || true')).toBe(
      'Current active profile: balanced\ndisabled',
    )
    await sh('systemctl enable tuned')
  })

  test.runIf(tunedRunsScripts)('tuned runs the script of a key', async () => {
    const steps = await tuned({
      tuned_profile: 'mine',
      mine: '[called]\ntype=script\nscript=/etc/tuned/scripts/hello\n',
      hello_script: '#!/bin/sh\necho "$1" >>/tmp/called\n',
    })
    await steps.modes(...configured)
    expect(await sh('cat /tmp/called')).toContain('start\n')
    await steps.modes('uninstall', 'uninstall-check')
  })

  test('several profiles apply at once', async () => {
    const steps = await tuned({
      tuned_profile: 'one two',
      one: profile(41),
      two: '[sysctl]\nnet.ipv4.tcp_keepalive_probes=7\n',
    })
    await steps.modes(...configured)
    expect(await sh('sysctl -n net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_probes')).toBe('41\n7')
    await steps.modes('uninstall', 'uninstall-check')
  })

  test('a missing profile fails with the list of existing ones', async () => {
    const steps = await tuned({ tuned_profile: 'balance' })
    expect(await steps.mode('config')).toMatchObject({
      ok: false,
      output: expect.stringMatching(/profile balance does not exist; available are .*\bbalanced\b/) as string,
    })
  })

  test('settings that are not in force fail the check; with an announced interrupt only the check after it', async () => {
    const keys = { tuned_profile: 'mine', mine: profile(34) }
    const [strict, patient] = [await tuned(keys), await tuned(keys, { INTERRUPT: 'true' })]
    await strict.modes('config')
    await sh('sysctl -w net.ipv4.tcp_fin_timeout=35')
    expect(await strict.mode('config-check')).toMatchObject({
      ok: false,
      output: expect.stringMatching(
        /verify: failed.*tcp_fin_timeout[^]*not all settings of mine are in force/,
      ) as string,
    })
    expect(await patient.mode('config-check')).toMatchObject({ ok: true })
    expect(await patient.mode('post-interrupt-check')).toMatchObject({ ok: false })
    await sh('tuned-adm profile balanced')
    expect(await patient.mode('config-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining('is "balanced", not "mine"') as string,
    })
  })
})

describe.runIf(hasBus)('without tuned', () => {
  test('the package installs a missing tuned, and removes exactly what it installed', async () => {
    await sh('apt-get -q -y purge tuned >/dev/null; ! command -v tuned-adm')
    await host.root.mkdirp('/srv/stable/pool')
    await host.root.writeFile('/srv/stable/pool/tuned.deb', await readFile(await packageArchive('tuned')), 0o644)
    await publishPackages(host, { stable: [] })
    const list = "dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n' | grep ^ii"
    const before = await sh(list)
    const steps = await tuned({ tuned_profile: 'mine', mine: profile(36) })
    expect(await steps.mode('apply-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining('tuned-adm is missing') as string,
    })
    await steps.modes(...installed, ...installed, ...configured)
    expect(await hostFile(host, `${steps.stateDir}/kept/tuned/packages-installed`)).toBe('tuned\n')
    expect(await steps.mode('uninstall-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining('still there') as string,
    })
    await steps.modes('uninstall', 'uninstall-check')
    expect(await sh(list)).toBe(before) // not what was already unneeded before
  })
})
