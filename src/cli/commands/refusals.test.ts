/** What a caller may not read is unknown or refused with a message in every command: never a crash, never a zero. */
import { describe, expect, test } from 'vitest'
import { commandsWithSockets, exampleCluster } from '../../../test/kit/tool/example-cluster.ts'
import { faultsOf, forbidden, kindOf } from '../../../test/kit/objects/refusals.ts'
import { ApiError } from '../../kube/errors.ts'
import type { Command } from '../base/framework/command.ts'
import { exitCodesOf } from '../base/framework/parse.ts'
import { allCommands } from './all.ts'

const expired = (): never => {
  throw new ApiError({ status: 401, reason: 'Unauthorized', message: 'the token has expired' })
}

const remote = allCommands.filter(({ isLocal }) => isLocal !== true)
/** examples.integration.test.ts has those that open sockets. */
const isReader = ({ name, isAction }: Command): boolean => isAction !== true && !commandsWithSockets.includes(name)
const named = (commands: readonly Command[]) => commands.map((command) => [command.name, command] as const)

describe.each([
  ['forbidden', forbidden],
  ['refused as unauthorized', expired],
])('With everything %s', (_, refuse) => {
  test.each(named(remote))('%s names the missing permission, and its help has the exit code', async (name, command) => {
    const { tool, run } = await exampleCluster()
    tool.answer(() => true, refuse)
    const ended = await run(command.example)
    expect({ name, faults: faultsOf(ended) }).toEqual({ name, faults: [] })
    expect([...exitCodesOf(command).keys()]).toContain(ended.code)
  })
})

test.each(named(remote.filter(isReader)))('%s works without any single object that it reads', async (_, command) => {
  const first = await exampleCluster()
  expect(await first.run(command.example)).toMatchObject({ code: 0 })
  const kinds = new Set(first.tool.sent.map(({ path }) => kindOf(path)))
  for (const kind of kinds) {
    const { tool, run } = await exampleCluster()
    tool.answer(({ path }) => kindOf(path) === kind, forbidden)
    expect({ kind, faults: faultsOf(await run(command.example)) }).toEqual({ kind, faults: [] })
  }
})
