import { expect, test } from 'vitest'
import { type Budget, budgetOf, readDefaultBudget } from './budget.ts'
import type { SkyhookSpec } from './skyhook.ts'

const twentieth = { percent: 5 }

test.each<[string, SkyhookSpec | undefined, Budget, Budget]>([
  ['without a spec', undefined, twentieth, twentieth],
  ['without a budget', {}, twentieth, twentieth],
  ['with an empty budget, as the Skyhook operator stores it,', { interruptionBudget: {} }, twentieth, twentieth],
  ['whose budget is null', { interruptionBudget: { count: null, percent: null } }, twentieth, twentieth],
  ['with an empty name of a policy', { deploymentPolicy: '' }, twentieth, twentieth],
  ['without a budget and without a default', {}, {}, {}],
  ['with a count', { interruptionBudget: { count: 3 } }, twentieth, { count: 3 }],
  ['with a count of 0', { interruptionBudget: { count: 0 } }, twentieth, { count: 0 }],
  ['with a percentage', { interruptionBudget: { percent: 100 } }, { count: 1 }, { percent: 100 }],
  [
    'with a percentage and a cap',
    { interruptionBudget: { percent: 10, count: null, maxCount: 4 } },
    twentieth,
    { percent: 10, maxCount: 4 },
  ],
  ['that names a policy', { deploymentPolicy: 'careful' }, twentieth, {}],
  ['that names a policy beside an empty budget', { deploymentPolicy: 'p', interruptionBudget: {} }, twentieth, {}],
])('a Skyhook %s has the budget that counts', (_, spec, defaultBudget, budget) => {
  expect(budgetOf(spec, defaultBudget)).toEqual(budget)
})

test('a stored budget of null takes the default', () => {
  expect(budgetOf({ interruptionBudget: null } as unknown as SkyhookSpec, twentieth)).toEqual(twentieth)
})

test.each<[unknown, Budget]>([
  [undefined, {}],
  [{}, {}],
  [{ interruptionBudget: {} }, {}],
  [{ interruptionBudget: null }, {}],
  [{ interruptionBudget: { count: 1 } }, { count: 1 }],
  [{ interruptionBudget: { count: 0, percent: null } }, { count: 0 }],
  [{ interruptionBudget: { percent: 5, maxCount: 20 } }, { percent: 5, maxCount: 20 }],
])('settings with defaults %j are read', (defaults, budget) => {
  expect(readDefaultBudget(defaults)).toEqual(budget)
})

test.each<[unknown, string]>([
  [{ count: 1, percent: 5 }, 'has count and percent: keep one of them'],
  [{ maxCount: 5 }, 'has maxCount without percent, which it caps'],
  [{ count: 1, maxCount: 5 }, 'has maxCount without percent, which it caps'],
  [{ count: -1 }, 'has count -1: it must be a whole number from 0 to 2147483647'],
  [{ count: '1' }, 'has count "1": it must be a whole number from 0 to 2147483647'],
  [{ percent: 101 }, 'has percent 101: it must be a whole number from 0 to 100'],
  [{ percent: 2.5 }, 'has percent 2.5: it must be a whole number from 0 to 100'],
  [{ percent: 5, maxCount: 0 }, 'has maxCount 0: it must be a whole number from 1 to 2147483647'],
  [{ precent: 5 }, 'has no field precent: set count or percent'],
  [5, 'must be an object, not 5'],
])('a default of %j is refused, with the reason', (interruptionBudget, why) => {
  expect(() => readDefaultBudget({ interruptionBudget })).toThrow(`defaults.interruptionBudget ${why}`)
})
