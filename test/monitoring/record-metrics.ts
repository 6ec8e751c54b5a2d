/**
 * `make record-metrics`: boots real hosts, plays troubles on them, and records the series of all agents and the history
 * of the objects. Needs root. All troubles take ten hosts and 80 minutes; with `--short`, some of them take three hosts
 * and eight minutes. The tests of alerts and dashboard read what it writes.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type KubeObject, listAll } from '../../src/kube/objects.ts'
import { version } from '../../src/schemas/version.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { adminTransport, paths } from '../kit/cluster/kube.ts'
import { type Sandbox, sandbox } from '../sandbox/sandbox.ts'
import { type History, record } from '../kit/history.ts'
import { createRecorder, type RecordedKind, type Recorder, writeRecording } from './recording.ts'
import { sandboxActors, scrapeNode } from './sandbox-play.ts'
import { shortPlay } from './short-play.ts'
import { type Play, wholePlay } from './troubles.ts'

const kinds: readonly RecordedKind[] = ['nodes', 'leases', 'skyhooks', 'pods']
const minuteMs = 60_000

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { short: { type: 'boolean', default: false } } })
  if (process.getuid?.() !== 0) throw new Error('real hosts need root: run sudo make record-metrics')
  const play = values.short ? shortPlay : wholePlay
  const { name, nodeCount, scrapeIntervalMs } = play
  const box = sandbox(process.env['SANDBOX'] ?? 'metrics')
  const recorder = createRecorder(
    `Real hosts: ${nodeCount} hosts of the sandbox with kubelet, containerd and systemd, agents ${version}.`,
    scrapeIntervalMs,
  )
  const write = (folder: string): void => {
    writeRecording(folder, recorder.finish())
    console.log(`recorded in ${folder}`)
  }
  await box.must(['down'])
  try {
    await box.must(['up', String(nodeCount)])
    const image = join(import.meta.dirname, '../fixtures/packages/shellscript')
    for (const tag of ['1.1.0', '1.1.1']) await box.must(['push', image, `skyhook-packages/shellscript:${tag}`])
    const api = adminTransport(join(box.folder, 'kubeconfig'))
    const history = await record(api)
    try {
      await perform(play, { box, api, history, recorder })
    } catch (error) {
      write(join(import.meta.dirname, '../../dist/failed-recording')) // for a look at what went wrong
      throw error
    } finally {
      history.stop()
      api.close()
    }
  } finally {
    await box.must(['down'])
  }
  write(join(import.meta.dirname, 'recordings', name))
}

type Stage = {
  readonly box: Sandbox
  readonly api: KubeTransport
  readonly history: History
  readonly recorder: Recorder
}

/** Scrapes on time while the scenes are played. Throws if a scene fails. */
async function perform({ scenesOf, endsAtMinute, scrapeIntervalMs }: Play, stage: Stage): Promise<void> {
  const { api, history, recorder } = stage
  const nodes = [...history.now.nodes.keys()].sort()
  const actors = await sandboxActors(stage)
  const listedAtMs = Date.now()
  for (const kind of kinds) {
    const { items } = await listAll<KubeObject, KubeObject>(api, paths[kind], { transform: (object) => object })
    for (const object of items) recorder.addChange({ kind, atMs: listedAtMs, type: 'ADDED', object })
  }
  const startMs = Math.ceil(Date.now() / scrapeIntervalMs) * scrapeIntervalMs
  const scenes = scenesOf(nodes).map(async ({ atMinute, title, play }) => {
    await sleep(startMs + atMinute * minuteMs - Date.now())
    console.log(`minute ${atMinute}: ${title}`)
    await play(actors)
  })
  const ended = Promise.all(scenes)
  ended.catch((error: unknown) => console.error(error)) // at once, and again at the end
  for (let atMs = startMs; atMs <= startMs + endsAtMinute * minuteMs; atMs += scrapeIntervalMs) {
    await sleep(Math.max(0, atMs - Date.now()))
    recorder.addScrape(atMs, await Promise.all(nodes.map((node) => scrapeNode(api, node))))
  }
  for (const { change } of await history.moments()) {
    const kind = kinds.find((one) => one === change.kind)
    if (kind !== undefined && change.atMs >= listedAtMs)
      recorder.addChange({ kind, atMs: change.atMs, type: change.type, object: change.object as KubeObject })
  }
  await ended
}

await main()
