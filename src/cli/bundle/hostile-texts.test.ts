/** Texts of other programs in a support archive. */
import { expect, test } from 'vitest'
import { controls, effectsOf, hostileTexts, secret, split } from '../../../test/kit/objects/hostile-texts.ts'
import { nodeStatuses, stageNames } from '../../schemas/skyhook.ts'
import { jsonText } from './archive.ts'
import { createRedactor, literalsOf } from './redact.ts'

const packages = { p: { env: [{ name: 'KEY', value: secret }], configMap: { 'license.txt': 'LICENSE-4711-0815' } } }
const redactor = createRedactor({ literals: literalsOf([{ spec: { packages } }], new Set()) })

test.each(Object.entries(controls))('the value of a variable is left out with %s between its letters', (_, control) => {
  expect(redactor.text(`exited 1: key=<${split(secret, control)}>`)).not.toContain(secret)
  const kept = redactor.object({ message: `x ${split(secret, control)} y` })
  expect(kept.message).toBe('x [left-out] y')
})

test.each(Object.entries(hostileTexts))('a document of an archive has no effect where it is printed: %s', (_, text) => {
  expect(effectsOf(jsonText(redactor.object({ message: text })))).toEqual([])
})

test('contents of configuration files are left out of messages that quote them', () => {
  expect(redactor.text('apply step.sh exited 1: LICENSE-4711-0815 is not valid')).not.toContain('4711')
})

test('text of the agents stays where a variable has the same value', () => {
  const values = [...stageNames, ...nodeStatuses, 'StepFailed']
  const env = values.map((value, at) => ({ name: `V${at}`, value }))
  const spec = { packages: { p: { env } } }
  const { text } = createRedactor({ literals: literalsOf([{ spec }], new Set()) })
  for (const value of values) expect(text(`{"stage":"${value}"}`)).toBe(`{"stage":"${value}"}`)
})
