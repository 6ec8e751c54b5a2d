/** What a life was like, as text and as a document. Pure. */
import { shownLines } from '../../../schemas/plain-text.ts'
import type { StageName } from '../../../schemas/skyhook.ts'
import { counted } from '../../../schemas/wording.ts'
import type { ActReport, LifeReport } from './live.ts'

/** One life, on one host. */
export type RunReport = LifeReport & {
  readonly package: string
  readonly version: string
  /** Of an upgrade: the version before it. */
  readonly from?: string
  /** The stage that was asked for, where it is not the whole life. */
  readonly only?: StageName
  /** False where the package has no uninstall stage: a whole life does not look for what it leaves behind. */
  readonly hasUninstall: boolean
}

const outcomeNames: Readonly<Record<ActReport['outcome'], string>> = {
  passed: 'passed',
  failed: 'failed',
  warning: 'warning',
  'not-killed': 'not killed',
}
const nameWidth = Math.max(...Object.values(outcomeNames).map((name) => name.length))
/** Of the output of a step. */
const maxDetailLines = 20

/** The line of an act, with what there is to say about it below. */
export function actText({ name, outcome, detail }: ActReport): string {
  const lines = detail.trimEnd() === '' ? [] : detail.trimEnd().split('\n')
  const shown = lines.length > maxDetailLines ? ['…', ...lines.slice(-maxDetailLines)] : lines
  return shownLines([`${outcomeNames[outcome].padEnd(nameWidth)}  ${name}`, ...shown.map((line) => `    ${line}`)])
}

type Subject = Pick<RunReport, 'package' | 'version' | 'from' | 'only'>

export const titleOf = ({ package: name, version, from, only }: Subject): string =>
  `${only ?? 'life'} of ${name} ${version}${from === undefined ? '' : `, upgraded from ${from}`}`

/** What follows the acts: what is left behind, and the verdict. */
export function endText(report: RunReport): string {
  const { acts, leftBehind, ignored, isOk, hasUninstall, only } = report
  const remains = leftBehind.map(({ kind, name, change }) => `    ${change.padEnd(7)}  ${kind} ${name}`)
  const notes =
    hasUninstall || only !== undefined ? [] : ['no uninstall stage: what the package leaves behind was not checked']
  const count = (outcome: ActReport['outcome'], one: string, many?: string): string[] => {
    const found = acts.filter((act) => act.outcome === outcome).length
    return found === 0 ? [] : [counted(found, one, many)]
  }
  const verdict = [
    isOk ? 'passed' : 'failed',
    ...count('warning', 'warning'),
    ...count('not-killed', 'stage too short to be killed', 'stages too short to be killed'),
    ...(leftBehind.length === 0 ? [] : [`${leftBehind.length} left behind`]),
    ...(ignored.length === 0 ? [] : [`${ignored.length} ignored`]),
  ]
  return shownLines([...remains, ...notes, `${titleOf(report)}: ${verdict.join(', ')}`])
}

/** The same for programs. */
export const itemOf = ({ isOk, acts, leftBehind, ignored, hasUninstall, ...about }: RunReport): object => ({
  ...about,
  passed: isOk,
  acts,
  hasUninstall,
  leftBehind,
  ignored,
})
