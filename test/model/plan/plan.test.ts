import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runsOf, seedOf } from '../../kit/effort.ts'
import { planCase } from './case.ts'
import { judge, type Verdict } from './judge.ts'

/**
 * What `kubectl skyhook plan` foretells is what the node then does: stages, their order, interrupts and drains, none
 * more and none less. States come from random lives; the plan is made through the tool's own reading of the API.
 */
const seed = seedOf(20_260_601)
const runs = runsOf(60, 5_000)

/** More of them would tell nobody more. */
const maxWrong = 5

/** The cases one by one: each is repeated by its number among those of its seed. */
const cases = fc.sample(planCase, { numRuns: runs, seed })

test('a node does what its plan foretold of an edit', { timeout: 3_600_000 }, async () => {
  const verdicts: Verdict[] = []
  const wrong: string[] = []
  for (const [at, one] of cases.entries()) {
    if (wrong.length >= maxWrong) break
    const verdict = await judge(one)
    verdicts.push(verdict)
    if (verdict.verdict !== 'wrong') continue
    const again = `SEARCH_SEED=${seed} SEARCH_RUNS=${at + 1} vitest run --project model test/model/plan/plan.test.ts`
    wrong.push([`seed ${seed}, case ${at}: ${verdict.why}`, verdict.report, again].join('\n'))
  }
  expect(wrong.join('\n\n')).toBe('')
  // a search that judges nothing proves nothing
  const judged = verdicts.filter((one) => one.verdict === 'right' && one.deeds > 0)
  expect(judged.length).toBeGreaterThan(runs / 3)
})
