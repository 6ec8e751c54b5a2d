/** Every command, with a text in every field of others that a terminal would obey, or that would fill it. */
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { effectsOf, hostileTexts } from '../../../test/kit/objects/hostile-texts.ts'
import { exampleCluster, type ExampleCluster } from '../../../test/kit/tool/example-cluster.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import { hostKey, nodeStateKey, reasonKey, reasonsKey, statusKey } from '../../schemas/annotations.ts'
import { ApiError } from '../../kube/errors.ts'

const controls = hostileTexts['all controls at once'] ?? ''
/** As much as all annotations of a Node may have. */
const endless = 'long '.repeat(48_000)
const merge = 'application/merge-patch+json'

/** Each text that others decide about is this one. */
async function hostileCluster(text: string): Promise<ExampleCluster> {
  const cluster = await exampleCluster()
  const { tool } = cluster
  const since = '2026-03-01T10:00:00Z'
  const entry = { name: text, version: text, image: text, stage: 'apply', state: 'erroring', restarts: 1 }
  const annotations = {
    [reasonKey('tuning')]: JSON.stringify({ reason: 'StepFailed', message: `package tuned: ${text}`, since }),
    [reasonsKey('tuning')]: JSON.stringify({ tuned: { reason: 'StepFailed', message: text, since } }),
    [hostKey]: JSON.stringify({ systemd: text, findings: [{ id: text, severity: 'error', message: text }] }),
    [statusKey('tuning')]: 'erroring',
    [nodeStateKey('tuning')]: JSON.stringify({
      'tuned|1.0.0': { ...entry, name: 'tuned', version: '1.0.0' },
      [text]: entry,
    }),
    [reasonKey('other')]: JSON.stringify({ reason: text, message: text, since }),
    [statusKey('other')]: text,
  }
  const conditions = [
    { type: 'Ready', status: 'False', reason: text, message: text },
    { type: 'skyhook.nvidia.com/tuning/tuned', status: 'True', reason: text, message: text },
  ]
  // by the server's back: annotations of this size it would not take
  tool.answer(
    ({ method, path }) => method === 'GET' && path.startsWith('/api/v1/nodes'),
    () => {
      const metadata = { name: 'n2', uid: 'n2', resourceVersion: '1', labels: { pool: 'a' }, annotations }
      const node = {
        metadata,
        spec: { taints: [{ key: text, value: text, effect: 'NoSchedule' }] },
        status: { conditions },
      }
      return { ...node, metadata: { ...metadata, resourceVersion: '1' }, items: [node] }
    },
  )
  await tool.admin.json('PATCH', `${skyhooksPath}/tuning/status`, {
    body: {
      status: {
        status: 'erroring',
        conditions: ['Stalled', 'Reconciling', 'Ready'].map((type) => ({
          type,
          status: 'True',
          reason: 'Stalled',
          message: text.slice(0, 32_000),
          lastTransitionTime: since,
          observedGeneration: 1,
        })),
      },
    },
    contentType: merge,
  })
  const event = {
    metadata: { name: 'n2.1', resourceVersion: '1' },
    type: 'Warning',
    reason: 'StepFailed',
    message: `Skyhook tuning, package tuned: ${text}`,
    count: 2,
    lastTimestamp: '2026-03-01T11:30:00Z',
    involvedObject: { kind: 'Node', name: 'n2' },
  }
  const foreign = { ...event, metadata: { name: 'n2.2', resourceVersion: '1' }, reason: text, type: text }
  tool.answer(
    ({ path }) => path.endsWith('/events'),
    ({ query }) => ({
      metadata: { resourceVersion: '1' },
      items: String(query?.['fieldSelector']).includes('census') ? [] : [event, foreign],
    }),
  )
  const of = { skyhook: 'tuning', package: 'tuned', version: text, mode: text, step: text, stepId: 'd', attempt: 1 }
  const time = '2026-03-01T11:30:00Z'
  const lines = [
    { time, ...of, startedAt: text, message: 'step started' },
    { time, ...of, stream: 'stdout', message: text },
    { time, ...of, stream: 'stdout', message: 'output skipped', log: text, skippedBytes: 1 },
    {
      time,
      ...of,
      startedAt: text,
      endedAt: text,
      durationMs: 1,
      result: 'failed',
      detail: text,
      message: 'step ended',
    },
  ]
  tool.answer(
    ({ path }) => path.endsWith('/log'),
    () => lines.map((line) => `${time} ${JSON.stringify(line)}\n`).join(''),
  )
  return cluster
}

