import { expect, test } from 'vitest'
import { actText, endText, type RunReport } from './report.ts'

test('an act is a word and its name, with the end of the output below, and nothing that a terminal would obey', () => {
  expect(actText({ name: 'apply', outcome: 'passed', detail: '' })).toBe('passed      apply\n')
  const detail = `${Array.from({ length: 30 }, (_, index) => `line ${index}`).join('\n')}\u001b[31mred\n`
  const lines = actText({ name: 'apply', outcome: 'failed', detail }).split('\n')
  expect(lines.slice(0, 3)).toEqual(['failed      apply', '    …', '    line 10'])
  expect(lines.at(-2)).toBe('    line 29red')
})

test('the end has what is left behind and the verdict as text, of one stage under its name', () => {
  const report: RunReport = {
    package: 'p',
    version: '2.0.0',
    from: '1.0.0',
    isOk: false,
    hasUninstall: true,
    acts: [
      { name: 'a', outcome: 'warning', detail: '' },
      { name: 'b', outcome: 'not-killed', detail: '' },
    ],
    leftBehind: [{ kind: 'file', name: '/etc/x', change: 'added' }],
    ignored: [{ kind: 'unit', name: 'y.timer', change: 'added' }],
  }
  expect(endText(report)).toBe(
    '    added    file /etc/x\n' +
      'life of p 2.0.0, upgraded from 1.0.0: failed, 1 warning, 1 stage too short to be killed, ' +
      '1 left behind, 1 ignored\n',
  )
  const clean = { ...report, isOk: true, acts: [], leftBehind: [], hasUninstall: false }
  expect(endText({ ...clean, ignored: [], only: 'config' })).toBe('config of p 2.0.0, upgraded from 1.0.0: passed\n')
  expect(endText(clean)).toContain('no uninstall stage: what the package leaves behind was not checked\n')
})
