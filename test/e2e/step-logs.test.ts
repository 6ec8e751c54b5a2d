/** The output of steps, as a person without access to hosts reads it with the tool: live, over restarts, and later. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { deleteAgent, killAgent } from '../kit/cluster/agents.ts'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { manifest, publishedState, shellscript } from '../kit/cluster/skyhooks.ts'

const cluster = useCluster()
const name = uniqueName('logs')
const node = 'node-1'
const other = 'node-2'
const secret = 'geheim-of-a-step'
const main = join(import.meta.dirname, '../../src/cli/main.ts')

/** Writes the time five times a second, a secret in two pieces, and ends once the file is there. */
const script = `i=0
printf 'secret %s' "$(printf %s "$TOKEN" | cut -c1-6)"; sleep 1; printf '%s\\n' "$(printf %s "$TOKEN" | cut -c7-)"
until [ -e /var/tmp/${name}.go ]; do i=$((i+1)); echo "tick $i $(date +%s%3N)"; sleep 0.2; done
echo done >&2
`

/** `time`: when the agent logged it. */
type Line = { readonly what: string; readonly time: string; readonly text?: string; readonly arrivedAtMs: number }

function tool(...args: readonly string[]): ChildProcess {
  const argv = [main, ...args, '--kubeconfig', cluster.kubeconfig]
  return spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
}

async function answer(...args: readonly string[]): Promise<string> {
  let text = ''
  const child = tool(...args)
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await new Promise((resolve) => child.once('close', resolve))
  return text
}

const lines: Line[] = []
let following: ChildProcess
type Tick = { readonly number: number; readonly loggedAfterMs: number; readonly shownAfterMs: number }
const ticks = (): Tick[] =>
  lines.flatMap(({ text = '', time, arrivedAtMs }) => {
    const [, number, writtenAtMs] = /^tick (\d+) (\d+)$/.exec(text) ?? []
    if (number === undefined) return []
    const since = (ms: number): number => ms - Number(writtenAtMs)
    return [{ number: Number(number), loggedAfterMs: since(Date.parse(time)), shownAfterMs: since(arrivedAtMs) }]
  })

/** Where a line is missing or comes again: its number and the one before it. */
const outOfOrder = (): { readonly number: number; readonly after: number }[] => {
  const numbers = ticks().map(({ number }) => number)
  return numbers.flatMap((number, index) => {
    const after = numbers[index - 1] ?? 0
    return number === after + 1 ? [] : [{ number, after }]
  })
}

async function untilTicks(count: number): Promise<void> {
  await expect.poll(() => ticks().length, { timeout: 90_000, interval: 100 }).toBeGreaterThanOrEqual(count)
}

beforeAll(async () => {
  await cluster.api.json('POST', '/api/v1/namespaces/skyhook/secrets', {
    body: { metadata: { name }, stringData: { token: secret } },
  })
  const env = [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name, key: 'token' } } }]
  const packages = { writer: shellscript(cluster.registry, { apply: script, config: 'exit 0' }, { env }) }
  await cluster.apply(manifest(name, { packages }), node, other)
  following = tool('logs', name, '--node', node, '-f', '-o', 'json')
  let rest = ''
  following.stdout?.on('data', (chunk: Buffer) => {
    const arrivedAtMs = Date.now()
    const parts = (rest + chunk.toString()).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) lines.push({ ...(JSON.parse(part) as Line), arrivedAtMs })
  })
})
afterAll(async () => {
  following.kill('SIGKILL')
  await cluster.api.json('DELETE', `/api/v1/namespaces/skyhook/secrets/${name}`)
})

test('what a running step writes is on the screen within a second', async () => {
  await untilTicks(5)
  const before = ticks().length
  await untilTicks(before + 50)
  const figuresOf = (delay: (tick: Tick) => number): { median: number; longest: number } => {
    const sorted = ticks()
      .slice(before)
      .map(delay)
      .sort((a, b) => a - b)
    return { median: sorted[sorted.length >> 1] ?? Infinity, longest: sorted.at(-1) ?? Infinity }
  }
  const shown = figuresOf(({ shownAfterMs }) => shownAfterMs)
  console.info(
    'in the log and on the screen after ms:',
    figuresOf(({ loggedAfterMs }) => loggedAfterMs),
    shown,
  )
  expect(shown.median).toBeLessThan(1_000)
})

