/** The findings of a validation, in the forms for people, programs and GitHub. */
import { plainLine } from './plain-text.ts'
import { truncatedJson, type Problem } from './validation.ts'
import { counted } from './wording.ts'

/** A problem with its place outside of the document. Errors make the thing unusable; warnings do not. */
export type Finding = Problem & {
  readonly severity: 'error' | 'warning'
  /** As the user named it, with the path inside of it. */
  readonly file: string
  /** From 1, where it is known. */
  readonly line?: number
}

export const findingFormats = ['text', 'json', 'github'] as const
export type FindingFormat = (typeof findingFormats)[number]

/** One examined document, with its findings. */
export type Examined = {
  /** As the user named it, or the document in it: `skyhook.yaml Skyhook demo`. */
  readonly subject: string
  readonly kind: string
  readonly findings: readonly Finding[]
}

export const hasErrors = (examined: readonly Examined[]): boolean =>
  examined.some(({ findings }) => findings.some(({ severity }) => severity === 'error'))

/** The whole report, with a line feed at its end: errors first, warnings apart. */
export function formatFindings(examined: readonly Examined[], format: FindingFormat): string {
  switch (format) {
    case 'text':
      return textReport(examined)
    case 'json':
      return jsonReport(examined)
    case 'github':
      return ordered(examined)
        .map((finding) => `${githubCommand(finding)}\n`)
        .join('')
  }
}

function textReport(examined: readonly Examined[]): string {
  const lines = ordered(examined).flatMap((finding) => {
    const { severity, file, line, pointer, value, message, remedy, rule } = finding
    const place = [line === undefined ? file : `${file}:${line}`, pointer].filter((part) => part !== '').join(' ')
    const found = value === undefined ? '' : ` = ${truncatedJson(value)}`
    const first = `${severity}: ${place}${found}: ${message} [${rule}]`
    return saysRemedy(finding) ? [first] : [first, `    to fix it: ${remedy}`]
  })
  for (const { subject, kind, findings } of examined) {
    const count = (severity: Finding['severity'], noun: string): string => {
      const number = findings.filter((finding) => finding.severity === severity).length
      return counted(number, noun)
    }
    const verdict = findings.some(({ severity }) => severity === 'error') ? 'invalid' : 'valid'
    const counts = findings.length === 0 ? '' : ` (${count('error', 'error')}, ${count('warning', 'warning')})`
    lines.push(`${subject}: ${kind} is ${verdict}${counts}`)
  }
  return lines.map((line) => `${plainLine(line)}\n`).join('')
}

/** Many messages end with the remedy. */
const saysRemedy = ({ message, remedy }: Problem): boolean =>
  message.endsWith(remedy) || message === remedy.replace(/^write /, 'must be ')

function jsonReport(examined: readonly Examined[]): string {
  const report = {
    apiVersion: 'cli.skyhookd/v1',
    kind: 'FindingList',
    valid: !hasErrors(examined),
    examined: examined.map(({ subject, kind, findings }) => ({
      subject,
      kind,
      errors: findings.filter(({ severity }) => severity === 'error').length,
      warnings: findings.filter(({ severity }) => severity === 'warning').length,
    })),
    items: ordered(examined),
  }
  return `${JSON.stringify(report, null, 2)}\n`
}

/** A workflow command: GitHub shows it beside the line of a pull request. */
function githubCommand(finding: Finding): string {
  const { severity, file, line, pointer, value, message, remedy, rule } = finding
  const found = value === undefined ? '' : ` = ${truncatedJson(value)}`
  const sentence = `${pointer}${found}: ${message}`.replace(/^: /, '')
  const text = saysRemedy(finding) ? sentence : `${sentence}\nTo fix it: ${remedy}`
  const properties = { file, ...(line !== undefined && { line: String(line) }), title: rule }
  const written = Object.entries(properties).map(([name, one]) => `${name}=${escapedProperty(one)}`)
  return `::${severity} ${written.join(',')}::${escapedData(text)}`
}

const escapedData = (text: string): string =>
  text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')

const escapedProperty = (text: string): string => escapedData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')

function ordered(examined: readonly Examined[]): Finding[] {
  const all = examined.flatMap(({ findings }) => findings)
  return [...all.filter(({ severity }) => severity === 'error'), ...all.filter(({ severity }) => severity !== 'error')]
}
