/** What the kernel and systemd make of the memory limits of a step on cgroup v2. `steps.test.ts` has what both versions do. */
import { beforeAll, expect, test, type TestContext } from 'vitest'
import { shell, useHost } from '../kit/cluster/systemd-host.ts'

const { host, agent, sh } = useHost()
const mebibyte = 2 ** 20
let isUnified = false

beforeAll(async () => {
  await host.root.mkdirp('/var/log/steps')
  isUnified = (await sh('stat -f -c %T /sys/fs/cgroup')) === 'cgroup2fs'
})
const needsCgroupV2 = ({ skip }: TestContext): void => skip(!isUnified, 'the host is on cgroup v1')

/** A file of the unit's control group. */
const controlOf = async (unit: string, file: string): Promise<string> =>
  await sh(`cat "/sys/fs/cgroup$(systemctl show --value --property=ControlGroup ${unit})/${file}"`)

const recordOf = async (id: string): Promise<unknown> =>
  JSON.parse((await host.root.readFile(`/var/lib/skyhook/.agent/results/${id}`)).toString())

test('a step that exceeds its memory limit is recorded as killed for it', async (context) => {
  needsCgroupV2(context)
  const step = shell('exec grep -a x /dev/zero', { properties: { MemoryMax: 16 * mebibyte } })
  expect(await agent.run(step)).toMatchObject({ source: 'file', result: { outcome: 'killed', signal: 'SIGKILL' } })
  expect(await recordOf(step.id)).toMatchObject({ result: 'oom-kill' })
})

test('a step ends when a child of it exceeds the memory limit, whatever the step makes of that', async (context) => {
  needsCgroupV2(context)
  const step = shell('grep -a x /dev/zero; sleep 300', { properties: { MemoryMax: 16 * mebibyte } })
  expect(await agent.run(step)).toMatchObject({ source: 'file', result: { outcome: 'killed', signal: 'SIGKILL' } })
  expect(await recordOf(step.id)).toMatchObject({ result: 'oom-kill' })
})

test('the kernel has the limits of a step, and kills one process of it and not all', async (context) => {
  needsCgroupV2(context)
  const step = shell('sleep 60', { properties: { MemoryMax: 64 * mebibyte, MemoryLow: mebibyte } })
  await agent.start(step)
  await expect.poll(() => agent.units.readSnapshot(step.unit)).toMatchObject({ subState: 'start' })
  expect(await controlOf(step.unit, 'memory.max')).toBe(String(64 * mebibyte))
  expect(await controlOf(step.unit, 'memory.low')).toBe(String(mebibyte))
  expect(await controlOf(step.unit, 'memory.oom.group')).toBe('0') // systemd stops the others: OOMPolicy=stop
  await agent.units.stop(step.unit)
  await agent.awaitEnd(step)
})
