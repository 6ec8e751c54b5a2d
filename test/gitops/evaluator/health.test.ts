/** What Argo CD's and Flux's languages make of our health checks, and what kstatus makes of our conditions. */
import { spawnSync } from 'node:child_process'
import { beforeAll, expect, test } from 'vitest'
import { goProgram } from '../../../build/go-program.ts'
import { healthCheckExpressions, healthScript } from '../checks.ts'
import { readFixture, recordedNames, recordedRollout } from '../phases.ts'
import type { RecordedObject } from '../recorder.ts'
import { verdicts } from '../verdicts.ts'

type Evaluation = {
  readonly argocd: { readonly status: string; readonly message: string }
  readonly flux: string
  readonly kstatus: string
}

let program: string
beforeAll(async () => {
  program = await goProgram(import.meta.dirname)
}, 1_200_000)

function evaluate(
  objects: readonly RecordedObject[],
  change: { lua?: string; expressions?: object } = {},
): Evaluation[] {
  const request = { lua: healthScript(), expressions: healthCheckExpressions(), objects, ...change }
  const { status, stdout, stderr } = spawnSync(program, { input: JSON.stringify(request), encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Evaluation[]
}

test.each(recordedNames)('Argo CD, Flux and kstatus see the phase %s as the table says', (name) => {
  const [seen] = evaluate([readFixture(name)])
  const expected = verdicts[name] ?? ['-', '-', '-']
  const shown = [seen?.argocd.status, seen?.flux, seen?.kstatus]
  expect(shown.map((one, at) => (expected[at] === '-' ? '-' : one))).toEqual(expected)
})

test('a sync wave waits through a whole rollout, and never ends it', async () => {
  const seen = evaluate(await recordedRollout())
  const last = seen.pop()
  expect(last).toMatchObject({ argocd: { status: 'Healthy' }, flux: 'Current', kstatus: 'Current' })
  for (const version of seen)
    expect(version).toMatchObject({ argocd: { status: 'Progressing' }, flux: 'InProgress', kstatus: 'InProgress' })
})

test.each([
  ['failed', 'NodesErroring: 2 of 3 nodes; erroring: n2, n3 (StepFailed: package tuning 1.1.0: apply.sh ended with 1)'],
  ['complete', 'Complete: 3 of 3 nodes complete'],
  ['paused', 'Paused: 1 of 3 nodes complete; paused: n2, n3 (Paused)'],
  ['edited', 'waiting for the agents to observe the spec'],
])('Argo CD shows the message of the phase %s', (name, message) => {
  expect(evaluate([readFixture(name)])[0]?.argocd.message).toBe(message)
})

test('a health check that looks at Ready alone takes an edit that nobody has observed for healthy', () => {
  const lua = `
    for _, condition in ipairs(obj.status.conditions) do
      if condition.type == "Ready" and condition.status == "True" then return { status = "Healthy" } end
    end
    return { status = "Progressing" }`
  expect(evaluate([readFixture('edited')], { lua })[0]?.argocd.status).toBe('Healthy')
})

test('a script that needs more than the libraries of Argo CD is refused', () => {
  expect(() => evaluate([readFixture('complete')], { lua: 'return { status = string.format("Healthy") }' })).toThrow(
    'the Lua script failed',
  )
})
