/** What the census says about a Skyhook, from annotations that untrusted nodes wrote on their Nodes. */
import { expect, test } from 'vitest'
import { effectsOf, hostileTexts } from '../../../test/kit/objects/hostile-texts.ts'
import { countsOf, nodeReporting, skyhookWith } from '../../../test/kit/objects/census-objects.ts'
import { nextConditions } from './conditions.ts'

test.each(Object.entries(hostileTexts))('conditions of a Skyhook are bounded and without effect: %s', (_, text) => {
  const skyhook = skyhookWith()
  const nodes = Array.from({ length: 2 }, (_, at) =>
    nodeReporting(`n${at}`, {
      status: 'erroring',
      reason: ['StepFailed', text],
      stateText: JSON.stringify({
        'tuning|1.1.0': { name: text, version: text, image: text, stage: 'apply', state: 'erroring' },
      }),
    }),
  )
  const counts = countsOf(skyhook, nodes)
  const conditions = nextConditions({
    skyhook,
    counts,
    status: 'erroring',
    finalizer: { action: 'nothing' },
    isSpecPropagating: false,
    mayFailuresBeOld: false,
    nowMs: 0,
  })
  for (const { message } of conditions) {
    expect(effectsOf(message)).toEqual([])
    expect(message.length).toBeLessThanOrEqual(4_096)
  }
})
