/** Checks as text. Color alone never shows a verdict. */
import { shownLines } from '../../schemas/plain-text.ts'
import { besideCells, type Cell } from '../output/wrap.ts'
import { type Check } from './finding.ts'
import { counted } from '../../schemas/wording.ts'

const checkWidth = 12
const verdictWidth = 8

export function reportText(checks: readonly Check[]): string {
  const lines = checks.flatMap(({ check, verdict, findings, unknown, about }) => {
    const cells: readonly Cell[] = [
      [check, checkWidth],
      [verdict === 'error' ? 'ERROR' : verdict, verdictWidth],
    ]
    const texts = [
      ...findings.flatMap(({ id, severity, message, remedy, command }) => [
        `${severity === 'error' ? 'ERROR' : severity} ${id}: ${message}`,
        `  remedy: ${remedy}`,
        ...(command === undefined ? [] : [`  run:    ${command}`]),
      ]),
      ...unknown.map((why) => `unknown: ${why}`),
    ]
    return besideCells(cells, about === '' ? texts : [about, ...texts])
  })
  return shownLines([...lines, '', summaryOf(checks)])
}

function summaryOf(checks: readonly Check[]): string {
  const findings = checks.flatMap((one) => one.findings)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const unknown = checks.filter((one) => one.unknown.length > 0).length
  return [
    counted(errors, 'error'),
    counted(findings.length - errors, 'warning'),
    ...(unknown > 0 ? [`${counted(unknown, 'check')} not or not fully possible`] : []),
  ].join(', ')
}
