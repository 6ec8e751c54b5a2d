import { expect, test } from 'vitest'
import { lintFiles } from '../../test/kit/pages/lint-files.ts'

const long = 'x'.repeat(120)

/** Rule, file, what it refuses and what it lets pass. */
const samples: readonly [rule: string, path: string, refused: string, allowed: string][] = [
  ['constants', 'some.ts', 'export const MAX_LINKS = 40', 'export const maxLinks = 40'],
  ['infinity', 'some.ts', 'export const a = Number.POSITIVE_INFINITY', 'export const a = Infinity'],
  ['inherited', 'some.ts', 'export const f = (a: any, b: any) => a in b', "export const f = (a: any) => 'code' in a"],
  [
    'discards',
    'some.ts',
    'export const f = ({ a: _, ...rest }: any) => rest',
    'export const f = ({ a, ...rest }: any) => [a, rest]',
  ],
  [
    'starts',
    'some.ts',
    'export function createA(clock: any) { clock.startTimer(1, () => {}) }',
    'export function createA(clock: any) { return { start: () => clock.startTimer(1, () => {}) } }',
  ],
  [
    'starts',
    'some.ts',
    'export const createA = (bus: any) => { bus.connect() }',
    'export const openA = (bus: any) => { bus.connect() }',
  ],
  ['reexports', 'some.ts', "export { a } from './other.ts'", "export { a } from './other.ts'\nexport const b = 1"],
  ['line-length', 'some.ts', `// ${long}`, `// https://example.com/${long}`],
  ['line-length', 'some.ts', `export const a = '${long}'`, "export const a = 'short'"],
  ['line-length', 'some.ts', `export const a = \`${long}\``, `export const a = \`\n${long}\``],
  ['line-length', 'some.test.ts', `// ${long}`, `test('a ${long}', () => {})`],
  ['titles', 'some.test.ts', "test('of a package completes', () => {})", "test('a package completes', () => {})"],
  ['titles', 'some.test.ts', "test('is refused: %s', () => {})", "test('a file is refused: %s', () => {})"],
  ['titles', 'some.test.ts', "test.each([1])('is refused: %s', () => {})", "test.each([1])('%s is refused', () => {})"],
  [
    'titles',
    'some.test.ts',
    "test('after a crash of the agent', () => {})",
    "test('after a crash, the agent continues', () => {})",
  ],
  ['titles', 'some.test.ts', 'test(`with ${1} node`, () => {})', 'test(`${1} node is enough`, () => {})'],
]

test('each rule of the dialect refuses what it is for and nothing else', () => {
  const pathOf = (kind: string, index: number, path: string): string => `${kind}/${index}/src/daemon/${path}`
  const found = lintFiles(
    Object.fromEntries(
      samples.flatMap(([, path, refused, allowed], index) => [
        [pathOf('refused', index, path), refused],
        [pathOf('allowed', index, path), allowed],
      ]),
    ),
  )
  for (const [index, [rule, path, refused, allowed]] of samples.entries()) {
    const findings = (kind: string): number =>
      (found[pathOf(kind, index, path)] ?? []).filter((one) => one.startsWith(`dialect(${rule})`)).length
    expect(findings('refused'), refused).toBe(1)
    expect(findings('allowed'), allowed).toBe(0)
  }
})

test('a module is imported by one statement', () => {
  const text = "import { a } from './a.ts'\nimport type { B } from './a.ts'\nexport const c: B = a\n"
  expect(lintFiles({ 'src/x.ts': text })['src/x.ts']?.join('\n')).toContain('no-duplicates')
})
