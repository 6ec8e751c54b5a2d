import { isObject, parseJson } from './json.ts'
import { clip, plainExcerpt, plainLine } from './plain-text.ts'

/**
 * What a package reports about itself between and after its stages: the file `status/<package>.json` in the Skyhook's
 * folder on the host, written by its steps or by units that they installed (packages/os-update/README.md has the whole
 * format).
 */
export type PackageStatus = {
  /** Boot in which it was written. */
  readonly bootId: string
  /** One line for people, at most `maxMessageLength` characters. */
  readonly message: string
  /** Whether config has work to do, and whether an interrupt is required. */
  readonly requests: { readonly run: boolean; readonly interrupt: boolean }
}

/** The result of reading that file. */
export type StatusReadResult =
  | { readonly state: 'read'; readonly status: PackageStatus; readonly writtenAtMs: number }
  /** Missing, too large, not JSON, or not in the format; `why` names the file. */
  | { readonly state: 'unusable'; readonly why: string }

export type ParsedStatus =
  | { readonly outcome: 'valid'; readonly status: PackageStatus }
  | { readonly outcome: 'invalid'; readonly problem: string }

/** The newest supported format. */
const formatVersion = 1
/** The limit of the message in a condition of the Node. */
export const maxMessageLength = 256

/** Reads the text of a status file of the package of this name. */
export function parsePackageStatus(text: string, name: string): ParsedStatus {
  const value = parseJson(text)
  if (value === undefined) return invalid('not valid JSON')
  if (!isObject(value)) return invalid('not a JSON object')
  const { v, package: packageName, bootId, message, requests } = value
  if (v !== formatVersion) return invalid(`"v" is ${JSON.stringify(v)}, this agent reads ${formatVersion}`)
  if (packageName !== name) return invalid(`"package" is ${JSON.stringify(packageName)} instead of "${name}"`)
  if (typeof bootId !== 'string' || bootId === '') return invalid('"bootId" is missing')
  if (typeof message !== 'string') return invalid('"message" must be a string')
  if (!isObject(requests) || typeof requests['run'] !== 'boolean' || typeof requests['interrupt'] !== 'boolean')
    return invalid('"requests" must be {"run": true or false, "interrupt": true or false}')
  return {
    outcome: 'valid',
    status: { bootId, message: lineOf(message), requests: { run: requests['run'], interrupt: requests['interrupt'] } },
  }
}

const invalid = (problem: string): ParsedStatus => ({ outcome: 'invalid', problem: lineOf(problem) })

const lineOf = (text: string): string =>
  clip(plainLine(plainExcerpt(text, 4 * maxMessageLength)).trim(), maxMessageLength)
