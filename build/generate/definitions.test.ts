import { expect, test } from 'vitest'
import { definitionsOfFiles } from './definitions.ts'

test('the command-line tool has the schema of each kind, without the status', () => {
  expect(definitionsOfFiles().map(({ kind }) => kind)).toEqual(['DeploymentPolicy', 'Skyhook'])
  for (const { schema } of definitionsOfFiles())
    expect(Object.keys(schema.properties ?? {})).toEqual(['apiVersion', 'kind', 'metadata', 'spec'])
})
