import { describe, expect, test } from 'vitest'
import { hostFile, type PackageRunner, preparePackage } from './package-runner.ts'
import { hasBus } from '../sandbox/host-os.ts'
import { useHost } from '../kit/cluster/systemd-host.ts'

const { host, agent, sh, reboot } = useHost()

const tuning = async (name: string, configMap: Record<string, string>): Promise<PackageRunner> =>
  await preparePackage({ host, agent, folder: 'tuning', name, configMap })
const sysctl = async (name: string): Promise<string> => (await sh(`sysctl -n ${name}`)).replaceAll(/\s+/g, ' ')

describe('sysctl.conf', () => {
  const conf = [
    '# a comment = no setting',
    '; neither = this',
    '',
    '  net.ipv4.tcp_rmem =  4096   99999 5242880 ',
    'net/ipv4/ip_local_port_range=20000	50000',
    'net.ipv4.conf.*.log_martians = 0x1',
    'net.ipv4.tcp_fin_timeout=33',
    '-net.ipv4.no_such_setting = 1',
    // at boot systemd takes the last line of a name alone; tuned, which needs the bus, then takes each
    ...(hasBus ? ['-net.ipv4.tcp_fin_timeout = many'] : []),
  ].join('\n') // and no line break at the end

  test('sysctl.conf sets each value now and at each boot, and an uninstall restores all of them', async () => {
    const names = [
      'net.ipv4.tcp_rmem',
      'net.ipv4.ip_local_port_range',
      'net.ipv4.conf.lo.log_martians',
      'net.ipv4.tcp_fin_timeout',
    ]
    const before = await Promise.all(names.map(sysctl))
    const steps = await tuning('net', { 'sysctl.conf': conf })
    await steps.modes('config', 'config-check', 'post-interrupt-check', 'config')
    const wanted = ['4096 99999 5242880', '20000 50000', '1', '33']
    expect(await Promise.all(names.map(sysctl))).toEqual(wanted)
    expect(await hostFile(host, '/etc/sysctl.d/999-net-tuning.conf')).toBe(conf)

    await reboot()
    const afterwards = await preparePackage({ host, agent, folder: 'tuning', name: 'net' })
    await expect.poll(() => Promise.all(names.map(sysctl))).toEqual(wanted)
    expect(await afterwards.mode('uninstall-check')).toMatchObject({ ok: false })
    await afterwards.modes('uninstall', 'uninstall-check')
    expect(await Promise.all(names.map(sysctl))).toEqual(before)
    expect(await hostFile(host, '/etc/sysctl.d/999-net-tuning.conf')).toBeUndefined()
  })

  test('the checks of sysctl.conf notice a single wrong word', async () => {
    const steps = await tuning('word', { 'sysctl.conf': 'net.ipv4.tcp_wmem = 4096 16384 4194304\n' })
    await steps.modes('config', 'config-check')
    await host.exec('sysctl', '-w', 'net.ipv4.tcp_wmem=4096 16384 4194305')
    const message = 'net.ipv4.tcp_wmem is "4096 16384 4194305", not "4096 16384 4194304"'
    for (const mode of ['config-check', 'post-interrupt-check'] as const)
      expect(await steps.mode(mode)).toMatchObject({ ok: false, output: expect.stringContaining(message) as string })
    await steps.modes('uninstall', 'uninstall-check')
  })

  test('sysctl.conf restores a setting that it no longer names', async () => {
    const before = await sysctl('net.ipv4.tcp_keepalive_time')
    const steps = await tuning('fewer', {
      'sysctl.conf': 'net.ipv4.tcp_keepalive_time=1234\nnet.ipv4.tcp_keepalive_probes=5\n',
    })
    await steps.modes('config')
    steps.configure({ 'sysctl.conf': 'net.ipv4.tcp_keepalive_probes=5\n' })
    await steps.modes('config', 'config-check')
    expect(await sysctl('net.ipv4.tcp_keepalive_time')).toBe(before)
    expect(await sysctl('net.ipv4.tcp_keepalive_probes')).toBe('5')
    await steps.modes('uninstall', 'uninstall-check')
  })

  test.each([
    ['a value that the kernel refuses', 'net.ipv4.tcp_fin_timeout = many', 'the kernel rejects "many"'],
    ['an unknown setting', 'net.ipv4.no_such = 1', 'no setting net.ipv4.no_such'],
    ['a line without =', 'net.ipv4.tcp_fin_timeout 3', 'has no ='],
    ['a path outside /proc/sys', '../../etc/passwd = x', 'has no setting before the ='],
  ])('sysctl.conf with %s fails and is not written', async (_, line, message) => {
    const steps = await tuning('refused', { 'sysctl.conf': `${line}\n` })
    expect(await steps.mode('config')).toMatchObject({ ok: false, output: expect.stringContaining(message) as string })
    expect(await hostFile(host, '/etc/sysctl.d/999-refused-tuning.conf')).toBeUndefined()
  })
})

