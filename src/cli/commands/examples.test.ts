/** What holds for every command there is: its help, its example, and the schema of its documents. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { schemaErrors, schemaFiles, schemaOf, writesJson } from '../../../test/kit/pages/document-schemas.ts'
import { commandsWithSockets, exampleCluster } from '../../../test/kit/tool/example-cluster.ts'
import { runTool } from '../../../test/kit/tool/run-tool.ts'
import { connectionFlags, generalFlags, longName } from '../base/framework/flags.ts'
import { exitCodeTexts } from '../base/framework/command-error.ts'
import { exitCodesOf, parseCall } from '../base/framework/parse.ts'
import { allCommands } from './all.ts'

const named = allCommands.map((command) => [command.name, command] as const)
/**
 * `package run` boots a host: test/host/package-run.test.ts runs its example and judges its JSON.
 * examples.integration.test.ts does the same with commands that open sockets.
 */
const namedWithoutHost = named.filter(([name]) => name !== 'package run' && !commandsWithSockets.includes(name))
const page = readFileSync(join(import.meta.dirname, '../../../docs/usage/cli.md'), 'utf8')

describe('Every command:', () => {
  test.each(named)('the help of %s says what it does, with an example and its exit codes', async (name, command) => {
    const { code, stdout } = await runTool([...name.split(' '), '--help'])
    expect(code).toBe(0)
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(command.summary)
    for (const example of [command.example, ...(command.otherExamples ?? [])])
      expect(stdout).toContain(`  ${example}\n`)
    const [, codes = ''] = stdout.split('Exit codes:\n')
    const lines = codes.trimEnd().split('\n')
    expect(lines.map((line) => line.trim().replace(/ +/, ' '))).toEqual(
      [...exitCodesOf(command)].map(([number, text]) => `${number} ${text}`),
    )
    expect(command.example.startsWith(`kubectl skyhook ${name}`)).toBe(true)
    expect(command.summary).toMatch(/^[a-z].*[^.]$/)
  })

  test.each(named.flatMap(([, { otherExamples = [] }]) => otherExamples))(
    '"%s" is a call that the tool takes',
    (call) => {
      const argv = call.replace('kubectl skyhook ', '').split(' ')
      expect(parseCall(argv, allCommands).outcome).toBe('call')
    },
  )

  test.each(named.filter(([, { isAction }]) => isAction !== true))(
    '%s refuses --dry-run, because it would do the same with it',
    async (_, { example }) => {
      const { tool, run } = await exampleCluster()
      for (const flag of ['--dry-run', '--dry-run=server'])
        expect(await run(example, flag)).toMatchObject({ code: 2, stderr: expect.stringContaining('--dry-run') })
      expect(tool.sent).toEqual([])
    },
  )

  test.each(namedWithoutHost)('the example of %s works', async (name, { example }) => {
    const { run } = await exampleCluster()
    expect({ name, ...(await run(example)) }).toMatchObject({ name, code: 0 })
  })

  test.each(namedWithoutHost.filter(([, command]) => writesJson(command)))(
    'the JSON of %s is as its schema says, and YAML says the same',
    async (_, command) => {
      const { code, stdout } = await (await exampleCluster()).run(command.example, '-o json')
      expect(code).toBe(0)
      expect(schemaErrors(schemaOf(command), JSON.parse(stdout))).toEqual([])
      if (command.formats?.includes('yaml') !== true) return
      const yaml = await (await exampleCluster()).run(command.example, '-o yaml')
      expect(parse(yaml.stdout)).toEqual(JSON.parse(stdout))
    },
  )
})

test('every schema is of some command', () => {
  expect(schemaFiles.toSorted()).toEqual([...new Set(allCommands.filter(writesJson).map(schemaOf))].toSorted())
})

test('a schema refuses what a command does not write', () => {
  const items = [{ component: 'skyhookd', version: '1.4.0' }]
  const document = { apiVersion: 'cli.skyhookd/v1', kind: 'VersionList', items }
  expect(schemaErrors('version.json', document)).toEqual([])
  for (const wrong of [
    { ...document, kind: 'Version' },
    { ...document, items: [{ version: '1.4.0' }] },
    { ...document, items: [{ ...items[0], age: 3 }] },
    { ...document, items: null },
  ])
    expect(schemaErrors('version.json', wrong)).not.toEqual([])
})

describe('docs/usage/cli.md', () => {
  test.each(named)('the page names %s', (name) => {
    expect(page).toMatch(new RegExp(`\\| [^|\n]*\`${name}[ \`]`))
  })

  test.each(Object.entries(exitCodeTexts))('the page says what exit code %s means, as the help does', (code, text) => {
    expect(page.replaceAll('`', '')).toContain(`| ${code} | ${text.replaceAll('`', '')} |`)
  })

  test('the page names every flag that all commands have', () => {
    const flags = Object.keys({ ...generalFlags, ...connectionFlags }).map((key) => `\`--${longName(key)}`)
    expect(flags.filter((flag) => !page.includes(flag))).toEqual([])
  })
})
