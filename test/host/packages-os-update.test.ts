import { beforeAll, describe, expect, test } from 'vitest'
import { hostFile, type PackageRunner, preparePackage } from './package-runner.ts'
import { buildPackages, installDnf, publishPackages, useSuites } from '../kit/cluster/package-repositories.ts'
import { useHost } from '../kit/cluster/systemd-host.ts'

const { host, agent, sh, reboot, restartAgent } = useHost()

const osUpdate = async (configMap: Record<string, string> = {}): Promise<PackageRunner> =>
  await preparePackage({ host, agent, folder: 'os-update', configMap })
const status = async (): Promise<unknown> =>
  JSON.parse((await hostFile(host, '/var/lib/skyhook/host/status/os-update.json')) ?? 'null')
const timer = 'skyhook-os-update-host-os-update.timer'
const configured = ['config', 'config-check'] as const

describe('with apt', () => {
  const versions = async (): Promise<Record<string, string>> =>
    Object.fromEntries(
      (await sh("dpkg-query -W -f '${Package} ${Version}\\n' plain keep both hole new 2>/dev/null || true"))
        .split('\n')
        .map((line) => line.split(' ') as [string, string]),
    )
  const old = { plain: '1.0', keep: '1.0', both: '1.0', hole: '1.0' }
  const needsReboot = 'touch /run/reboot-required; echo hole >>/run/reboot-required.pkgs'

  const offered = {
    stable: [
      { name: 'plain', version: '2.0', depends: 'new' },
      { name: 'new', version: '1' },
      { name: 'keep', version: '2.0' },
      { name: 'both', version: '3.0' },
    ],
    'stable-security': [
      { name: 'both', version: '1.1' },
      { name: 'hole', version: '1.1', postinst: needsReboot },
    ],
  }
  beforeAll(async () => {
    await publishPackages(host, {
      'later-security': [{ name: 'plain', version: '5.0' }],
      'slow-security': [
        { name: 'hole', version: '1.3', postinst: 'test -e /srv/begun || { touch /srv/begun; sleep 60; }' },
      ],
      'broken-security': [{ name: 'hole', version: '1.2', postinst: 'test -e /tmp/may-work' }],
    })
    await publishPackages(host, offered)
    await buildPackages(
      host,
      '/srv/old',
      Object.entries(old).map(([name, version]) => ({ name, version })),
    )
  })
  async function oldHost(): Promise<PackageRunner> {
    await sh(
      'rm -f /run/reboot-required* /etc/apt/preferences; dpkg --purge new plain keep both hole >/dev/null 2>&1; ' +
        'dpkg -i /srv/old/*.deb',
    )
    await useSuites(host, Object.keys(offered))
    return await osUpdate()
  }

  test('os-update installs only security updates by default, in the version of their suite even if another suite has a newer one', async () => {
    const steps = await oldHost()
    await sh('apt-get -q update')
    expect(await steps.mode('config-check')).toMatchObject({
      ok: false,
      output: expect.stringMatching(/not installed: (both 1\.1, hole 1\.1|hole 1\.1, both 1\.1)\n/) as string,
    })
    await steps.modes(...configured)
    expect(await versions()).toEqual({ ...old, both: '1.1', hole: '1.1' })
    expect(await steps.modes('config')).toContain('nothing to install')
  })

  test('os-update reports remaining updates, and a required reboot until the host has rebooted', async () => {
    const steps = await oldHost()
    await steps.modes(...configured)
    expect(await status()).toMatchObject({
      v: 1,
      package: 'os-update',
      bootId: await sh('cat /proc/sys/kernel/random/boot_id'),
      message: '3 updates available, 0 of them for security; 0 to install; a reboot is required',
      requests: { run: false, interrupt: true },
      facts: {
        updates: { available: 3, security: 0, pending: 0 },
        rebootRequired: true,
        rebootRequiredBy: ['hole'],
        error: '',
      },
    })
    expect(await steps.modes('post-interrupt', 'post-interrupt-check')).toContain(
      'hole requires a reboot, which has not happened yet',
    )

    await reboot()
    const afterwards = await osUpdate()
    await afterwards.modes('post-interrupt', 'post-interrupt-check')
    expect(await status()).toMatchObject({
      requests: { run: false, interrupt: false },
      facts: { rebootRequired: false },
    })
    await sh(needsReboot) // it reappears: no reboot would ever help
    expect(await afterwards.mode('post-interrupt-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining('was rebooted and still requires a reboot, because of hole') as string,
    })
    await sh('rm /run/reboot-required*; touch /boot/vmlinuz-9.9')
    await afterwards.modes('post-interrupt')
    expect(await status()).toMatchObject({ facts: { rebootRequiredBy: ['vmlinuz-9.9'] } })
    await sh('rm /boot/vmlinuz-9.9')
  })

  test('os-update installs all updates with their new dependencies, but no held package', async () => {
    await oldHost()
    const steps = await osUpdate({ scope: 'all\n', hold: '# not these\nke*\n' })
    await steps.modes('config')
    expect(await versions()).toEqual({ plain: '2.0', new: '1', keep: '1.0', both: '3.0', hole: '1.1' })
    expect(await status()).toMatchObject({ facts: { updates: { available: 1, pending: 0 } } })
  })

  test('os-update installs only allowed packages', async () => {
    await oldHost()
    const steps = await osUpdate({ scope: 'all', allow: 'keep bo*', hold: 'both' })
    await steps.modes('config')
    expect(await versions()).toEqual({ ...old, keep: '2.0' })
    expect(await sh('test ! -e /run/reboot-required && echo no')).toBe('no')
  })

  test('os-update never installs a held package as a dependency', async () => {
    await oldHost()
    const steps = await osUpdate({ scope: 'all', hold: 'new' })
    await steps.modes('config')
    expect(await versions()).toEqual({ ...old, keep: '2.0', both: '3.0', hole: '1.1' })
  })

  test('os-update respects the preferences of the host', async () => {
    const steps = await oldHost()
    await host.root.writeFile('/etc/apt/preferences', 'Package: both\nPin: version 1.0\nPin-Priority: 1001\n', 0o644)
    await steps.modes('config')
    expect(await versions()).toEqual({ ...old, hole: '1.1' })
  })

  test('a failed update fails the stage, and the next attempt repairs it', async () => {
    const steps = await oldHost()
    await useSuites(host, ['broken-security'])
    expect(await steps.mode('config')).toMatchObject({ ok: false })
    expect(await steps.mode('config-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining('half installed') as string,
    })
    await sh('touch /tmp/may-work')
    await steps.modes(...configured)
    expect(await versions()).toEqual({ ...old, hole: '1.2' })
  })

  test('the next attempt completes an installation that a power cut interrupted', async () => {
    const steps = await oldHost()
    await useSuites(host, ['slow-security'])
    steps.mode('config').catch(() => undefined) // its agent ends with the host
    await expect.poll(() => host.root.stat('/srv/begun')).toBeDefined()
    await host.crash()
    restartAgent()
    expect(await sh('dpkg --audit')).toContain('hole')
    await (await osUpdate()).modes(...configured)
    expect(await versions()).toEqual({ ...old, hole: '1.3' })
    expect(await sh('dpkg --audit')).toBe('')
  })

  test('a repository that does not answer fails the stage of os-update', async () => {
    const steps = await oldHost()
    await useSuites(host, ['stable', 'gone'])
    // to fail fast
    await sh('sed -i "s/try in 1 2 3 4 5/try in 5/" /var/lib/skyhook/.agent/test-store/os-update/skyhook_dir/apt.sh')
    expect(await steps.mode('config')).toMatchObject({
      ok: false,
      output: expect.stringContaining('apt-get update failed') as string,
    })
  })

  test('a timer looks for updates between the stages of os-update', async () => {
    await oldHost()
    const steps = await osUpdate({ check_every: '2 days' })
    await steps.modes(...configured)
    expect(await sh(`systemctl show -p TimersMonotonic --value ${timer}`)).toContain('OnUnitInactiveUSec=2d')
    await useSuites(host, ['later-security'])
    await sh(`systemctl start ${timer.replace('.timer', '.service')}`)
    expect(await status()).toMatchObject({
      requests: { run: true },
      facts: { pending: ['plain'], updates: { available: 1, security: 1, pending: 1 } },
    })
    expect(await versions()).toMatchObject({ plain: '1.0' }) // it only checks
    await sh(`systemctl stop ${timer}`)
    expect(await steps.mode('config-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining('is not active') as string,
    })

    steps.configure({ check_every: 'never' })
    await steps.modes(...configured)
    expect(await sh(`systemctl is-active ${timer} || true`)).toBe('inactive')
  })

  test.each([
    [{ scope: 'some' }, 'the key scope must be security or all, not "some"'],
    [{ scope: 'all security' }, 'the key scope must have one word, not 2'],
    [{ manager: 'pacman' }, 'the key manager must be auto, apt or dnf, not "pacman"'],
    [{ check_every: 'often' }, 'the key check_every must be never or a time such as 6h or 1d, not "often"'],
  ])('os-update refuses the unknown value in %o', async (configMap, message) => {
    expect(await (await osUpdate(configMap)).mode('config')).toMatchObject({
      ok: false,
      output: expect.stringContaining(message) as string,
    })
  })

  test('an uninstall of os-update leaves the updates and nothing else', async () => {
    const steps = await oldHost()
    await steps.modes('config')
    expect(await steps.mode('uninstall-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining(`${timer} is still active`) as string,
    })
    await steps.modes('uninstall', 'uninstall-check', 'uninstall', 'uninstall-check')
    expect(await status()).toBeNull()
    expect(await sh('ls /etc/systemd/system | grep os-update || true; ls /var/lib/skyhook/host/kept')).toBe('')
    expect(await versions()).toEqual({ ...old, both: '1.1', hole: '1.1' })
  })
})

