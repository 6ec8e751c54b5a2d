/** A real API server's answers to invalid Skyhooks, which should not reach a node. */
import { describe, expect, test } from 'vitest'
import { useDefinitions, wording } from './definitions.ts'
import { refusedSkyhooks } from '../kit/objects/refused-skyhooks.ts'

const definitions = useDefinitions()

describe('a refused Skyhook', () => {
  test.each(refusedSkyhooks)('the API server refuses a Skyhook with %s', async (_, spec, words) => {
    const answer = await definitions.create('skyhooks', spec)
    expect(wording(answer.message)).toContain(wording(words))
    expect(answer.status).toBeOneOf([400, 422])
  })

  test('the API server refuses a Skyhook with a name of 54 characters', async () => {
    const { message } = await definitions.create('skyhooks', {}, 'n'.repeat(54))
    expect(message).toContain('metadata.name has 54 characters; use at most 53')
  })
})
