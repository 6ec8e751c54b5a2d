import { expect, test } from 'vitest'
import type { KubeTransport } from '../../kube/transport.ts'
import { measureAnswers } from './answer-time.ts'

function start() {
  let nowMs = 0
  const answers: { resolve(value: unknown): void; reject(error: Error): void }[] = []
  const json = (() => new Promise((resolve, reject) => answers.push({ resolve, reject }))) as KubeTransport['json']
  const time = measureAnswers({ json } as KubeTransport, { monotonicMs: () => nowMs })
  const send = (method: 'GET' | 'POST'): void => void time.transport.json(method, '/').catch(() => undefined)
  const pass = (ms: number): void => void (nowMs += ms)
  const answer = async (error?: Error): Promise<void> => {
    const next = answers.shift()
    if (error) next?.reject(error)
    else next?.resolve({})
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { time, send, pass, answer }
}

test('The time of an answer is that of a write in the last half minute.', async () => {
  const { time, send, pass, answer } = start()
  expect(time.currentMs()).toBe(0)
  send('POST')
  pass(300)
  await answer()
  pass(29_000)
  expect(time.currentMs()).toBe(300)
  pass(1_000)
  expect(time.currentMs()).toBe(0)
})

test('Of several writes, the slowest one counts.', async () => {
  const { time, send, pass, answer } = start()
  for (const tookMs of [5, 800, 5]) {
    send('POST')
    pass(tookMs)
    await answer()
  }
  expect(time.currentMs()).toBe(800)
})

test('A write that is not answered yet counts with the time that it has taken so far.', async () => {
  const { time, send, pass, answer } = start()
  send('POST')
  pass(2_000)
  send('POST')
  expect(time.currentMs()).toBe(2_000)
  await answer()
  await answer()
  pass(30_000)
  expect(time.currentMs()).toBe(0)
})

test('A write that fails was answered, too.', async () => {
  const { time, send, pass, answer } = start()
  send('POST')
  pass(40)
  await answer(new Error('refused'))
  expect(time.currentMs()).toBe(40)
})

test('Reads do not count: a LIST of many objects takes long on a fast API server.', async () => {
  const { time, send, pass, answer } = start()
  send('GET')
  pass(2_000)
  expect(time.currentMs()).toBe(0)
  await answer()
  expect(time.currentMs()).toBe(0)
})
