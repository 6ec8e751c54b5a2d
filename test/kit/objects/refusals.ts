/** Answers that refuse, and what is wrong with what a command makes of them. */
import { ApiError } from '../../../src/kube/errors.ts'
import type { Ended, SentRequest } from '../tool/command-line.ts'

export const forbidden = ({ path }: SentRequest): never => {
  throw new ApiError({ status: 403, reason: 'Forbidden', message: `person cannot list ${path.split('/').at(-1)}` })
}

/** What is wrong with an end that should be an answer with what is unknown in it, or a refusal that says so. */
export function faultsOf({ code, stdout, stderr }: Ended): readonly string[] {
  return [
    ...(code === 0 || code === 4 ? [] : [`ended with ${code}: ${stderr}`]),
    // a stack trace is a defect of ours, and so is what JavaScript writes for nothing
    ...(`${stdout}${stderr}`.match(/\n {4}at .*|undefined|NaN|\[object/g) ?? []),
    ...(code === 0 || /^error: .*(may not|cannot|expired)/.test(stderr) ? [] : [`does not say why: ${stderr}`]),
  ]
}

/** The last plural in a path. */
export const kindOf = (path: string): string =>
  path.split('/').findLast((part) => /^(?!v1)[a-z]+s$|^log$/.test(part) && part !== 'apis') ?? path
