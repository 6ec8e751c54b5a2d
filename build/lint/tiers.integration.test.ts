import { dirname, relative } from 'node:path'
import { expect, test } from 'vitest'
import { lintFiles } from '../../test/kit/pages/lint-files.ts'

const cases: readonly [from: string, to: string, isAllowed: boolean][] = [
  ['test/e2e/some.test.ts', 'test/kit/cluster/host.ts', true],
  ['test/e2e/some.test.ts', 'test/e2e/election.ts', true],
  ['test/e2e/some.test.ts', 'test/conformance/table.ts', false],
  ['test/chaos/some.ts', 'test/promises/all.ts', true],
  ['test/promises/some.ts', 'test/kit/cluster/moments.ts', true],
  ['test/promises/some.ts', 'test/chaos/arena.ts', false],
  ['test/kit/host/some.ts', 'test/fleet/run/campaign.ts', false],
  ['test/kit/host/some.test.ts', 'test/sandbox/sandbox.ts', true],
  ['src/kube/some.test.ts', 'test/kit/virtual-clock.ts', true],
  ['src/kube/some.test.ts', 'test/cluster/cluster.ts', false],
  ['bench/some.ts', 'test/fleet/run/campaign.ts', true],
]

test('tiers of tests import from the kit and never from each other', () => {
  const text = (from: string, to: string): string =>
    `import type { X } from '${relative(dirname(from), to).replace(/^(?!\.)/, './')}'\nexport type Y = X\n`
  const names = cases.map(([from], at) => from.replace('some', `some${at}`))
  const found = lintFiles(Object.fromEntries(cases.map(([from, to], at) => [names[at] ?? '', text(from, to)])))
  for (const [at, [from, to, isAllowed]] of cases.entries()) {
    const findings = found[names[at] ?? '']?.filter((one) => one.startsWith('tiers('))
    expect(findings, `${from} → ${to}`).toHaveLength(isAllowed ? 0 : 1)
  }
})
