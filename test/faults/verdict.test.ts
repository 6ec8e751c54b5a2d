import { describe, expect, test } from 'vitest'
import type { Line } from '../kit/files/journal-lines.ts'
import { deviationsOf, normalize, type Outcome } from './verdict.ts'

let atMs = 0
const line = (mode: string, args = ''): Line => ({
  atMs: atMs++,
  package: 'a',
  version: '1',
  mode,
  step: 'journal.sh',
  args,
})
const baseline: Outcome = {
  node: { status: 'complete', isCordoned: false },
  files: { './flags/START': '' },
  lines: [line('apply'), line('apply-check'), line('started')],
  boots: 0,
  unknown: [],
}
const found = (change: Partial<Outcome>): Outcome => ({ ...baseline, ...change })
const [apply, check, started] = baseline.lines as [Line, Line, Line]
const unknownApply = 'Skyhook s, package a: the outcome of apply journal.sh is unknown (…); repeating it'

describe('allowed deviations', () => {
  test('an outcome equal to the undisturbed one has no deviations', () => {
    expect(deviationsOf(baseline, baseline, false)).toEqual([])
  })

  test.each<[string, Partial<Outcome>]>([
    [
      'a step that was cut off with its host and reported as unknown',
      { lines: [apply, ...baseline.lines], boots: 1, unknown: [unknownApply] },
    ],
    [
      'a step that the shutdown ended with SIGTERM',
      { lines: [apply, line('apply', 'SIGTERM'), ...baseline.lines], boots: 1 },
    ],
    ['a service that the boot started, too', { lines: [...baseline.lines, started], boots: 1 }],
  ])('a fault that ended the host allows %s', (_, change) => {
    expect(deviationsOf(found(change), baseline, true)).toEqual([])
  })

  test('a step reported as unknown may run again', () => {
    expect(
      deviationsOf(found({ lines: [apply, ...baseline.lines], unknown: [unknownApply] }), baseline, false),
    ).toEqual([])
  })
})

describe('deviations', () => {
  test.each<[string, Partial<Outcome>, boolean, string]>([
    [
      'another state of the Node',
      { node: { status: 'erroring', isCordoned: false } },
      false,
      'the Node: status is "erroring", not "complete"',
    ],
    [
      'a mark that was left behind',
      { node: { ...baseline.node, marks: ['x'] } },
      false,
      'the Node: marks is ["x"], not undefined',
    ],
    [
      'an additional file',
      { files: { ...baseline.files, './x.tmp': '' } },
      false,
      'files: ./x.tmp is "", not undefined',
    ],
    [
      'a file with other content',
      { boots: 1, files: { './flags/START': '\0' } },
      true,
      'files: ./flags/START is "\\u0000", not ""',
    ],
    [
      'a step that never ran',
      { lines: [apply, started] },
      false,
      'step: a 1 apply-check journal.sh ran 0 times, not 1',
    ],
    [
      'a step that ran again without a report',
      { lines: [apply, ...baseline.lines] },
      false,
      'step: a 1 apply journal.sh ran 2 times, not 1',
    ],
    [
      'a step that ran again without a report on a host that ended',
      { lines: [apply, ...baseline.lines], boots: 1 },
      true,
      'step: a 1 apply journal.sh ran 2 times, not 1',
    ],
    [
      'a repeated step other than the one reported as unknown',
      { lines: [...baseline.lines, check], unknown: [unknownApply] },
      false,
      'step: a 1 apply-check journal.sh ran 2 times, not 1',
    ],
    [
      'a service restarted twice',
      { lines: [...baseline.lines, started] },
      false,
      'step: a was started ran 2 times, not 1',
    ],
    ['an additional reboot', { boots: 1 }, false, 'the host booted 1 times, not 0'],
    ['a missing reboot', {}, true, 'the host booted 0 times, not 1'],
  ])('the verdict names %s', (_, change, hasHostEnded, fault) => {
    expect(deviationsOf(found(change), baseline, hasHostEnded)).toEqual([fault])
  })
})

test('normalize replaces what differs from run to run by words', () => {
  const text =
    'reboot-17 at 2026-11-20T17:16:20.299Z (1795194977.246157) for f772682c-134f-4559-be8d-0e6965c1e5f2 in ' +
    '..2026_11_20_17_15_22.ZXcOue'
  expect(normalize(text, { 'reboot-17': 'SKYHOOK' })).toBe('SKYHOOK at TIME (TIME) for UID in ..DATA')
})
