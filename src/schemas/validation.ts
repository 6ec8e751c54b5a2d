import { clip } from './plain-text.ts'

/** The part of a compiled validator's error that we read (ajv's `verbose` form). */
export type ValidationError = {
  readonly instancePath: string
  readonly keyword: string
  readonly params: Readonly<Record<string, unknown>>
  readonly parentSchema?: {
    readonly description?: string
    readonly properties?: Readonly<Record<string, { readonly description?: string }>>
  }
  readonly data?: unknown
}

/** A compiled validator: true, or false with `errors` set until the next call. */
export type Validate = { (data: unknown): boolean; errors?: readonly ValidationError[] | null }

/** A problem at one place of a document. */
export type Problem = {
  /** A JSON pointer (RFC 6901), empty for the whole document. */
  readonly pointer: string
  /** Reads on after place and value: `must be a string`. */
  readonly message: string
  readonly value?: unknown
  /** Name of the violated rule; it never changes, because people filter by it. */
  readonly rule: string
  /** What to do, in the imperative. */
  readonly remedy: string
}

/** One problem per violated place, worded from the schema's descriptions; the deepest place wins over its parents. */
export function schemaProblems(errors: readonly ValidationError[]): Problem[] {
  return errors.map((error) => {
    const { description = 'something else' } = error.parentSchema ?? {}
    switch (error.keyword) {
      case 'required': {
        const name = String(error.params.missingProperty)
        const expected = error.parentSchema?.properties?.[name]?.description
        return {
          pointer: `${error.instancePath}/${pointerSegment(name)}`,
          message: 'is missing',
          rule: 'schema/required',
          remedy: expected === undefined ? `add ${name}` : `add ${name}: ${expected}`,
        }
      }
      case 'additionalProperties': {
        const name = String(error.params.additionalProperty)
        const known = Object.keys(error.parentSchema?.properties ?? {})
        return {
          pointer: `${error.instancePath}/${pointerSegment(name)}`,
          message: `is not known; known here: ${known.join(', ')}`,
          rule: 'schema/unknown-field',
          remedy: `remove ${name}, or correct its spelling`,
        }
      }
      default:
        return {
          pointer: error.instancePath,
          message: `must be ${description}`,
          value: error.data,
          rule: `schema/${error.keyword}`,
          remedy: `write ${description}`,
        }
    }
  })
}

/** `/a~1b` style escaping of one step of a JSON pointer. */
export const pointerSegment = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

/** `config.json /modes/apply/0/path = "/bin/sh": must be …`: one line for people, long values cut. */
export function problemText(file: string, problem: Problem): string {
  const location = problem.pointer === '' ? file : `${file} ${problem.pointer}`
  return problem.value === undefined
    ? `${location}: ${problem.message}`
    : `${location} = ${truncatedJson(problem.value)}: ${problem.message}`
}

const maxValueLength = 121 // enough to recognise it; messages end up in an Event of at most 1 KiB

/** A value as JSON, truncated if it is long. */
export const truncatedJson = (value: unknown): string => clip(JSON.stringify(value) ?? String(value), maxValueLength)
