/** A disk that fills up during the work: the Node says so, nothing is lost, and free space is all it needs. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { PackageSpec } from '../../src/schemas/skyhook.ts'
import { fixturePackages, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import {
  journalOf,
  journaled,
  releaseFileOf,
  manifest,
  onceEach,
  shellscript,
  publishedState,
  withoutTimes,
} from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const node = 'node-2'
const folder = '/var/lib/skyhook'
const smallDisk = '/run/small-disk'
let name: string

const onHost = async (script: string): Promise<string> => await cluster.host(node).exec('sh', '-ec', script)
/** Resizes the disk so that it has this much free space. */
const leaveFreeSpace = async (kilobytes: number): Promise<unknown> =>
  await onHost(
    `mount -o remount,size=$(($(df -k --output=used ${smallDisk} | tail -n 1) + ${kilobytes}))k ${smallDisk}`,
  )
const reason = () => publishedState(cluster.history.now.nodes.get(node), name).reason

async function apply(work: PackageSpec): Promise<void> {
  await cluster.apply(manifest(name, { packages: { work } }), node)
}

async function expectReported(why: string, fragments: string): Promise<void> {
  await cluster.history.eventually(`the reason is ${why} and says ${fragments}`, () => {
    const now = reason()
    return now?.reason === why && now.message.includes(fragments)
  })
}

async function completes(): Promise<void> {
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), 60_000)
  await cluster.history.eventually('the slot is released', (view) => slotsOf(view, name).length === 0)
}

// Moves the agent's files to a separate file system of a chosen size, and back.
beforeAll(async () => {
  await onHost(
    `mkdir -p ${smallDisk}; mount -t tmpfs -o size=8m tmpfs ${smallDisk}; cp -a ${folder}/. ${smallDisk}; mount ` +
      `--bind ${smallDisk} ${folder}`,
  )
})
beforeEach(() => (name = uniqueName('full')))
afterEach(async () => {
  await leaveFreeSpace(4_000)
  await cluster.remove(name)
})
afterAll(
  async () =>
    await onHost(
      `umount --lazy ${folder}; cp ${smallDisk}/.agent/journal.json ${folder}/.agent/journal.json; ` +
        `umount --lazy ${smallDisk}`,
    ),
)

describe('a host without room', () => {
  test('a host without room for an image, then for the files of a stage, reports each and continues once there is room', async () => {
    const large = mkdtempSync(join(tmpdir(), 'large-'))
    cpSync(join(fixturePackages, 'shellscript'), large, { recursive: true })
    writeFileSync(join(large, 'large'), Buffer.alloc(400 * 1024, name))
    await cluster.sandbox.must(['push', large, `test/${name}:1.0.0`])
    rmSync(large, { recursive: true })

    await leaveFreeSpace(200)
    await apply({
      version: '1.0.0',
      image: `${cluster.registry}/test/${name}`,
      configMap: { 'apply.sh': `echo x >>${journalOf(name)}` },
    })
    await expectReported('HostUnusable', `test/${name}:1.0.0: ENOSPC`)
    expect(reason()?.message).toMatch(/^cannot fetch and store .*free space or inodes/)
    await cluster.history.never('a slot without work', (view) =>
      slotsOf(view, name).length > 0 ? 'a slot is held' : undefined,
    )

    await leaveFreeSpace(600)
    await expectReported('HostUnusable', 'cannot start apply shellscript_run.sh of package work: ENOSPC')
    await leaveFreeSpace(4_000)
    await completes()
    expect(await cluster.host(node).lines(journalOf(name))).toEqual(['x'])
  })

  test('a host without room for the journal starts nothing and says so', async () => {
    await leaveFreeSpace(0)
    await apply(shellscript(cluster.registry, journaled(name)))
    await expectReported('HostUnusable', 'not starting work: the journal cannot be written: ENOSPC')
    expect(await cluster.host(node).lines(journalOf(name))).toEqual([])
    await leaveFreeSpace(4_000)
    await completes()
    expect(withoutTimes(await cluster.host(node).lines(journalOf(name)))).toEqual(
      onceEach('apply', 'apply_check', 'config', 'config_check'),
    )
  })

  test('a host whose disk fills during a step loses neither its result nor its slot', async () => {
    await apply(shellscript(cluster.registry, journaled(name, 'apply')))
    await cluster.host(node).awaitLine(journalOf(name), 'apply begins')
    await leaveFreeSpace(0)
    await cluster.host(node).write(releaseFileOf(name), '')
    await expectReported('HostUnusable', 'not starting work: the journal cannot be written: ENOSPC')
    await leaveFreeSpace(4_000)
    await completes()
    expect(withoutTimes(await cluster.host(node).lines(journalOf(name)))).toEqual(
      onceEach('apply', 'apply_check', 'config', 'config_check'),
    )
  })
})
