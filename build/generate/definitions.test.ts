import { expect, test } from 'vitest'
import { definitions } from './definitions.ts'

test('the command-line tool has the schema of each kind, without the status', () => {
  expect(definitions().map(({ kind }) => kind)).toEqual(['DeploymentPolicy', 'Skyhook'])
  for (const { schema } of definitions())
    expect(Object.keys((schema as { properties: object }).properties)).toEqual([
      'apiVersion',
      'kind',
      'metadata',
      'spec',
    ])
})
