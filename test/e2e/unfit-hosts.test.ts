/** Hosts that cannot take work say what is wrong with them before they take a slot, and continue once it is mended. */
import { release } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { hostKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { useCluster } from '../kit/cluster/cluster.ts'
import { failureScene, packagesIn } from './failure-scene.ts'
import type { View } from '../kit/cluster/moments.ts'

const cluster = useCluster()
const copyDirRoot = '/var/lib/skyhook'

/** Ids of what the agent found on its host. */
function findingsOn(node: KubernetesNode | undefined): readonly string[] {
  const report = JSON.parse(node?.metadata.annotations?.[hostKey] ?? '{}') as { findings?: { id: string }[] }
  return (report.findings ?? []).map(({ id }) => id)
}

describe('a host', () => {
  test('a host is described on its Node, and control groups of the first version are a warning', async () => {
    const reportOf = ({ nodes }: View): string => nodes.get('node-1')?.metadata.annotations?.[hostKey] ?? '{}'
    await cluster.history.eventually('the report', (view) => reportOf(view) !== '{}')
    const report = JSON.parse(reportOf(cluster.history.now)) as { readonly cgroup: string }
    expect(report).toEqual({
      systemd: expect.stringMatching(/^\d{3}/) as string,
      bus: 'dbus.service',
      cgroup: expect.stringMatching(/^(hybrid|v1|v2)$/) as string,
      kernel: release(),
      container: 'systemd-nspawn',
      os: expect.stringContaining('Debian') as string,
      selinux: 'disabled',
      copyDirRoot: { fileSystem: expect.any(String) as string, flags: expect.stringContaining('rw') as string },
      findings: report.cgroup === 'v2' ? [] : [expect.objectContaining({ id: 'cgroup-v1', severity: 'warning' })],
    })
  })

  const remounted = (flag: string): Pick<Spoiled, 'spoil' | 'mend'> => ({
    spoil: (folder) => `mount --options bind,${flag} ${folder} ${folder}`,
    mend: (folder) => `umount --lazy ${folder}`,
  })
  const frozen: Pick<Spoiled, 'spoil' | 'mend'> = {
    spoil: (folder) => `mkdir -p ${folder} && chattr +i ${folder}`,
    mend: (folder) => `chattr -i ${folder}`,
  }
  type Spoiled = {
    readonly what: string
    readonly folder?: (name: string) => string
    readonly spoil: (folder: string) => string
    readonly mend: (folder: string) => string
    /** Of the agent's report. */
    readonly finding?: string
    readonly message: string
    /** It shows only when the first files are written. */
    readonly takesSlot?: true
  }
  const spoiled: readonly Spoiled[] = [
    {
      what: 'mounts the copy dir noexec',
      ...remounted('noexec'),
      finding: 'noexec',
      message:
        `${copyDirRoot} is on ${copyDirRoot}, which the host mounts noexec: no step can be executed there. Mount it ` +
        "with exec, or set the chart's copyDirRoot to a folder where programs may run",
    },
    {
      what: 'mounts the copy dir read-only',
      ...remounted('ro'),
      finding: 'read-only',
      message:
        `files cannot be created in ${copyDirRoot}, ${copyDirRoot}/.agent (EROFS). Mount it read-write, or set ` +
        'copyDirRoot and agentLogRoot of the chart elsewhere',
    },
    {
      what: 'mounts the copy dir read-only in all mount namespaces',
      // a bind mount takes the flags of its source along to other namespaces, a remount does not
      spoil: (folder) =>
        `mkdir -p /run/source && mount --bind ${folder} /run/source && mount -o remount,bind,ro /run/source && ` +
        `mount --bind /run/source ${folder}`,
      mend: (folder) => `umount --lazy ${folder} /run/source`,
      message: 'EROFS: read-only file system',
    },
    {
      what: 'made the copy dir immutable',
      ...frozen,
      finding: 'immutable',
      message:
        `files cannot be created in ${copyDirRoot} (EPERM). Look for an immutable or append-only flag with lsattr ` +
        '-d, and remove it with chattr',
    },
    {
      what: 'made the folder of the Skyhook immutable',
      takesSlot: true,
      folder: (name) => join(copyDirRoot, name),
      ...frozen,
      message: copyDirRoot,
    },
  ]

  test.for(spoiled)(
    'a host that $what says so, and continues once that is mended',
    async ({ folder = () => copyDirRoot, spoil, mend, finding, message, takesSlot }, { onTestFinished, expect }) => {
      const work = await failureScene(cluster, 'node-2', onTestFinished)
      const place = folder(work.name)
      let isSpoiled = true
      const mendOnce = async (): Promise<void> => {
        if (isSpoiled) await cluster.host(work.node).exec('sh', '-c', mend(place))
        isSpoiled = false
      }
      onTestFinished(mendOnce)
      await cluster.host(work.node).exec('sh', '-c', spoil(place))
      await work.apply(packagesIn(cluster).valid())
      const { status } = await work.shows('HostUnusable', message)
      const shows = async (is: boolean): Promise<void> =>
        void (await cluster.history.eventually(
          `the Node ${is ? 'shows' : 'no longer shows'} what was found`,
          ({ nodes }) => finding === undefined || findingsOn(nodes.get(work.node)).includes(finding) === is,
        ))
      await shows(true)
      if (finding !== undefined) expect(status).toBe('blocked')
      if (takesSlot === undefined) await work.heldNoSlot()
      await mendOnce()
      expect(await work.ends()).toEqual(['HostUnusable'])
      await shows(false)
    },
  )
})