describe('with dnf', () => {
  const versions = async (): Promise<string> =>
    await sh("dnf -q -C repoquery --installed --qf '%{name} %{version}' plain keep both hole linux-firmware")
  beforeAll(async () => {
    await installDnf(host)
    await reboot() // everything installed in this boot requires a reboot
  })

  test('os-update with dnf installs security updates, then all but the held ones, and reports the required reboot', async () => {
    const steps = await osUpdate({ manager: 'dnf', hold: 'linux-*' })
    await steps.modes(...configured)
    expect(await versions()).toBe('both 1.1\nhole 1.1\nkeep 1.0\nlinux-firmware 1.0\nplain 1.0')
    expect(await status()).toMatchObject({
      requests: { run: false, interrupt: false },
      facts: { manager: 'dnf', updates: { available: 4, security: 1, pending: 0 } },
    })

    steps.configure({ manager: 'dnf', scope: 'all', hold: 'keep' })
    await steps.modes(...configured)
    expect(await versions()).toBe('both 3.0\nhole 1.1\nkeep 1.0\nlinux-firmware 1.1\nplain 2.0')
    expect(await status()).toMatchObject({
      requests: { interrupt: true },
      facts: { rebootRequiredBy: ['linux-firmware'] },
    })

    await reboot()
    const afterwards = await osUpdate({ manager: 'dnf', scope: 'all', allow: 'k*' })
    expect(await afterwards.mode('config-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining('not installed: keep 2.0-1.noarch') as string,
    })
    await afterwards.modes('post-interrupt', 'post-interrupt-check', ...configured)
    expect(await status()).toMatchObject({
      requests: { run: false, interrupt: false },
      facts: { updates: { available: 0 } },
    })
    await afterwards.modes('uninstall', 'uninstall-check')
  })
})
