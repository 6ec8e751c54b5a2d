/** As examples.test.ts and refusals.test.ts, of commands that open sockets. */
import { expect, onTestFinished, test } from 'vitest'
import { schemaErrors, schemaOf, writesJson } from '../../../test/kit/pages/document-schemas.ts'
import { commandsWithSockets, exampleCluster } from '../../../test/kit/tool/example-cluster.ts'
import { startFakeRegistry } from '../../../test/kit/registry/fake-registry.ts'
import { allCommands } from './all.ts'
import { faultsOf, forbidden, kindOf } from '../../../test/kit/objects/refusals.ts'

const named = allCommands
  .filter(({ name }) => commandsWithSockets.includes(name))
  .map((command) => [command.name, command] as const)

async function clusterAndRegistry() {
  const registry = await startFakeRegistry()
  onTestFinished(async () => await registry.close())
  return await exampleCluster(registry)
}

test.each(named)('the example of %s works', async (name, { example }) => {
  const { run } = await clusterAndRegistry()
  expect({ name, ...(await run(example)) }).toMatchObject({ name, code: 0 })
})

test.each(named.filter(([, command]) => writesJson(command)))(
  'the JSON of %s is as its schema says',
  async (_, command) => {
    const { code, stdout } = await (await clusterAndRegistry()).run(command.example, '-o json')
    expect(code).toBe(0)
    expect(schemaErrors(schemaOf(command), JSON.parse(stdout))).toEqual([])
  },
)

test('the dashboard does without each single thing that it reads', async () => {
  const example = 'kubectl skyhook dashboard'
  const first = await exampleCluster()
  expect(await first.run(example)).toMatchObject({ code: 0 })
  for (const kind of new Set(first.tool.sent.map(({ path }) => kindOf(path)))) {
    const { tool, run } = await exampleCluster()
    tool.answer(({ path }) => kindOf(path) === kind, forbidden)
    expect({ kind, faults: faultsOf(await run(example)) }).toEqual({ kind, faults: [] })
  }
})
