/**
 * `make prove`: everything that `make test` runs samples of. Continues where it stopped, as long as the sources that a
 * part proves are the same. Prints a table at the end, and fails if something failed.
 */
import { parseArgs } from 'node:util'
import { minutesFor } from './prove/minutes.ts'
import { type Part, parts, type State } from './prove/parts.ts'
import { type Row, tableOf } from './prove/table.ts'
import { headCommit, isTreeChanged } from './test/commit.ts'
import { runProgram } from './test/results.ts'

const { values } = parseArgs({ options: { minutes: { type: 'string' } } })
const all = values.minutes === undefined ? undefined : Number(values.minutes)
const isRoot = process.getuid?.() === 0
const startedMs = performance.now()
const minutesSince = (sinceMs: number): number => (performance.now() - sinceMs) / 60_000

const isProven = ({ proven, of }: State): boolean => of !== undefined && proven >= of

/** Commands that repeat a failure. */
const again = new Set<string>()

async function prove(part: Part, longLeft: number): Promise<Row> {
  const before = await part.state()
  const name = { part: part.name, sources: before.sources }
  if (isProven(before) || (part.needsRoot && !isRoot)) return { ...name, ...before, failed: 0, minutes: undefined }
  const minutes = minutesFor(part.isShort, { all, spent: minutesSince(startedMs), longLeft })
  if (minutes === 0) return { ...name, ...before, failed: 0, minutes: undefined }
  const partStartedMs = performance.now()
  let failed = 0
  await part.run(async (command, env) => {
    const { isGood, output } = await runProgram(command, env ?? {}, true)
    if (isGood) return true
    failed += Math.max(1, Number(/^\d+ passed, (\d+) failed$/m.exec(output)?.[1] ?? 1))
    const found = [...output.matchAll(/^again: (.*)$/gm)].map(([, text = '']) => text)
    for (const text of found.length > 0 ? found : [commandText(command, env)]) again.add(text)
    return false
  }, minutes)
  return { ...name, ...(await part.state()), failed, minutes: minutesSince(partStartedMs) }
}

const commandText = (command: readonly string[], env: Readonly<Record<string, string>> = {}): string =>
  [...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...command]
    .join(' ')
    .replace(process.execPath, 'node')

async function longPartsLeft(rest: readonly Part[]): Promise<number> {
  const states = await Promise.all(
    rest.filter(({ isShort, needsRoot }) => !isShort && (isRoot || !needsRoot)).map((part) => part.state()),
  )
  return states.filter((state) => !isProven(state)).length
}

const rows: Row[] = []
for (const [index, part] of parts.entries()) {
  const longLeft = await longPartsLeft(parts.slice(index))
  console.log(`\n${part.name}`)
  rows.push(await prove(part, longLeft))
}
const commit = headCommit()?.slice(0, 7) ?? 'none'
console.log(`\n${tableOf(rows, isTreeChanged() ? `${commit}+` : commit)}`)
if (!isRoot) {
  const names = parts.filter(({ needsRoot }) => needsRoot).map(({ name }) => name)
  console.log(`\nneeds root and did not run: ${names.join('; ')}`)
}
for (const text of again) console.log(`failed, again: ${text}`)
process.exitCode = rows.some(({ failed }) => failed > 0) ? 1 : 0
