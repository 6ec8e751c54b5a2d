/**
 * What was recorded of a cluster over time: all series of all agents, as Prometheus would have scraped them, and the
 * history of the objects that they tell of. On disk it is `series.om.zst` (OpenMetrics with timestamps, for
 * `promtool tsdb create-blocks-from openmetrics`) and `history.jsonl.zst`, one change of an object per line. Both begin
 * with what they were recorded from.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { KubeObject } from '../../src/kube/objects.ts'
import { formatLabels, formatValue, type Labels, parseExposition } from '../kit/objects/exposition.ts'

/** Of the series, beside their own labels, as the PodMonitor of the chart adds them. */
export type Target = { readonly node: string; readonly instance: string }

export type RecordedKind = 'nodes' | 'leases' | 'skyhooks' | 'pods'
/** The first ones are the objects that were there when the recording started. */
export type RecordedChange = {
  readonly kind: RecordedKind
  readonly atMs: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: KubeObject
}

/** Values at the times of the scrapes; undefined where the series was not there. */
export type Series = {
  readonly name: string
  readonly labels: Labels
  readonly values: readonly (number | undefined)[]
}

export type Recording = {
  /** What it was recorded from. */
  readonly source: string
  /** Unix ms, one interval apart. */
  readonly scrapesAtMs: readonly number[]
  readonly intervalMs: number
  readonly series: readonly Series[]
  readonly history: readonly RecordedChange[]
}

export type Recorder = {
  /** One round of scrapes; undefined is the answer of a target that did not answer. */
  addScrape(atMs: number, answers: readonly (readonly [Target, string | undefined])[]): void
  addChange(change: RecordedChange): void
  finish(): Recording
}

const job = 'skyhookd'

/** Collects a recording. Scrapes come in order, one interval apart. */
export function createRecorder(source: string, intervalMs: number): Recorder {
  const scrapesAtMs: number[] = []
  const series = new Map<string, { name: string; labels: Labels; values: (number | undefined)[] }>()
  const history: RecordedChange[] = []

  function add(name: string, labels: Labels, value: number): void {
    const key = `${name}${formatLabels(labels)}`
    const known = series.get(key) ?? { name, labels, values: [] }
    series.set(key, known)
    known.values[scrapesAtMs.length - 1] = value
  }

  return {
    addScrape(atMs, answers) {
      const last = scrapesAtMs.at(-1)
      if (last !== undefined && atMs !== last + intervalMs)
        throw new Error(`a scrape at ${atMs} is not ${intervalMs} ms after the one at ${last}`)
      scrapesAtMs.push(atMs)
      for (const [{ node, instance }, text] of answers) {
        const place = { job, node, instance }
        add('up', place, text === undefined ? 0 : 1)
        for (const { name, labels, value } of parseExposition(text ?? '')) add(name, { ...labels, ...place }, value)
      }
    },
    addChange: (change) => void history.push({ ...change, object: trimmed(change) }),
    finish: () => ({
      source,
      scrapesAtMs,
      intervalMs,
      series: [...series.values()].map((one) => ({
        ...one,
        values: Array.from({ length: scrapesAtMs.length }, (_, index) => one.values[index]),
      })),
      history,
    }),
  }
}

type Fields = Readonly<Record<string, unknown>>

/** Nothing that no series tells of: images, addresses, managed fields. */
function trimmed({ kind, object }: RecordedChange): KubeObject {
  const { name, namespace, uid, resourceVersion, generation, deletionTimestamp, labels, annotations } = object.metadata
  const { spec = {}, status = {} } = object as { readonly spec?: Fields; readonly status?: Fields }
  const metadata = { name, namespace, uid, resourceVersion, generation, deletionTimestamp, labels, annotations }
  const kept = ((): { readonly spec: unknown; readonly status?: unknown } => {
    switch (kind) {
      case 'nodes':
        return { spec, status: { nodeInfo: { bootID: (status['nodeInfo'] as Fields | undefined)?.['bootID'] } } }
      case 'pods':
        return {
          spec: { nodeName: spec['nodeName'] },
          status: { phase: status['phase'], conditions: status['conditions'] },
        }
      case 'leases':
      case 'skyhooks':
        return { spec, status }
    }
  })()
  return JSON.parse(JSON.stringify({ metadata, ...kept })) as KubeObject
}

const seriesFile = 'series.om.zst'
const historyFile = 'history.jsonl.zst'

/** Series as OpenMetrics text. The first line says what they were recorded from. */
export function formatOpenMetrics({ source, intervalMs, scrapesAtMs, series }: Recording): string {
  const about = 'skyhookd_recording'
  const lines = [`# HELP ${about} ${source.replaceAll('\n', ' ')}`, `# TYPE ${about} gauge`]
  const addAll = (name: string, labels: Labels, values: Series['values']): void => {
    for (const [index, value] of values.entries())
      if (value !== undefined)
        lines.push(`${name}${formatLabels(labels)} ${formatValue(value)} ${(scrapesAtMs[index] ?? 0) / 1_000}`)
  }
  addAll(
    about,
    { interval: `${intervalMs}ms` },
    scrapesAtMs.map(() => 1),
  )
  for (const { name, labels, values } of series) addAll(name, labels, values)
  return `${lines.join('\n')}\n# EOF\n`
}

/** Writes both files into the folder. */
export function writeRecording(folder: string, recording: Recording): void {
  const { source, scrapesAtMs, intervalMs, history } = recording
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, seriesFile), zstdCompressSync(formatOpenMetrics(recording)))
  const lines = [{ source, intervalMs, scrapes: scrapesAtMs.length, firstAtMs: scrapesAtMs[0] }, ...history]
  writeFileSync(join(folder, historyFile), zstdCompressSync(lines.map((one) => `${JSON.stringify(one)}\n`).join('')))
}

type Header = {
  readonly source: string
  readonly intervalMs: number
  readonly scrapes: number
  readonly firstAtMs: number
}

/** Reads what `writeRecording` wrote. Throws if the files do not belong together. */
export function readRecording(folder: string): Recording & { readonly openMetrics: string } {
  const openMetrics = zstdDecompressSync(readFileSync(join(folder, seriesFile))).toString()
  const [first = '', ...rest] = zstdDecompressSync(readFileSync(join(folder, historyFile)))
    .toString()
    .trimEnd()
    .split('\n')
  const { source, intervalMs, scrapes, firstAtMs } = JSON.parse(first) as Header
  if (!openMetrics.startsWith(`# HELP skyhookd_recording ${source}\n`))
    throw new Error(`${folder}: ${seriesFile} and ${historyFile} are of different recordings`)
  const scrapesAtMs = Array.from({ length: scrapes }, (_, index) => firstAtMs + index * intervalMs)
  const series = new Map<string, { name: string; labels: Labels; values: (number | undefined)[] }>()
  for (const line of openMetrics.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const end = line.lastIndexOf(' ')
    const index = Math.round((Number(line.slice(end + 1)) * 1_000 - firstAtMs) / intervalMs)
    const key = line.slice(0, line.lastIndexOf(' ', end - 1))
    let one = series.get(key)
    if (one === undefined) {
      const [{ name, labels } = { name: '', labels: {} }] = parseExposition(`${key} 0`)
      series.set(key, (one = { name, labels, values: Array.from({ length: scrapes }, () => undefined) }))
    }
    one.values[index] = Number(line.slice(key.length + 1, end).replace('Inf', 'Infinity'))
  }
  const history = rest.map((line) => JSON.parse(line) as RecordedChange)
  return { source, intervalMs, scrapesAtMs, series: [...series.values()], history, openMetrics }
}
