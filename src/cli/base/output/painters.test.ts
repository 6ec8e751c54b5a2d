import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { doctorPainter, explainPainter, statusPainter } from './painters.ts'

const screens = [
  ['status', statusPainter, 'tuning  [##++!x?.] 2 of 8 nodes complete (25%)', ['##', '++', '!', 'x', '?']],
  ['status', statusPainter, '  2 in progress, 1 erroring, 1 waiting', ['in progress', 'erroring']],
  ['status', statusPainter, '  stalled: FailedNodesHoldBudget: 1 erroring', ['stalled']],
  ['status', statusPainter, '  2 nodes StepFailed for 3m: it exited with 1', ['StepFailed']],
  ['status', statusPainter, '  2 nodes WaitingForSlot: all are taken', []],
  ['explain', explainPainter, 'slot       CLOSED    all slots are taken', ['CLOSED']],
  ['explain', explainPainter, 'agent      open', ['open']],
  ['explain', explainPainter, '                     unblock: open the door', ['unblock:']],
  ['doctor', doctorPainter, 'agents       ERROR    3 nodes', ['ERROR']],
  ['doctor', doctorPainter, 'agents       ok       3 nodes', ['ok']],
  ['doctor', doctorPainter, '                      warning slot-old: ok', ['warning']],
] as const

test.each(screens)('%s colors words that have the meaning without it: %3$j of %2$s', (_, paint, line, colored) => {
  const text = paint(line)
  expect(stripVTControlCharacters(text)).toBe(line)
  // oxlint-disable-next-line no-control-regex -- that is what color is made of
  expect([...text.matchAll(/\u001B\[\d+m(.*?)\u001B\[0m/g)].map(([, found]) => found)).toEqual(colored)
})
