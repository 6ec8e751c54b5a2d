/** A Prometheus server on recorded series. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Labels } from '../kit/objects/exposition.ts'
import { programs, promtool } from './prometheus.ts'

const startsWithinMs = 120_000

export type QueryResult = {
  readonly labels: Labels
  /** By Unix ms. */
  readonly values: ReadonlyMap<number, number>
}

export type Server = {
  /** Evaluates the query at each step from start to end, in Unix ms. Throws with Prometheus' words. */
  queryRange(query: string, range: { startMs: number; endMs: number; stepMs: number }): Promise<readonly QueryResult[]>
  stop(): Promise<void>
}

/**
 * Serves queries on OpenMetrics text, from files in the folder. A series that was not in a scrape is not in an answer
 * for its time: OpenMetrics cannot say that a series ended, so an answer takes only samples of the last interval.
 */
export async function servePrometheus(folder: string, openMetrics: string, intervalMs: number): Promise<Server> {
  writeFileSync(join(folder, 'series.om'), openMetrics)
  await promtool(folder, 'tsdb', 'create-blocks-from', 'openmetrics', 'series.om', 'data')
  writeFileSync(join(folder, 'prometheus.yml'), 'scrape_configs: []\n')
  const port = await freePort()
  const child = spawn(
    join(programs(), 'prometheus'),
    [
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      '--storage.tsdb.retention.time=100y',
      `--query.lookback-delta=${intervalMs - 1}ms`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = `http://127.0.0.1:${port}`
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  const deadlineMs = performance.now() + startsWithinMs
  while (!(await isReady(url))) {
    if (child.exitCode === null && performance.now() < deadlineMs) await sleep(100)
    else {
      await stop()
      throw new Error(`prometheus did not start: ${errors}`)
    }
  }
  return { queryRange: (query, range) => queryRange(url, query, range), stop }
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/-/ready`)).ok
  } catch {
    return false
  }
}

type Answer =
  | { readonly status: 'success'; readonly data: { readonly result: readonly Matrix[] } }
  | { readonly status: 'error'; readonly error: string }
type Matrix = { readonly metric: Labels; readonly values: readonly (readonly [number, string])[] }

async function queryRange(
  url: string,
  query: string,
  { startMs, endMs, stepMs }: { startMs: number; endMs: number; stepMs: number },
): Promise<readonly QueryResult[]> {
  const body = new URLSearchParams({
    query,
    start: String(startMs / 1_000),
    end: String(endMs / 1_000),
    step: String(stepMs / 1_000),
  })
  const answer = (await (await fetch(`${url}/api/v1/query_range`, { method: 'POST', body })).json()) as Answer
  if (answer.status === 'error') throw new Error(`${query}: ${answer.error}`)
  return answer.data.result.map(({ metric, values }) => ({
    labels: metric,
    values: new Map(values.map(([seconds, value]) => [Math.round(seconds * 1_000), Number(value)])),
  }))
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() =>
        typeof address === 'object' && address ? resolve(address.port) : reject(new Error('no port')),
      )
    })
  })
}
