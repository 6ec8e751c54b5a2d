import { durationMs } from '../../schemas/time.ts'
import type { Flag } from './command.ts'
import { usageError } from './command-error.ts'

/** `skipBatchReset` → `skip-batch-reset`. */
export const longName = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The value of a flag from its text on the command line. Throws a usage error. */
export function parseFlagValue(
  key: string,
  flag: Exclude<Flag, { readonly type: 'boolean' }>,
  text: string,
  earlier: readonly string[] | undefined,
): string | number | readonly string[] {
  const name = `--${longName(key)}`
  switch (flag.type) {
    case 'text':
      if (flag.choices !== undefined && !flag.choices.includes(text))
        throw usageError(`${name} must be one of ${flag.choices.join(', ')}, got "${text}"`)
      return text
    case 'list':
      return [...(earlier ?? []), ...text.split(',').filter((one) => one !== '')]
    case 'integer': {
      const value = Number(text)
      const minimum = flag.minimum ?? 0
      if (!/^-?\d+$/.test(text) || value < minimum)
        throw usageError(`${name} must be a whole number, at least ${minimum}, got "${text}"`)
      return value
    }
    case 'duration': {
      const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : durationMs(text)
      if (ms === undefined || ms < 0) throw usageError(`${name} must be a duration such as 90s or 5m, got "${text}"`)
      return ms
    }
    default:
      return flag satisfies never
  }
}
