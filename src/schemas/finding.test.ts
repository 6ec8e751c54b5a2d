import { expect, test } from 'vitest'
import { type Examined, type Finding, formatFindings, hasErrors } from './finding.ts'

const unknownField: Finding = {
  severity: 'error',
  file: 'a,b.yaml',
  line: 7,
  pointer: '/spec/pause',
  value: true,
  message: 'is not known: 100%',
  rule: 'schema/unknown-field',
  remedy: 'remove it',
}
const stray: Finding = {
  severity: 'warning',
  file: 'p/config.json',
  pointer: '',
  message: 'works; remove it',
  rule: 'stray',
  remedy: 'remove it',
}
const examined: Examined[] = [
  { subject: 'p', kind: 'package', findings: [stray] },
  { subject: 'a,b.yaml', kind: 'Skyhook', findings: [unknownField] },
]

test('findings for people name severity, place, value, rule and remedy, errors first and warnings apart', () => {
  expect(formatFindings(examined, 'text')).toBe(
    [
      'error: a,b.yaml:7 /spec/pause = true: is not known: 100% [schema/unknown-field]',
      '    to fix it: remove it',
      'warning: p/config.json: works; remove it [stray]',
      'p: package is valid (0 errors, 1 warning)',
      'a,b.yaml: Skyhook is invalid (1 error, 0 warnings)',
      '',
    ].join('\n'),
  )
})

test('findings for GitHub are workflow commands with everything escaped that would end them', () => {
  expect(formatFindings(examined, 'github')).toBe(
    [
      '::error file=a%2Cb.yaml,line=7,title=schema/unknown-field::' +
        '/spec/pause = true: is not known: 100%25%0ATo fix it: remove it',
      '::warning file=p/config.json,title=stray::works; remove it',
      '',
    ].join('\n'),
  )
})

test('findings for programs say what was examined, even where nothing was found', () => {
  const clean: Examined = { subject: 'q', kind: 'package', findings: [] }
  expect(JSON.parse(formatFindings([...examined, clean], 'json'))).toEqual({
    apiVersion: 'cli.skyhookd/v1',
    kind: 'FindingList',
    valid: false,
    examined: [
      { subject: 'p', kind: 'package', errors: 0, warnings: 1 },
      { subject: 'a,b.yaml', kind: 'Skyhook', errors: 1, warnings: 0 },
      { subject: 'q', kind: 'package', errors: 0, warnings: 0 },
    ],
    items: [unknownField, stray],
  })
  expect(JSON.parse(formatFindings([clean], 'json'))).toMatchObject({ valid: true, items: [] })
})

test('findings that are only warnings are not errors', () => {
  expect(hasErrors(examined)).toBe(true)
  expect(hasErrors(examined.slice(0, 1))).toBe(false)
})
