/** Takes out of objects what a support archive must not have. Pure. */
import { createMask } from '../../packages/step/mask.ts'
import { isObject } from '../../schemas/json.ts'
import { plainText } from '../../schemas/plain-text.ts'
import { entryStates, nodeStatuses, slotPhases, stageNames } from '../../schemas/skyhook.ts'
import { reasonCodes } from '../../schemas/catalogue/reason-codes.ts'
import { reasons } from '../../schemas/catalogue/reasons.ts'
import { isSecretField, leftOut, maskLikelySecrets } from './likely-secrets.ts'

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
/** Shorter ones are words such as `true`, which say nothing and stand everywhere. */
const minLiteralLength = 6
/** Of a configuration file: much of what is in one is a word of everybody. */
const minLineLength = 12

export type Counts = {
  environmentValues: number
  configurationValues: number
  managedFields: number
  lastApplied: number
  maskedTexts: number
}

export type Redactor = {
  /** The object without all of that. */
  readonly object: <T>(object: T) => T
  readonly text: (text: string) => string
  /** What has been taken out so far. */
  readonly counts: Readonly<Counts>
}

export type RedactorOptions = {
  /** Values of environment variables: they are taken out of messages and logs too. */
  readonly literals: ReadonlySet<string>
  /** Texts that stand for others, such as hashes of what was changed here. */
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
  // as they are, and as they stand within a JSON text; each line too: programs print one after the other
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

  /** Where a value comes from stays, so do empty ones. */
  function variable(entry: unknown): unknown {
    if (!isObject(entry)) return leftOut
    const { value, ...rest } = entry
    if (value === undefined || value === '') return any(entry)
    counts.environmentValues++
    return { ...(any(rest) as object), value: leftOut }
  }

  /** That there is a file, and whether it is empty, decides what agents do. */
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

/** Of a package, by file name; a volume's `configMap` names one. */
const isConfiguration = (value: Readonly<Record<string, unknown>>): boolean =>
  Object.values(value).every((content) => typeof content === 'string') && !('name' in value && 'defaultMode' in value)

/** What agents write into annotations: a value that is the same would make them unreadable. */
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
 * Values of environment variables, and lines of configuration files, anywhere in the objects. `names`: what objects are
 * called is no secret.
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
