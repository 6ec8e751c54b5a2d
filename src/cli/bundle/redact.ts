/** Removes from objects what a support archive must not contain. Pure. */
import { createMask } from '../../packages/step/mask.ts'
import { isObject } from '../../schemas/json.ts'
import { plainText } from '../../schemas/plain-text.ts'
import { entryStates, nodeStatuses, slotPhases, stageNames } from '../../schemas/skyhook.ts'
import { reasonCodes } from '../../schemas/catalogue/reason-codes.ts'
import { reasons } from '../../schemas/catalogue/reasons.ts'

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
/** Shorter values are words such as `true`, which are harmless and frequent. */
const minLiteralLength = 6
/** For lines of configuration files: many of them are common words. */
const minLineLength = 12

type Counts = {
  environmentValues: number
  configurationValues: number
  managedFields: number
  lastApplied: number
  maskedTexts: number
}

export type Redactor = {
  /** Returns the redacted object. */
  readonly object: <T>(object: T) => T
  readonly text: (text: string) => string
  /** How much was removed so far. */
  readonly counts: Readonly<Counts>
}

type RedactorOptions = {
  /** Values of environment variables, which are removed from messages and logs, too. */
  readonly literals: ReadonlySet<string>
  /** Texts to replace, such as hashes of redacted specs. */
  readonly translations?: ReadonlyMap<string, string>
}

export function createRedactor({ literals, translations = new Map() }: RedactorOptions): Redactor {
  const counts: Counts = {
    environmentValues: 0,
    configurationValues: 0,
    managedFields: 0,
    lastApplied: 0,
    maskedTexts: 0,
  }
  // as they are, and as in a JSON text; also each line by itself, because programs print line by line
  const lines = [...literals].flatMap((literal) => plainText(literal).split('\n'))
  const inJson = [...literals, ...lines].map((text) => JSON.stringify(plainText(text).trim()).slice(1, -1))
  const mask = createMask([...literals, ...inJson], minLiteralLength, leftOut)

  function text(original: string): string {
    const clean = plainText(original)
    const masked = mask.mask(maskLikelySecrets(clean))
    if (masked !== clean) counts.maskedTexts++
    return translated(masked)
  }

  function translated(original: string): string {
    let masked = original
    for (const [from, to] of translations) if (masked.includes(from)) masked = masked.replaceAll(from, to)
    return masked
  }

  const fieldsOf = (fields: Readonly<Record<string, unknown>>): object =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
        if (name === 'managedFields') {
          counts.managedFields++
          return []
        }
        if (name === lastApplied) {
          counts.lastApplied++
          return []
        }
        if (name === 'env' && Array.isArray(value)) return [[name, value.map(variable)]]
        if (name === 'configMap' && isObject(value) && isConfiguration(value)) return [[name, configuration(value)]]
        if (typeof value === 'string' && value !== '' && isSecretField(name)) {
          counts.maskedTexts++
          return [[name, leftOut]]
        }
        return [[name, any(value)]]
      }),
    )

  function any(value: unknown): unknown {
    if (typeof value === 'string') return text(value)
    if (Array.isArray(value)) return value.map(any)
    return isObject(value) ? fieldsOf(value) : value
  }

  /** References and empty values stay. */
  function variable(entry: unknown): unknown {
    if (!isObject(entry)) return leftOut
    const { value, ...rest } = entry
    if (value === undefined || value === '') return any(entry)
    counts.environmentValues++
    return { ...(any(rest) as object), value: leftOut }
  }

  /** Decisions of agents depend on the existence of a file and on whether it is empty. */
  function configuration(files: Readonly<Record<string, unknown>>): object {
    return Object.fromEntries(
      Object.entries(files).map(([name, content]) => {
        if (content === '') return [name, '']
        counts.configurationValues++
        return [name, leftOut]
      }),
    )
  }

  return { object: <T>(object: T) => any(object) as T, text, counts }
}

/** Whether it is the configMap of a package, by file name; the `configMap` of a volume has a name instead. */
const isConfiguration = (value: Readonly<Record<string, unknown>>): boolean =>
  Object.values(value).every((content) => typeof content === 'string') && !('name' in value && 'defaultMode' in value)