test('a secret in two pieces is not shown', () => {
  expect(lines.filter(({ text }) => text?.startsWith('secret')).map(({ text }) => text)).toEqual(['secret ***'])
})

test('a replaced agent continues, and no line is lost or shown twice', async () => {
  await deleteAgent(cluster, node)
  const before = ticks().length
  await untilTicks(before + 20)
  expect(outOfOrder()).toEqual([])
})

test('an agent whose container is started again continues, and the log before that is there with --previous', async () => {
  const { number: before } = ticks().at(-1) ?? { number: 0 }
  await killAgent(cluster, node)
  const last = ticks().length
  await untilTicks(last + 20)
  // an agent that is killed between a line and its note of it repeats what it has read in half a second
  const repeated = outOfOrder()
  expect(repeated.filter(({ number, after }) => number > after || number <= after - 4)).toEqual([])
  expect(repeated.length).toBeLessThan(2)
  const { number: newest } = ticks().at(-1) ?? { number: 0 }
  const previous = await answer('logs', name, '--node', node, '--previous')
  expect(previous).toMatch(new RegExp(String.raw`^\[writer\] tick ${before} `, 'm'))
  expect(previous).not.toMatch(new RegExp(String.raw`^\[writer\] tick ${newest} `, 'm'))
})

test('the steps of several nodes are followed at once, each line with its node and its package', async () => {
  const both = tool('logs', name, '--node', `${node},${other}`, '-f')
  let text = ''
  both.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const ended = new Promise((resolve) => both.once('close', resolve))
  const ticksOf = (of: string): number[] =>
    [...text.matchAll(new RegExp(String.raw`^\[${of} writer\] tick (\d+) `, 'gm'))].map(([, number]) => Number(number))
  const counts = (): number[] => [node, other].map((of) => ticksOf(of).length)
  const areAtLeast = async (expected: readonly number[]): Promise<void> =>
    await expect
      .poll(() => counts().every((count, index) => count >= (expected[index] ?? 0)), { timeout: 30_000 })
      .toBe(true)
  await areAtLeast([10, 10])
  await areAtLeast(counts().map((count) => count + 5)) // live
  both.kill('SIGINT')
  expect(await ended).toBe(130)
  expect(text.split('\n').filter((line) => !/^(\[node-[12] writer\] .*)?$/.test(line))).toEqual([])
  for (const each of [node, other]) {
    const numbers = ticksOf(each)
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index))
  }
})

test('ctrl-C ends following with 130', async () => {
  const ended = new Promise((resolve) => following.once('exit', resolve))
  following.kill('SIGINT')
  expect(await ended).toBe(130)
})

test('the history has each step with its exit code, also after the agent was replaced again', async () => {
  for (const each of [node, other] as const) await cluster.host(each).exec('touch', `/var/tmp/${name}.go`)
  await cluster.history.eventually(
    'the node is complete',
    ({ nodes }) => publishedState(nodes.get(node), name).status === 'complete',
  )
  const read = async (): Promise<readonly unknown[]> => {
    const { items } = JSON.parse(await answer('history', name, '--node', node, '-o', 'json')) as {
      items: { mode: string; result: string; exitCode: number }[]
    }
    return items.map(({ mode, result, exitCode }) => [mode, result, exitCode])
  }
  const expected = ['apply', 'apply-check', 'config', 'config-check'].map((mode) => [mode, 'ok', 0])
  expect(await read()).toEqual(expected)
  expect(await answer('logs', name, '--node', node, '--stage', 'apply')).toMatch(/^\[writer\] done$/m)
  await deleteAgent(cluster, node)
  await sleep(1_000)
  expect(await read()).toEqual(expected)
})