describe('service_NAME.conf', () => {
  test('service_NAME.conf becomes a drop-in of any service, even with dots and underscores in its name', async () => {
    for (const name of ['my.dotted_name', 'plain'])
      await host.root.writeFile(
        `/etc/systemd/system/${name}.service`,
        '[Service]\nExecStart=/bin/sleep infinity\nLimitNOFILE=1000:2000\n',
        0o644,
      )
    await sh('systemctl daemon-reload; systemctl start my.dotted_name plain')
    const conf = '[Service]\nLimitNOFILE=1100:1900\nLimitCORE=0\n'
    const steps = await tuning('limits', { 'service_my.dotted_name.conf': conf, 'service_plain.service.conf': conf })
    await steps.modes('config', 'config-check')
    const drop = (service: string) => `/etc/systemd/system/${service}.service.d/999-limits-tuning.conf`
    expect(await hostFile(host, drop('my.dotted_name'))).toBe(conf)
    expect(await hostFile(host, drop('plain'))).toBe(conf)

    await sh('systemctl restart plain') // but not the other
    expect(await steps.mode('post-interrupt-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining('my.dotted_name.service has LimitNOFILE 2000 instead of 1900') as string,
    })
    await sh('systemctl restart my.dotted_name')
    await steps.modes('post-interrupt-check')

    steps.configure({ 'service_plain.conf': conf })
    await steps.modes('config', 'config-check')
    expect(await host.root.stat('/etc/systemd/system/my.dotted_name.service.d')).toBeUndefined()
    await steps.modes('uninstall', 'uninstall-check')
    expect(await sh('systemctl show -p LimitNOFILE --value plain')).toBe('2000')
  })

  test('service_NAME.conf of a missing service fails its check', async () => {
    const steps = await tuning('nowhere', { 'service_nowhere.conf': '[Service]\nNice=1\n' })
    await steps.modes('config')
    expect(await steps.mode('config-check')).toMatchObject({
      ok: false,
      output: expect.stringContaining('check that nowhere.service exists') as string,
    })
    await steps.modes('uninstall', 'uninstall-check') // with a drop-in only
  })
})

describe('ulimit.conf', () => {
  test('ulimit.conf becomes limits of sessions and is removed without a trace', async () => {
    await sh('sed -i /pam_limits/d /etc/pam.d/common-session*')
    const pam = await sh('cat /etc/pam.d/common-session*')
    const [one, other] = [
      await tuning('one', { 'ulimit.conf': '# comment\nnofile = 777 # and here\ncore' }),
      await tuning('other', { 'ulimit.conf': 'nproc=800\n' }),
    ]
    expect(await one.mode('config')).toMatchObject({
      ok: false,
      output: expect.stringContaining('"core" is not ITEM=NUMBER') as string,
    })
    one.configure({ 'ulimit.conf': '# comment\nnofile = 777 # and here\nstack=unlimited\n' })
    await one.modes('config', 'config', 'config-check')
    await other.modes('config', 'config-check')
    expect(await hostFile(host, '/etc/security/limits.d/999-one-tuning.conf')).toContain(
      '* hard nofile 777\n* hard stack unlimited\n',
    )
    expect(await sh('cat /etc/pam.d/common-session* | grep -c pam_limits')).toBe('2')
    expect(await sh('useradd -m somebody; su -s /bin/sh -c "ulimit -Hn" somebody')).toBe('777')

    await one.modes('uninstall', 'uninstall-check')
    await other.modes('config-check') // still has what it needs
    await other.modes('uninstall', 'uninstall-check')
    expect(await sh('cat /etc/pam.d/common-session*')).toBe(pam)
  })

  test('ulimit.conf above the limit of the host is refused', async () => {
    const steps = await tuning('above', { 'ulimit.conf': 'nofile=99999999999\n' })
    expect(await steps.mode('config')).toMatchObject({
      ok: false,
      output: expect.stringContaining('does not allow nofile=99999999999') as string,
    })
  })
})

describe('grub.conf', () => {
  test('grub.conf on a host without GRUB is refused', async () => {
    const steps = await tuning('boot', { 'grub.conf': 'quiet\n' })
    expect(await steps.mode('config')).toMatchObject({
      ok: false,
      output: expect.stringContaining('grub.conf needs /etc/default/grub.d') as string,
    })
  })
})
