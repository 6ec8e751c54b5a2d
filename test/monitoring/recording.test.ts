import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { promtool } from './prometheus.ts'
import { createRecorder, formatOpenMetrics, readRecording, writeRecording } from './recording.ts'

const intervalMs = 30_000
const startMs = 1_700_000_010_000
const target = { node: 'node-1', instance: 'node-1:9475' }
const node = { metadata: { name: 'node-1', uid: 'u', resourceVersion: '7' } }

function sampleRecording() {
  const recorder = createRecorder('a test', intervalMs)
  recorder.addChange({ kind: 'nodes', atMs: startMs, type: 'ADDED', object: node })
  recorder.addScrape(startMs, [[target, 'a 1\nb{x="é \\"1\\""} +Inf\n']])
  recorder.addScrape(startMs + intervalMs, [[target, undefined]])
  recorder.addScrape(startMs + 2 * intervalMs, [[target, 'a 0.5\n']])
  return recorder.finish()
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'skyhookd-recording-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

test('a target that does not answer is down, and its series are not there', () => {
  const values = sampleRecording().series.map((one) => [one.name, one.values])
  expect(values).toEqual([
    ['up', [1, 0, 1]],
    ['a', [1, undefined, 0.5]],
    ['b', [Infinity, undefined, undefined]],
  ])
})

test('scrapes that are not one interval apart are refused', () => {
  const recorder = createRecorder('a test', intervalMs)
  recorder.addScrape(startMs, [])
  expect(() => recorder.addScrape(startMs + 1, [])).toThrow('is not 30000 ms after')
})

test('a recording is read as it was written, and begins with what it was recorded from', () => {
  const folder = newFolder()
  const recording = sampleRecording()
  writeRecording(folder, recording)
  const { series, history, source, scrapesAtMs, openMetrics } = readRecording(folder)
  expect(openMetrics).toMatch(/^# HELP skyhookd_recording a test\n/)
  expect([source, scrapesAtMs]).toEqual(['a test', recording.scrapesAtMs])
  expect(series.filter(({ name }) => name !== 'skyhookd_recording')).toEqual(recording.series)
  expect(history).toEqual(JSON.parse(JSON.stringify(recording.history)))
})

test('promtool makes blocks of a recording', async () => {
  const folder = newFolder()
  writeFileSync(join(folder, 'series.om'), formatOpenMetrics(sampleRecording()))
  await expect(promtool(folder, 'tsdb', 'create-blocks-from', 'openmetrics', 'series.om', 'data')).resolves.toContain(
    'ULID',
  )
})
