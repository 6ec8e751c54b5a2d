import { expect, test } from 'vitest'
import { known, unknown } from '../../stages/model/snapshot.ts'
import { panelEvents } from './node-answer.ts'

const event = (reason: string, atMs: number) => ({ reason, message: `${reason} happened`, atMs })

test('the panel has the five newest Events of the Node and the Skyhook together', () => {
  const node = known([event('StepFailed', 60), event('SkyhookStarted', 20), event('CordonChanged', 10)])
  const skyhook = known([event('Incomplete', 50), event('NodesErroring', 40), event('Complete', 30)])
  const { newest, unread } = panelEvents({ node, skyhook })
  expect(newest.map(({ about, reason }) => `${about} ${reason}`)).toEqual([
    'Node StepFailed',
    'Skyhook Incomplete',
    'Skyhook NodesErroring',
    'Skyhook Complete',
    'Node SkyhookStarted',
  ])
  expect(newest[0]).toEqual({ about: 'Node', reason: 'StepFailed', message: 'StepFailed happened', atMs: 60 })
  expect(unread).toEqual([])
})

const why = 'you may not read Events in namespace default'

test.each([
  ['of neither', unknown(why), unknown(why), [], [why]],
  ['of the Skyhook', known([event('StepFailed', 1)]), unknown(why), ['StepFailed'], [why]],
  ['of the Node', unknown(why), known([event('Complete', 1)]), ['Complete'], [why]],
])('Events that may not be read %s are said to be unknown, once', (_, node, skyhook, reasons, unread) => {
  const found = panelEvents({ node, skyhook })
  expect({ reasons: found.newest.map(({ reason }) => reason), unread: found.unread }).toEqual({ reasons, unread })
})
