/** Texts of other programs, in Events and in the agent's own log. */
import { expect, test } from 'vitest'
import { eventsPath, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import { effectsOf, hostileTexts } from '../../../test/kit/objects/hostile-texts.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import { startEventRecorder } from '../../kube/events.ts'
import { ImageError } from '../../packages/oci/errors.ts'
import { causeOf } from '../failures/reason-of.ts'
import { errorField } from './log.ts'

test.each(Object.entries(hostileTexts))(
  'the message of an Event is bounded and without effect: %s',
  async (_, text) => {
    const { clock, connect, server, eventually } = sampleServer()
    const stop = new AbortController()
    const recorder = startEventRecorder(connect(), {
      clock,
      random: createSeededRandom(1),
      component: 'skyhookd',
      host: 'n',
      signal: stop.signal,
    })
    const regarding = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }
    recorder.record({ regarding, type: 'Warning', reason: 'StepFailed', message: `Skyhook s: ${text}` })
    await eventually(() => expect(server.objects('events')).toHaveLength(1))
    stop.abort()
    const message = String(server.objects('events')[0]?.['message'])
    expect(eventsPath).toContain('events')
    expect(effectsOf(message)).toEqual([])
    expect(message.length).toBeLessThanOrEqual(1_024)
  },
)

test.each(Object.entries(hostileTexts))('an error is a bounded cause and a bounded field of the log: %s', (_, text) => {
  for (const error of [
    new Error(text),
    new ImageError('bad-response', text),
    new Error('x', { cause: new Error(text) }),
  ]) {
    const { detail } = causeOf(error)
    expect(detail.length).toBeLessThanOrEqual(1_024)
    expect(errorField(error).error.length).toBeLessThanOrEqual(4_096)
  }
  expect(new ImageError('bad-response', text).message.length).toBeLessThanOrEqual(1_024)
  expect(effectsOf(new ImageError('bad-response', text).message)).toEqual([])
})
