/** What a caller may not read is unknown or refused in words, whatever the command: never a crash, never a zero. */
import { describe, expect, test } from 'vitest'
import { exampleCluster } from '../../../test/support/example-cluster.ts'
import type { Ended, SentRequest } from '../../../test/support/command-line.ts'
import { ApiError } from '../../kube/errors.ts'
import type { Command } from '../framework/command.ts'
import { exitCodesOf } from '../framework/help.ts'
import { allCommands } from './all.ts'

const forbidden = ({ path }: SentRequest): never => {
  throw new ApiError({ status: 403, reason: 'Forbidden', message: `person cannot list ${path.split('/').at(-1)}` })
}
const expired = (): never => {
  throw new ApiError({ status: 401, reason: 'Unauthorized', message: 'the token has expired' })
}

const remote = allCommands.filter(({ isLocal }) => isLocal !== true)
const isReader = ({ isAction }: Command): boolean => isAction !== true
const named = (commands: readonly Command[]) => commands.map((command) => [command.name, command] as const)

/** What is wrong with an end that should be an answer with what is unknown in it, or a refusal that says so. */
function faultsOf({ code, stdout, stderr }: Ended): readonly string[] {
  return [
    ...(code === 0 || code === 4 ? [] : [`ended with ${code}: ${stderr}`]),
    // a stack trace is a defect of ours, and so is what JavaScript writes for nothing
    ...(`${stdout}${stderr}`.match(/\n {4}at .*|undefined|NaN|\[object/g) ?? []),
    ...(code === 0 || /^error: .*(may not|cannot|expired)/.test(stderr) ? [] : [`does not say why: ${stderr}`]),
  ]
}

describe.each([
  ['forbidden', forbidden],
  ['refused as unauthorized', expired],
])('With everything %s', (_, refuse) => {
  test.each(named(remote))('%s says what it may not do, and its help has the exit code', async (name, command) => {
    const { tool, run } = await exampleCluster()
    tool.answer(() => true, refuse)
    const ended = await run(command.example)
    expect({ name, faults: faultsOf(ended) }).toEqual({ name, faults: [] })
    expect([...exitCodesOf(command).keys()]).toContain(ended.code)
  })
})

test.each(named(remote.filter(isReader)))('%s does without each single thing that it reads', async (_, command) => {
  const first = await exampleCluster()
  expect(await first.run(command.example)).toMatchObject({ code: 0 })
  const kinds = new Set(first.tool.sent.map(({ path }) => kindOf(path)))
  for (const kind of kinds) {
    const { tool, run } = await exampleCluster()
    tool.answer(({ path }) => kindOf(path) === kind, forbidden)
    expect({ kind, faults: faultsOf(await run(command.example)) }).toEqual({ kind, faults: [] })
  }
})

/** The last plural in a path. */
const kindOf = (path: string): string =>
  path.split('/').findLast((part) => /^(?!v1)[a-z]+s$|^log$/.test(part) && part !== 'apis') ?? path