const textLines = [
  'status',
  'explain tuning',
  'explain tuning n2',
  'plan -f tuning.yaml',
  'plan -f tuning.yaml -o markdown',
  'plan -f tuning.yaml --delete',
  'doctor',
  'doctor --node n2',
  'events',
  'events -o wide',
  'logs tuning --node n2',
  'logs tuning --node n*',
  'history tuning --node n2',
  'history tuning --node n2 -o wide',
  'node list --skyhook tuning',
  'node list --skyhook tuning -o wide',
  'node status',
  'node status -o wide',
  'package status tuned --skyhook tuning',
  'package status tuned --skyhook tuning -o wide',
  'package logs tuned --skyhook tuning',
  'package logs tuned --skyhook tuning --node n*',
  'pause tuning --yes',
  'bundle --file support.tar.gz',
  'version',
]

/** What fits on some screens. */
const maxOutputLength = 96 * 1024

describe.each(textLines)('"%s" as text', (line) => {
  test(`the text of "${line}" has no effect on a terminal`, async () => {
    const { stdout, stderr } = await (await hostileCluster(controls)).run(`kubectl skyhook ${line}`)
    expect(effectsOf(stdout + stderr)).toEqual([])
    expect(stdout + stderr).not.toBe('')
  })

  test(`the text of "${line}" is bounded`, async () => {
    const { stdout, stderr } = await (await hostileCluster(endless)).run(`kubectl skyhook ${line}`)
    expect((stdout + stderr).length).toBeLessThan(maxOutputLength)
  })

  test(`the text of "${line}" has no effect where the API server answers with an error`, async () => {
    const cluster = await exampleCluster()
    cluster.tool.answer(
      () => true,
      () => {
        throw new ApiError({ status: 403, reason: 'Forbidden', message: `${controls}${endless}`, request: 'GET /' })
      },
    )
    const { stdout, stderr } = await cluster.run(`kubectl skyhook ${line}`)
    expect(effectsOf(stdout + stderr)).toEqual([])
    expect((stdout + stderr).length).toBeLessThan(maxOutputLength)
  })
})

describe.each(['events', 'logs tuning --node n2', 'history tuning --node n2', 'explain tuning n2'])(
  '"%s" as a document',
  (line) => {
    test(`the document of "${line}" keeps each character, in a form without effect`, async () => {
      const cluster = await hostileCluster(controls)
      for (const format of ['json', 'yaml'] as const) {
        const { stdout } = await cluster.run(`kubectl skyhook ${line} -o ${format}`)
        expect(effectsOf(stdout)).toEqual([])
        const document: unknown = format === 'json' ? JSON.parse(stdout) : parse(stdout)
        expect(JSON.stringify(document)).toContain(JSON.stringify(controls).slice(1, -1))
      }
    })
  },
)

test('what completes a name has no effect on a terminal', async () => {
  const cluster = await hostileCluster(controls)
  cluster.tool.answer(
    ({ path }) => path.includes('skyhooks'),
    () => ({ metadata: { resourceVersion: '1' }, items: [{ metadata: { name: `tuning${controls}` } }] }),
  )
  const { stdout } = await cluster.tool.run('__complete pause t')
  expect(stdout).toContain('tuning')
  expect(effectsOf(stdout)).toEqual([])
})

test('a question has no effect on a terminal', async () => {
  const { tool } = await hostileCluster(controls)
  const { stderr } = await tool.run(`delete-nothing${controls.replaceAll(' ', '')}`, { answer: 'n' })
  expect(stderr).not.toBe('')
  expect(effectsOf(stderr)).toEqual([])
})
