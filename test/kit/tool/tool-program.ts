/** `kubectl-skyhook` as it is shipped, in a folder of its own. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { bundleCli } from '../../../build/bundle.ts'

export type ToolEnd = {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** From the start of the process to the first byte on standard output; undefined: there was none. */
  readonly firstOutputMs: number | undefined
  /** The most that was seen; undefined where the process was too short to be looked at. */
  readonly peakRssMiB: number | undefined
}

export type ToolProgram = {
  readonly file: string
  /** All files that it needs to run elsewhere, in one folder. */
  readonly parts: readonly string[]
  /** Runs a call, as a shell splits it. */
  run(line: string, options?: { readonly env?: Readonly<Record<string, string>> }): Promise<ToolEnd>
  remove(): Promise<void>
}

const lookIntervalMs = 10

/** Builds it. `environment`: that of every call, such as KUBECONFIG. */
export async function buildTool(environment: Readonly<Record<string, string>> = {}): Promise<ToolProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'tool-'))
  const { starter: file, file: main } = await bundleCli(folder)
  const path = [folder, dirname(process.execPath), '/usr/bin', '/bin'].join(':')
  return {
    file,
    parts: [file, main],
    run: async (line, { env = {} } = {}) =>
      await new Promise((resolve, reject) => {
        const startMs = performance.now()
        const child = spawn(file, line.split(' ').filter(Boolean), {
          env: { PATH: path, HOME: folder, ...environment, ...env },
          stdio: ['ignore', 'pipe', 'pipe'],
        })
        let [stdout, stderr] = ['', '']
        let firstOutputMs: number | undefined
        let peakRssMiB: number | undefined
        const look = setInterval(() => {
          void peakRss(child.pid).then((seen) => (peakRssMiB = seen ?? peakRssMiB))
        }, lookIntervalMs)
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          firstOutputMs ??= performance.now() - startMs
          stdout += text
        })
        child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
        child.on('error', reject)
        child.on('close', (code) => {
          clearInterval(look)
          resolve({ code, stdout, stderr, firstOutputMs, peakRssMiB })
        })
      }),
    remove: async () => await rm(folder, { recursive: true }),
  }
}

/** High-water mark of a process in MiB; undefined: it has ended. */
export async function peakRss(pid: number | undefined): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const [, kb] = /^VmHWM:\s+(\d+) kB/m.exec(text) ?? []
  return kb === undefined ? undefined : Number(kb) / 1024
}
