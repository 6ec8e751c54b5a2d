import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { committedDefinitions, definitions } from './definitions.ts'

test('the schemas of the command-line tool are those of crds/ (otherwise run "node build/generate/definitions.ts")', () => {
  expect(JSON.parse(readFileSync(committedDefinitions, 'utf8'))).toEqual(definitions())
  expect(definitions().map(({ kind }) => kind)).toEqual(['DeploymentPolicy', 'Skyhook'])
})
