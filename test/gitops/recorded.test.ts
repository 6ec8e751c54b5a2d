import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { argocdConfigText, fluxKustomizationText, healthCheckExpressions, healthScript } from './checks.ts'
import { fixturePath, fixtureText, recordedNames, recordedObject, recordedRollout } from './phases.ts'
import type { RecordedObject } from './recorder.ts'
import { verdicts } from './verdicts.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/usage/gitops.md'), 'utf8')
const conditionOf = ({ status }: RecordedObject, type: string): string | undefined =>
  status?.conditions?.find((condition) => condition.type === type)?.status

test.each(recordedNames)('the fixture %s is what a census leaves today', async (name) => {
  expect(readFileSync(fixturePath(name), 'utf8'), 'run `node test/gitops/phases.ts`').toBe(
    fixtureText(await recordedObject(name)),
  )
})

test('every fixture has a verdict, and every verdict a fixture', () => {
  const files = readdirSync(dirname(fixturePath('fresh'))).map((name) => name.replace('.yaml', ''))
  expect(files.toSorted()).toEqual(recordedNames.toSorted())
  expect(Object.keys(verdicts).toSorted()).toEqual(recordedNames.toSorted())
})

test('a Skyhook is Ready once in a rollout: at its end, not in the lulls between nodes, reboots and censuses', async () => {
  const versions = await recordedRollout()
  const ready = versions.map((version) => conditionOf(version, 'Ready'))
  expect(versions.length).toBeGreaterThan(12)
  expect(ready.indexOf('True')).toBe(ready.length - 1)
  for (const version of versions.slice(0, -1)) expect(conditionOf(version, 'Stalled')).not.toBe('True')
})

test('the page shows the health checks as they are', () => {
  const indented = healthScript().replaceAll(/^(?=.)/gm, '    ')
  expect(argocdConfigText).toContain(indented)
  expect(page).toContain(`\`\`\`yaml\n${withoutComment(fluxKustomizationText)}\`\`\``)
  expect(page).toContain(`\`\`\`yaml\n${withoutComment(argocdConfigText)}\`\`\``)
  expect(healthCheckExpressions().current).toContain("'Ready'")
})

test('the page has the verdict of each phase', () => {
  const rows = page.split('\n').filter((line) => /^\| [a-z].*\|$/.test(line))
  const shown = rows.map((row) => row.split(' | ').slice(1).join(' | ').replace(/ \|$/, ''))
  const ours = Object.entries(verdicts).filter(([name]) => name !== 'fresh-without-default')
  expect([...new Set(shown)].toSorted()).toEqual(
    [...new Set(ours.map(([, verdict]) => verdict.join(' | ')))].toSorted(),
  )
})

const withoutComment = (text: string): string => text.replace(/^# .*\n/, '')
