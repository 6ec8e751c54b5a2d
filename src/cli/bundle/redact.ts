/** Takes out of objects what a support archive must not have. Pure. */
import { maskedParts } from '../../packages/step/mask.ts'
import { isObject } from '../../schemas/json.ts'
import { isSecretField, leftOut, maskLikelySecrets } from './likely-secrets.ts'

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
/** Shorter ones are words such as `true`, which say nothing and stand everywhere. */
const minLiteralLength = 6

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
  // each of its lines too: programs print one after the other
  const parts = maskedParts([...literals]).filter(({ length }) => length >= minLiteralLength)

  function text(original: string): string {
    let masked = maskLikelySecrets(original)
    for (const part of parts) {
      // as it is, and as it stands within a JSON text
      for (const form of new Set([part, JSON.stringify(part).slice(1, -1)]))
        if (masked.includes(form)) masked = masked.replaceAll(form, leftOut)
    }
    if (masked !== original) counts.maskedTexts++
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

/** Values of environment variables anywhere in the objects. `names`: what objects are called is no secret. */
export function literalsOf(objects: readonly unknown[], names: ReadonlySet<string>): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) visit(one)
    if (!isObject(value)) return
    for (const [field, inner] of Object.entries(value)) {
      if (field === 'env' && Array.isArray(inner)) {
        for (const entry of inner) {
          const literal = isObject(entry) ? entry['value'] : undefined
          if (typeof literal === 'string' && !names.has(literal)) found.add(literal)
        }
      }
      visit(inner)
    }
  }
  visit(objects)
  return found
}
