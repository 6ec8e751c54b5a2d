/**
 * Memory of the processes that unpack while eight images are requested at once; the program is bundled as in the
 * agent's image. Usage: node bench/unpacking.ts
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setInterval } from 'node:timers'
import { bundle } from '../build/bundle.ts'
import { systemClock, systemRandom } from '../src/daemon/platform/system-clock.ts'
import { createHostRoot } from '../src/host/fs/host-root.ts'
import { parseReference } from '../src/packages/oci/reference.ts'
import { type LayerEntry, writeLayer } from '../src/packages/oci/write/layer.ts'
import { openImageStore } from '../src/packages/store/image-store.ts'
import { unpackInChild } from '../src/packages/store/unpack-child.ts'
import { startFakeRegistry } from '../test/kit/registry/fake-registry.ts'
import { fakeSources } from '../test/kit/registry/registry-documents.ts'
import { type Memory, memoryOf } from './memory.ts'

const images = 8
const filesPerImage = 100
const fileBytes = 400_000
const sampleMs = 10

/** Of the unpacking processes that run now. */
function memories(program: string): Memory[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const isUnpacking = readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(`${program}\0unpack`)
      return isUnpacking ? [memoryOf(Number(name))] : []
    } catch {
      return [] // not a process, or ended meanwhile
    }
  })
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'unpacking-'))
  const registry = await startFakeRegistry()
  try {
    const { file } = await bundle({ folder: join(folder, 'dist') })
    for (let image = 0; image < images; image++) {
      const entries = Array.from(
        { length: filesPerImage },
        (_, index): LayerEntry => ({
          kind: 'file',
          path: `skyhook-package/file-${index}`,
          mode: 0o644,
          content: Buffer.concat([randomBytes(fileBytes / 2), Buffer.alloc(fileBytes / 2)]),
        }),
      )
      const layer = await writeLayer(entries, join(folder, `layer-${image}`))
      registry.addImage('pkg', String(image), readFileSync(layer.file))
    }
    const command = [process.execPath, '--max-semi-space-size=1', '--max-old-space-size=96', file, 'unpack'] as const
    const ports = { clock: systemClock, random: systemRandom, root: createHostRoot('/', systemRandom) }
    const store = openImageStore(join(folder, 'images'), {
      ...ports,
      unpack: async (job, signal) => await unpackInChild(job, { signal, command }),
    })
    const peak = { processes: 0, rssMiB: 0, privateMiB: 0 }
    const timer = setInterval(() => {
      const found = memories(file)
      peak.processes = Math.max(peak.processes, found.length)
      peak.rssMiB = Math.max(peak.rssMiB, sum(found.map((one) => one.rssMiB)))
      peak.privateMiB = Math.max(peak.privateMiB, sum(found.map((one) => one.privateMiB)))
    }, sampleMs)
    const startedMs = performance.now()
    await Promise.all(
      Array.from({ length: images }, async (_, image) =>
        store.ensureImage(parseReference(`${registry.host}/pkg:${image}`), {
          registry: { credentials: [], sources: fakeSources([{ host: registry.host, plainHTTP: true }]) },
          signal: new AbortController().signal,
        }),
      ),
    )
    clearInterval(timer)
    const seconds = (performance.now() - startedMs) / 1000
    console.log(
      `${images} images of ${(filesPerImage * fileBytes) / 1e6} MB in ${seconds.toFixed(1)} s, at most: ` +
        `${peak.processes} unpacking processes, ${peak.rssMiB.toFixed(0)} MiB RSS, ` +
        `${peak.privateMiB.toFixed(0)} MiB private`,
    )
  } finally {
    await registry.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