/** Words that agents write into annotations: to redact an equal value would make these unreadable. */
const ownValues: ReadonlySet<string> = new Set([
  ...stageNames,
  ...stageNames.map((stage) => `${stage}-check`),
  ...entryStates,
  ...nodeStatuses,
  ...slotPhases,
  ...Object.keys(reasons),
  ...Object.keys(reasonCodes),
])

/**
 * Values of environment variables, and lines of configuration files, anywhere in the objects. `names` are names of
 * objects, which are not secret.
 */
export function literalsOf(objects: readonly unknown[], names: ReadonlySet<string>): ReadonlySet<string> {
  const found = new Set<string>()
  const isLiteral = (text: string): boolean => !names.has(text) && !ownValues.has(text)
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) visit(one)
    if (!isObject(value)) return
    for (const [field, inner] of Object.entries(value)) {
      if (field === 'env' && Array.isArray(inner)) {
        for (const entry of inner) {
          const literal = isObject(entry) ? entry['value'] : undefined
          if (typeof literal === 'string' && isLiteral(literal)) found.add(literal)
        }
      }
      if (field === 'configMap' && isObject(inner) && isConfiguration(inner))
        for (const line of Object.values(inner).flatMap((content) => plainText(String(content)).split('\n')))
          if (line.trim().length >= minLineLength && isLiteral(line.trim())) found.add(line.trim())
      visit(inner)
    }
  }
  visit(objects)
  return found
}

/** Replaces the secret. It is one word, so that JSON and command lines keep their form. */
export const leftOut = '[left-out]'

const names = [
  'password',
  'passwd',
  'passphrase',
  'pwd',
  'secret',
  'token',
  'api[_-]?key',
  'access[_-]?key',
  'private[_-]?key',
  'credentials?',
  'authorization',
  'cookie',
]
const word = `(?:${names.join('|')})`
/** A name that contains one of the words. Bounded, so that the time is linear in the length of the text. */
const name = String.raw`[\w.-]{0,40}${word}[\w.-]{0,40}`

type Pattern = { readonly pattern: RegExp; readonly instead: string }

const patterns: readonly Pattern[] = [
  // up to its end, or to the end of a text that was cut
  {
    pattern: /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g,
    instead: leftOut,
  },
  { pattern: /\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?/g, instead: leftOut }, // a JSON web token
  { pattern: /\b(Bearer|Basic)\s+[\w+/.~=-]{6,}/gi, instead: `$1 ${leftOut}` },
  { pattern: /\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@"'\\]+@/gi, instead: `$1${leftOut}@` },
  { pattern: /\b(?:AKIA|ASIA)[0-9A-Z]{12,}/g, instead: leftOut },
  {
    pattern: /\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AIza|sk-|nvapi-|hf_|dckr_pat_|npm_)[\w-]{16,}/g,
    instead: leftOut,
  },
  // name and value as in JSON and YAML; in JSON within JSON, quotes have backslashes
  {
    pattern: new RegExp(String.raw`(${name}["']?\s*[:=]\s*)(["'])(?:\\.|(?!\2)[^\\])*`, 'gi'),
    instead: `$1$2${leftOut}`,
  },
  {
    pattern: new RegExp(String.raw`(${name}\\+["']\s*[:=]\s*)(\\+["'])(?:(?!\2).)*`, 'gis'),
    instead: `$1$2${leftOut}`,
  },
  // and as in environments, queries and flags
  {
    pattern: new RegExp(String.raw`(${name}\s*[:=]\s*|--${name}\s+)([^\s"'\\,;&)\]}]+)`, 'gi'),
    instead: `$1${leftOut}`,
  },
]

/** Replaces everything in the text that looks like a secret, even if it is not one. */
export const maskLikelySecrets = (text: string): string =>
  patterns.reduce((masked, { pattern, instead }) => masked.replace(pattern, instead), text)

const secretName = new RegExp(word, 'i')
/** Fields with names of objects, which show where a secret is, not its value. */
const referenceName = /(?:Name|Ref|Names|Secrets)$|^(?:secret|caSecret)$/

/** Whether a field of this name holds a secret, if it is text. */
const isSecretField = (name: string): boolean => secretName.test(name) && !referenceName.test(name)
