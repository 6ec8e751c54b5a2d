import { expect, test } from 'vitest'
import type { NodeExplanation } from './explain-node.ts'
import { explanationText } from './explanation-text.ts'

const nowMs = 3_600_000
const step = { name: 'tuned', version: '1.2.0', mode: 'apply-check', path: 'check.sh', sinceMs: 0, attempt: 1 }
const explanation: NodeExplanation = {
  skyhook: 'tuning',
  node: 'node-1',
  state: 'working',
  verdict: undefined,
  gates: [],
  published: undefined,
  disagreement: undefined,
  doubt: undefined,
  step,
}

test('a step that nothing holds up comes with what ends it and what shows its output', () => {
  expect(explanationText(explanation, nowMs)).toBe(
    [
      'Skyhook tuning on node node-1: at work, nothing holds it up',
      'apply-check check.sh of tuned 1.2.0 has been running for 1h',
      '  unblock: if it hangs, end what it waits for; a stageTimeout of its package makes a longer attempt fail',
      '  run:     kubectl skyhook logs tuning --node node-1 --package tuned --stage apply --follow',
      '',
      '',
    ].join('\n'),
  )
})

test('a step that runs on a held up node is not the cause', () => {
  expect(explanationText({ ...explanation, state: 'held-up' }, nowMs)).not.toContain('if it hangs')
})
