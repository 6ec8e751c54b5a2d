/** A package of 2 GB, as drivers are: how long unpacking takes beside the system's tar, and in how much memory. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, cpSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hostOf } from '../test/kit/cluster/host.ts'
import { quietNode, withSkyhook, type BenchContext } from './context.ts'
import type { Figure, Measurement } from './figure.ts'

const files = 20
const fileMiB = 100
const repository = 'large-package'
const withinMs = 600_000
const mebibyte = 1024 * 1024

/** Memory of unpacking processes, every 100 ms until it is killed: `time pid RSS-in-KiB` with the time in ms. */
const sampler = `while :; do
  for pid in $(pgrep -f '[s]kyhookd.cjs unpack'); do
    echo $(date +%s%3N) $pid $(sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$pid/status 2>/dev/null)
  done
  sleep 0.1
done`

export const largeImage: Measurement = {
  title: `an image of ${(files * fileMiB) / 1000} GB on one node, its download included`,
  async run(bench) {
    const { box, registry } = bench
    const node = quietNode(bench)
    const host = hostOf(box, node)
    const work = mkdtempSync(join(tmpdir(), 'bench-large-'))
    try {
      writePackage(join(work, 'package'))
      await box.must(['push', join(work, 'package'), `${repository}:1.0.0`])
      await host.exec('sh', '-c', `(${sampler}) >/var/tmp/bench-samples 2>&1 & echo $! >/var/tmp/bench-sampler`)
      const large = { version: '1.0.0', image: `${registry}/${repository}` }
      const readSamples = async (): Promise<Sample[]> => samplesOf(await host.lines('/var/tmp/bench-samples'))
      const samples = await withSkyhook(bench, { packages: { large } }, [node], readSamples, withinMs)
      await host.exec('sh', '-c', 'kill $(cat /var/tmp/bench-sampler)')
      return figuresOf(samples, await secondsOfTar(bench, node, work))
    } finally {
      rmSync(work, { recursive: true })
      await host.exec('sh', '-c', 'rm -rf /var/tmp/bench-*')
    }
  },
}

/** Half of it is random, as compressed files and object code together are. */
function writePackage(folder: string): void {
  cpSync(join(import.meta.dirname, '../test/fixtures/packages/shellscript'), folder, { recursive: true })
  const part = Buffer.concat([randomBytes(mebibyte / 2), Buffer.alloc(mebibyte / 2)])
  for (let index = 0; index < files; index++) {
    const file = openSync(join(folder, 'skyhook_dir', `payload-${index}`), 'w')
    for (let written = 0; written < fileMiB; written++) writeSync(file, part)
    closeSync(file)
  }
}

/** The system's tar with the same files, until they are on the disk, as the agent waits for that, too. */
async function secondsOfTar({ box }: BenchContext, node: string, work: string): Promise<number> {
  const leader = (await box.must(['leader', node])).trim()
  const archive = `/proc/${leader}/root/var/tmp/bench-layer.tar.gz`
  execFileSync('tar', ['-czf', archive, '-C', work, 'package'])
  const script = `mkdir /var/tmp/bench-tar; s=$(date +%s%3N); tar -xzf /var/tmp/bench-layer.tar.gz -C /var/tmp/bench-tar
    sync -f /var/tmp/bench-tar; e=$(date +%s%3N); echo $((e - s))`
  return Number(await box.must(['exec', node, '--', 'sh', '-c', script])) / 1000
}

type Sample = { readonly atMs: number; readonly pid: number; readonly rssMiB: number }

const samplesOf = (lines: readonly string[]): Sample[] =>
  lines.flatMap((line) => {
    const [atMs = Number.NaN, pid = Number.NaN, rssKiB = Number.NaN] = line.split(' ').map(Number)
    return Number.isFinite(atMs + pid + rssKiB) ? [{ atMs, pid, rssMiB: rssKiB / 1024 }] : []
  })

/** Of the process that lived longest: others read the manifest and small files. */
function figuresOf(samples: readonly Sample[], tarSeconds: number): Figure[] {
  const lives = [...Map.groupBy(samples, ({ pid }) => pid).values()]
  const lengthOf = (life: readonly Sample[]): number => (life.at(-1)?.atMs ?? 0) - (life[0]?.atMs ?? 0)
  const [life = []] = lives.toSorted((a, b) => lengthOf(b) - lengthOf(a))
  const seconds = lengthOf(life) / 1000
  const most = (part: readonly Sample[]): number => Math.max(...part.map(({ rssMiB }) => rssMiB))
  const third = Math.ceil(life.length / 3)
  const [early, late] = [most(life.slice(0, third)), most(life.slice(-third))]
  return [
    {
      name: 'large image: download and unpacking ÷ tar -xzf of a file',
      unit: '×',
      target: 2,
      measured: seconds / tarSeconds,
      detail: `${seconds.toFixed(1)} s ÷ ${tarSeconds.toFixed(1)} s`,
    },
    {
      name: 'large image: RSS of unpacking',
      unit: 'MiB',
      target: 144,
      measured: most(life),
      detail: `first third ${early.toFixed(0)}, last third ${late.toFixed(0)}`,
    },
  ]
}
