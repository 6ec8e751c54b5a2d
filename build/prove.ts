/**
 * `make prove`: everything that `make test` runs samples of. Continues where it stopped, as long as the sources that a
 * part proves are the same. Prints a table at the end, and fails if something failed.
 */
import { parseArgs } from 'node:util'
import { minutesFor } from './prove/minutes.ts'
import { type Part, parts, type State } from './prove/parts.ts'
import { type Row, tableOf } from './prove/table.ts'
import { headCommit, isTreeChanged } from './test/git.ts'
import { repeating, runProgram } from './test/results.ts'

const { values } = parseArgs({ options: { minutes: { type: 'string' } } })
const all = values.minutes === undefined ? undefined : Number(values.minutes)
const isRoot = process.getuid?.() === 0
const startedMs = performance.now()
const minutesSince = (sinceMs: number): number => (performance.now() - sinceMs) / 60_000

const canRun = ({ needsRoot }: Part): boolean => isRoot || !needsRoot
const isProven = ({ proven, of }: State): boolean => of !== undefined && proven >= of

/** Commands that repeat a failure. */
const again = new Set<string>()

type Before = { readonly part: Part; readonly state: State; readonly isLeft: boolean }

async function lookAt(part: Part): Promise<Before> {
  const state = await part.state()
  return { part, state, isLeft: !isProven(state) && canRun(part) }
}

/** `rest`: with the part itself. */
async function prove({ part, state, isLeft }: Before, rest: readonly Before[]): Promise<Row> {
  if (!isLeft) return { part: part.name, ...state, failed: 0, minutes: undefined }
  const left = (isShort: boolean): number => rest.filter((one) => one.isLeft && one.part.isShort === isShort).length
  const spent = minutesSince(startedMs)
  const minutes = minutesFor({ all, spent, shortLeft: left(true), longLeft: left(false) })
  console.log(`\n${part.name}`)
  const partStartedMs = performance.now()
  let failed = 0
  await part.run(async (command, env) => {
    const { isGood, output } = await runProgram(command, env ?? {}, true)
    if (isGood) return true
    failed += Math.max(1, Number(/^\d+ passed, (\d+) failed$/m.exec(output)?.[1] ?? 1))
    const found = repeating(output)
    for (const text of found.length > 0 ? found : [commandText(command, env)]) again.add(text)
    return false
  }, minutes)
  return { part: part.name, ...(await part.state()), failed, minutes: minutesSince(partStartedMs) }
}

const commandText = (command: readonly string[], env: Readonly<Record<string, string>> = {}): string =>
  [...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...command]
    .join(' ')
    .replace(process.execPath, 'node')

const before: Before[] = []
for (const part of parts) before.push(await lookAt(part))
const rows: Row[] = []
for (const [index, one] of before.entries()) rows.push(await prove(one, before.slice(index)))
const commit = headCommit()?.slice(0, 7) ?? 'none'
console.log(`\n${tableOf(rows, isTreeChanged() ? `${commit}+` : commit)}`)
const others = parts.filter((part) => !canRun(part)).map(({ name }) => name)
if (others.length > 0) console.log(`\nneeds root and did not run: ${others.join('; ')}`)
for (const text of again) console.log(`failed, again: ${text}`)
process.exitCode = rows.some(({ failed }) => failed > 0) ? 1 : 0
