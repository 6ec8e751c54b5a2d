/** A look at the host, for what differs later. It runs on the host, where alone its network's settings can be read. */
import { snapshot as script } from './host-scripts.ts'
import { ownFolders, type Snapshot } from './remains.ts'
import { awaitEnd, forget, start, type StepRunner } from './steps.ts'

const folder = '/run/skyhook-run'
/** Reading and hashing some gigabytes takes a minute. */
const timeoutMs = 600_000

/** Files with their content, kernel settings and running units. Takes seconds. */
export async function takeSnapshot(runner: StepRunner): Promise<Snapshot> {
  const { root, stepHost, random } = runner
  const id = random.hex(8)
  await root.mkdirp(folder)
  const request = {
    id,
    unit: `skyhookd-snapshot-${id}.service`,
    description: 'kubectl skyhook package run: a look at the host',
    command: ['/bin/sh', '-c', script, 'snapshot', ...ownFolders],
    workingDirectory: '/',
    environment: { LC_ALL: 'C' },
    stdoutFile: `${folder}/${id}`,
    stderrFile: `${folder}/${id}.err`,
    timeoutMs,
    stopTimeoutMs: 2_000,
  } as const
  await start(runner, request)
  await awaitEnd(runner, request)
  await forget(runner, request)
  const text = (await root.readFile(request.stdoutFile)).toString()
  await root.remove(request.stdoutFile)
  const units = await stepHost.units.listLive('*')
  return { ...parseSnapshot(text), units }
}

/** Of SHA-256 in hex. */
const hashLength = 64

/** What the script wrote. Exported for its test. */
export function parseSnapshot(text: string): Omit<Snapshot, 'units'> {
  const [files, afterFiles] = takeEntries(text, 0, 2)
  const [hashes, afterHashes] = takeEntries(text, afterFiles, 1)
  const described = new Map(files.map(([path = '', what = '']) => [path, what.trimEnd()]))
  for (const [line = ''] of hashes) {
    const path = line.slice(hashLength + 2) // two blanks between
    described.set(path, `${described.get(path) ?? ''} ${line.slice(0, hashLength)}`)
  }
  const settings: Record<string, string> = {}
  for (const line of text.slice(afterHashes).split('\n')) {
    const [path = '', value] = line.split('\0')
    if (value === undefined) continue
    const name = path.startsWith('/proc/sys/') ? path.slice('/proc/sys/'.length).replaceAll('/', '.') : path
    settings[name] = Object.hasOwn(settings, name) ? `${settings[name]}\n${value}` : value
  }
  return { files: Object.fromEntries(described), settings }
}

/** Rows of NUL-ended fields up to an empty one, and where the next part starts. */
function takeEntries(text: string, from: number, width: number): [string[][], number] {
  const rows: string[][] = []
  let at = from
  for (;;) {
    const row: string[] = []
    for (let field = 0; field < width; field += 1) {
      const end = text.indexOf('\0', at)
      if (end === -1) return [rows, text.length]
      const value = text.slice(at, end)
      at = end + 1
      if (field === 0 && value === '') return [rows, at]
      row.push(value)
    }
    rows.push(row)
  }
}
