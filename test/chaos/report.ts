/** What a campaign prints, and the record that it leaves after a failure. */
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentLogs } from '../kit/cluster/agent-logs.ts'
import type { ActionRecord, Arena } from './arena.ts'
import { editKinds, faultKinds } from './plan.ts'
import type { Evidence, Finding } from '../kit/recorded/evidence.ts'
import { linesOf, notesOf } from '../kit/recorded/findings.ts'

export function countsOf(actions: readonly ActionRecord[]): { readonly done: number; readonly missed: number } {
  const missed = actions.filter(({ hasMissed }) => hasMissed).length
  return { done: actions.length - missed, missed }
}

/** Returns how many checks passed and failed; one that had nothing to judge failed. */
export function print(actions: readonly ActionRecord[], findings: readonly Finding[]): [number, number] {
  for (const [title, kinds] of [
    ['FAULT', faultKinds],
    ['EDIT', [...editKinds, 'next rollout']],
  ] as const) {
    console.log(`\n${title.padEnd(44)} DONE  MISSED`)
    for (const kind of kinds) {
      const { done, missed } = countsOf(actions.filter((action) => action.kind === kind))
      console.log(`${kind.padEnd(44)} ${String(done).padStart(4)}  ${String(missed).padStart(6)}`)
    }
  }
  console.log(`\n${linesOf(findings).join('\n')}`)
  const good = findings.filter(({ checked, violations }) => checked > 0 && violations.length === 0).length
  return [good, findings.length - good]
}

/** Why the campaign failed, in short. */
export const reasonsOf = (findings: readonly Finding[]): readonly string[] =>
  findings.flatMap(({ name, checked, violations: [first] }) => {
    if (first !== undefined) return `${name}: ${first.text}`
    return checked === 0 ? `${name}: nothing to judge` : []
  })

/** Returns the folder: a readable timeline, the logs, and what the verdict was made from. */
export async function writeReport(
  { box, history, nodes }: Arena,
  seed: number,
  actions: readonly ActionRecord[],
  findings: readonly Finding[],
  evidence: Evidence,
): Promise<string> {
  const folder = join(import.meta.dirname, '../../dist', `chaos-${seed}`)
  mkdirSync(folder, { recursive: true })
  const notes = [
    ...actions.flatMap(({ number, kind, detail, startedMs, endedMs, hasMissed }) => [
      { atMs: startedMs, text: `==> action ${number}: ${kind}${hasMissed ? ' (missed)' : ''}: ${detail}` },
      ...(endedMs - startedMs > 1_000 ? [{ atMs: endedMs, text: `<== action ${number}: ${kind}` }] : []),
    ]),
    ...notesOf(evidence, findings),
  ]
  writeFileSync(join(folder, 'timeline.txt'), `${history.format(notes)}\n`)
  writeFileSync(join(folder, 'actions.json'), JSON.stringify(actions, null, 1))
  writeFileSync(join(folder, 'versions.jsonl'), evidence.moments.map(({ change }) => JSON.stringify(change)).join('\n'))
  const plane = join(box.folder, 'control-plane')
  for (const name of readdirSync(plane))
    if (/^audit.*\.log$/.test(name)) copyFileSync(join(plane, name), join(folder, name))
  writeFileSync(join(folder, 'agents.log'), await agentLogs(box))
  for (const node of nodes) {
    const { stdout } = await box.run(['logs', node, '--tail=-1'])
    writeFileSync(join(folder, `${node}.log`), stdout)
  }
  return folder
}
