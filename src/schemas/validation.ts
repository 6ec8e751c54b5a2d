/** The part of a compiled validator's error that we read (ajv's `verbose` form). */
export type ValidationError = {
  readonly instancePath: string
  readonly keyword: string
  readonly params: Readonly<Record<string, unknown>>
  readonly parentSchema?: { readonly description?: string; readonly properties?: Readonly<Record<string, unknown>> }
  readonly data?: unknown
}

/** A compiled validator: true, or false with `errors` set until the next call. */
export type Validate = { (data: unknown): boolean; errors?: readonly ValidationError[] | null }

/** What is wrong at one place of a document. `pointer` is a JSON pointer (RFC 6901), empty for the whole document. */
export type Problem = { readonly pointer: string; readonly message: string; readonly value?: unknown }

/** One problem per violated place, worded from the schema's descriptions; the deepest place wins over its parents. */
export function schemaProblems(errors: readonly ValidationError[]): Problem[] {
  return errors.map((error) => {
    const { description } = error.parentSchema ?? {}
    switch (error.keyword) {
      case 'required':
        return {
          pointer: `${error.instancePath}/${pointerSegment(String(error.params.missingProperty))}`,
          message: 'is missing',
        }
      case 'additionalProperties': {
        const name = String(error.params.additionalProperty)
        const known = Object.keys(error.parentSchema?.properties ?? {})
        return {
          pointer: `${error.instancePath}/${pointerSegment(name)}`,
          message: `is not known; known here: ${known.join(', ')}`,
        }
      }
      default:
        return { pointer: error.instancePath, message: `must be ${description ?? 'something else'}`, value: error.data }
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
    : `${location} = ${truncated(JSON.stringify(problem.value))}: ${problem.message}`
}

const maxValueLength = 120 // enough to recognise it; messages end up in an Event of at most 1 KiB

const truncated = (text: string): string => (text.length <= maxValueLength ? text : `${text.slice(0, maxValueLength)}…`)
