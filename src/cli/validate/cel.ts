/**
 * The rules of our resource definitions in CEL, evaluated as the API server does. Pure, but for the cache of compiled
 * rules.
 */
import {
  celEnv,
  celMethod,
  CelScalar,
  isCelError,
  isCelList,
  isCelMap,
  listType,
  parse,
  plan,
  type CelInput,
  type CelValue,
} from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'
import { isObject, messageOf } from '../../schemas/json.ts'
import { pointerSegment, type Problem } from '../../schemas/validation.ts'
import { type CelRule, fieldSchema, type Schema } from './structural.ts'

/** `format` of the API server puts strings inside of lists in quotes; the library's does not. */
const format = celMethod('format', CelScalar.STRING, [listType(CelScalar.DYN)], CelScalar.STRING, function (values) {
  const rest = [...values][Symbol.iterator]()
  return this.replace(/%[sd]/g, () => formatted(rest.next().value as CelValue, true))
})

function formatted(value: CelValue, isOutermost: boolean): string {
  if (typeof value === 'string') return isOutermost ? value : JSON.stringify(value)
  if (isCelList(value)) return `[${[...value].map((item) => formatted(item, false)).join(', ')}]`
  if (isCelMap(value)) {
    const entries = [...value.entries()].map(([key, one]) => `${formatted(key, false)}: ${formatted(one, false)}`)
    return `{${entries.join(', ')}}`
  }
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/**
 * The library's own engine compiles a pattern at every use: 30 s for the largest Skyhook that the API server accepts.
 * Our patterns mean the same to JavaScript, POSIX classes aside.
 */
const patterns = new Map<string, RegExp>()
const engine = {
  compile(pattern: string): RegExp {
    const compiled = patterns.get(pattern) ?? new RegExp(pattern.replaceAll(/\[:(\w+):\]/g, posixClass), 'u')
    patterns.set(pattern, compiled)
    return compiled
  },
}

function posixClass(written: string, name: string): string {
  if (name === 'space') return '\\s'
  if (name === 'cntrl') return '\\u0000-\\u001f\\u007f'
  throw new Error(`${written} is not a class that the rules use`)
}

const environment = celEnv({ funcs: [...strings.filter(({ name }) => name !== 'format'), format], re2: engine })
const programs = new Map<string, ReturnType<typeof plan>>()

function evaluate(expression: string, self: CelInput): unknown {
  const program = programs.get(expression) ?? plan(environment, parse(expression))
  programs.set(expression, program)
  const result = program({ self })
  if (isCelError(result)) throw new Error(result.message)
  return result
}

/**
 * Every rule below the value that does not hold. A rule is left out where something below its place has the wrong form,
 * as `hasProblem` says: it could not be evaluated.
 */
export function ruleProblems(
  schema: Schema,
  value: unknown,
  pointer: string,
  hasProblem: (pointer: string) => boolean,
): Problem[] {
  const problems: Problem[] = []
  const rules = schema['x-kubernetes-validations'] ?? []
  if (rules.length > 0 && !hasProblem(pointer)) {
    const self = celValue(schema, value)
    for (const rule of rules) problems.push(...violations(rule, self, value, pointer))
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      problems.push(...ruleProblems(schema.items ?? {}, item, `${pointer}/${index}`, hasProblem))
  } else if (isObject(value)) {
    for (const [name, field] of Object.entries(value)) {
      const own = fieldSchema(schema, name)
      if (own !== undefined && field !== null)
        problems.push(...ruleProblems(own, field, `${pointer}/${pointerSegment(name)}`, hasProblem))
    }
  }
  return problems
}

function violations(rule: CelRule, self: CelInput, value: unknown, pointer: string): Problem[] {
  const at = `${pointer}${(rule.fieldPath ?? '').replaceAll('.', '/')}`
  const shown = typeof value === 'string' || typeof value === 'number' ? { value } : {}
  try {
    if (evaluate(rule.rule, self) === true) return []
  } catch (error) {
    const message = `the rule ${JSON.stringify(rule.rule)} cannot be evaluated: ${messageOf(error)}`
    return [{ pointer: at, message, rule: 'cel', remedy: rule.message, ...shown }]
  }
  const [message, remedy] = splitRemedy(messageFor(rule, self))
  return [{ pointer: at, message, rule: 'cel', remedy, ...shown }]
}

function messageFor({ message, messageExpression }: CelRule, self: CelInput): string {
  if (messageExpression === undefined) return message
  try {
    return String(evaluate(messageExpression, self))
  } catch {
    return message // as the API server does
  }
}

/** Our messages say what is wrong; then what to do. */
export function splitRemedy(message: string): [message: string, remedy: string] {
  const at = message.indexOf('; ')
  return at < 0 ? [message, message] : [message, message.slice(at + 2)]
}

/** Integers are bigints in CEL; a field that is null is absent. */
function celValue(schema: Schema, value: unknown): CelInput {
  if (Array.isArray(value)) return value.map((item: unknown) => celValue(schema.items ?? {}, item))
  if (isObject(value)) {
    const entries = Object.entries(value).filter(([, field]) => field !== null)
    return new Map(entries.map(([name, field]) => [name, celValue(fieldSchema(schema, name) ?? {}, field)]))
  }
  if (typeof value === 'number' && schema.type !== 'number' && Number.isInteger(value)) return BigInt(value)
  return value as CelInput
}
