/** The chart's budget for Skyhooks that name none, from its values to what agents and people read. */
import { beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { settingsOf } from '../../src/cli/fleet/fleet-view/settings.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import { type Budget, readDefaultBudget } from '../../src/schemas/budget.ts'
import { settingsIn } from '../../src/schemas/setting-keys.ts'
import { chart, helmProgram, type Json } from './chart-cluster.ts'

let helm: (...parameters: string[]) => Promise<string>
beforeAll(async () => void (helm = await helmProgram()))

const inNamespace = ['skyhookd', chart, '--namespace', 'skyhook', '--set'] as const
const render = async (values: string): Promise<string> => await helm('template', ...inNamespace, values)
const notes = async (values: string): Promise<string> =>
  (await helm('install', '--dry-run=client', ...inNamespace, values)).replace(/^[\s\S]*\nNOTES:\n/, '')

/** The ConfigMap with the settings of the agents. */
async function settingsMap(values: string): Promise<KubeObject & { readonly data: Record<string, string> }> {
  const objects = parseAllDocuments(await render(values)).map((document) => document.toJS() as Json | null)
  const found = objects.find((one) => one?.['kind'] === 'ConfigMap' && (one['metadata'] as Json)['name'] === 'skyhookd')
  return found as unknown as KubeObject & { readonly data: Record<string, string> }
}

const at = 'defaults.interruptionBudget'

test.each<[string, Budget]>([
  ['logLevel=info', {}],
  [`${at}.count=1`, { count: 1 }],
  [`${at}.count=0`, { count: 0 }],
  [`${at}.percent=5,${at}.maxCount=2147483647`, { percent: 5, maxCount: 2_147_483_647 }],
  [`${at}.count=null,${at}.percent=5`, { percent: 5 }],
  [`${at}=null`, {}],
  ['defaults=null', {}],
])('agents and the tool read the default budget of the values %s', async (values, budget) => {
  const configMap = await settingsMap(values)
  expect(settingsOf(configMap)?.defaultBudget).toEqual(budget)
  expect(readDefaultBudget(settingsIn(configMap.data)['defaults'])).toEqual(budget)
})

test.each([
  [`${at}.count=1,${at}.percent=5`, 'has count and percent: keep one of them'],
  [`${at}.maxCount=5`, 'has maxCount without percent, which it caps'],
  [`${at}.count=-1`, '/defaults/interruptionBudget/count'],
  [`${at}.percent=101`, '/defaults/interruptionBudget/percent'],
  [`${at}.precent=5`, "'precent' not allowed"],
  [`${at}=5`, '/defaults/interruptionBudget'],
])('the values %s are refused, with the reason', async (values, why) => {
  await expect(render(values)).rejects.toThrow(why)
})

test('the notes recommend a budget where there is no default, and name the default where there is one', async () => {
  expect(await notes('logLevel=info')).toContain('--set defaults.interruptionBudget.count=1')
  const given = await notes(`${at}.percent=5`)
  expect(given).toContain('has the budget {"percent":5} (defaults.interruptionBudget)')
  expect(given).not.toContain('Give every Skyhook a budget')
})
