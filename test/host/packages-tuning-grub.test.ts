/** Kernel arguments through the real update-grub, which needs a host whose / is a disk. */
import { beforeAll, expect, test } from 'vitest'
import { preparePackage, type PackageRunner } from './package-runner.ts'
import { installGrub } from '../kit/cluster/package-repositories.ts'
import { useHost } from '../kit/cluster/systemd-host.ts'

const { host, agent, sh } = useHost({ diskMib: 1_000, rootOnDisk: true })
beforeAll(async () => await installGrub(host))

const tuning = async (lines: readonly string[]): Promise<PackageRunner> =>
  await preparePackage({ host, agent, folder: 'tuning', name: 'boot', configMap: { 'grub.conf': lines.join('\n') } })

/** The arguments of the first entry of the boot menu, after GRUB's own. */
const bootArguments = async (): Promise<string> =>
  await sh(`sed -n 's/^.*\\blinux\\s.* ro *//p' /boot/grub/grub.cfg | head -n 1`)

test('kernel arguments appear in the boot menu in GRUB’s quoting, are compared with the running kernel’s, and disappear again', async () => {
  await sh('update-grub')
  const before = await bootArguments()
  const steps = await tuning([
    '# comment',
    'hugepages=16',
    'memmap=4G$2G',
    'dyndbg="file a.c +p; file $b.c +p"',
    'isolcpus=1,3-5',
  ])
  await steps.modes('config', 'config-check')
  expect(await bootArguments()).toBe('hugepages=16 memmap=4G\\$2G dyndbg="file a.c +p; file \\$b.c +p" isolcpus=1,3-5')
  await sh('grub-script-check /boot/grub/grub.cfg')
  const check = await steps.mode('post-interrupt-check')
  expect(check).toMatchObject({ ok: false, output: expect.stringContaining('without memmap=4G$2G') as string })
  steps.configure({})
  await steps.modes('config', 'config-check', 'post-interrupt-check')
  expect(await bootArguments()).toBe(before)
})

test.each(["x=it's", 'x=a\\b', 'dyndbg="file a.c'])(
  'the package refuses %s, which GRUB cannot pass on, before it writes anything',
  async (argument) => {
    const steps = await tuning([argument])
    expect(await steps.mode('config')).toMatchObject({
      ok: false,
      output: expect.stringContaining(`grub.conf: "${argument}" has a`) as string,
    })
    expect(await sh('ls /etc/default/grub.d')).not.toContain('tuning')
  },
)

test('an uninstall removes the kernel arguments from the boot menu', async () => {
  const steps = await tuning(['quiet'])
  await steps.modes('config', 'config-check')
  expect(await bootArguments()).toBe('quiet')
  await steps.modes('uninstall', 'uninstall-check', 'uninstall', 'uninstall-check')
  expect(await bootArguments()).toBe('')
})
