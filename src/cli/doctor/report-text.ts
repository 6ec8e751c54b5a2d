/** Checks as text. Nothing is told by color: each verdict is a word. */
import { shownLine } from '../../schemas/plain-text.ts'
import { type Check } from './finding.ts'
import { counted } from '../../schemas/wording.ts'

const checkWidth = 12
const verdictWidth = 8
const indent = ' '.repeat(checkWidth + verdictWidth + 2)

export function reportText(checks: readonly Check[]): string {
  const lines = checks.flatMap(({ check, verdict, findings, unknown, about }) => {
    const start = `${check.padEnd(checkWidth)} ${(verdict === 'error' ? 'ERROR' : verdict).padEnd(verdictWidth)}`
    const texts = [
      ...findings.flatMap(({ id, severity, message, remedy, command }) => [
        `${severity === 'error' ? 'ERROR' : severity} ${id}: ${message}`,
        `  remedy: ${remedy}`,
        ...(command === undefined ? [] : [`  run:    ${command}`]),
      ]),
      ...unknown.map((why) => `unknown: ${why}`),
    ]
    const [first = '', ...rest] = about === '' ? texts : [about, ...texts]
    return [`${start} ${shownLine(first)}`.trimEnd(), ...rest.map((line) => `${indent}${shownLine(line)}`)]
  })
  return [...lines, '', summaryOf(checks)].map((line) => `${line}\n`).join('')
}

function summaryOf(checks: readonly Check[]): string {
  const findings = checks.flatMap((one) => one.findings)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const unknown = checks.filter((one) => one.unknown.length > 0).length
  return [
    counted(errors, 'error'),
    counted(findings.length - errors, 'warning'),
    ...(unknown > 0 ? [`${counted(unknown, 'check')} not or not wholly possible`] : []),
  ].join(', ')
}
