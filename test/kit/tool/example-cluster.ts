/**
 * What the examples in the help of the commands speak of: a cluster with the Skyhook `tuning` and the nodes n1 to n4, a
 * folder with packages, and a registry. Its clock stands still, so that ages are always the same.
 */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { reasonKey, nodeStateKey, statusKey } from '../../../src/schemas/annotations.ts'
import { skyhooksPath } from '../../../src/schemas/api.ts'
import { type CommandLine, commandLine, type Ended } from './command-line.ts'
import type { FakeRegistry } from '../registry/fake-registry.ts'
import { runTool } from './run-tool.ts'
import { createVirtualClock, type VirtualClock } from '../virtual-clock.ts'

const repository = join(import.meta.dirname, '..', '..', '..')
const nowMs = Date.parse('2026-03-01T12:00:00Z')
const at = (minutesAgo: number): string => new Date(nowMs - minutesAgo * 60_000).toISOString()

const entry = (name: string, stage: string, state: string, more: object = {}) => ({
  [`${name}|1.0.0`]: { name, version: '1.0.0', image: `registry.example.com/${name}`, stage, state, ...more },
})
const done = { ...entry('shellscript', 'config', 'complete'), ...entry('tuned', 'post-interrupt', 'complete') }
const failing = {
  ...entry('shellscript', 'config', 'complete'),
  ...entry('tuned', 'apply', 'erroring', { restarts: 3 }),
}

type NodeFacts = { readonly status: string; readonly state: unknown; readonly reason?: readonly [string, string] }

const nodes: Readonly<Record<string, NodeFacts>> = {
  n1: { status: 'complete', state: done },
  n2: {
    status: 'erroring',
    state: failing,
    reason: ['StepFailed', 'package tuned: apply step tune.sh exited with 1'],
  },
  n3: { status: 'waiting', state: {}, reason: ['WaitingForSlot', 'all 1 slots are taken, by n2'] },
  // what somebody has edited cannot be read
  n4: { status: 'waiting', state: 'no state' },
}

export type ExampleCluster = {
  readonly tool: CommandLine
  /** Of the tool; only a test moves it. */
  readonly clock: VirtualClock
  /** Runs a call like those of the examples. `more`: further arguments. */
  readonly run: (line: string, more?: string) => Promise<Ended>
}

/** Their examples open sockets: the page of the dashboard, and the registry. */
export const commandsWithSockets: readonly string[] = ['dashboard', 'package push']

/** Creates everything; what it has on disk is removed when the test is over. `registry`: stands for that of examples. */
export async function exampleCluster(registry?: Pick<FakeRegistry, 'host'>): Promise<ExampleCluster> {
  const clock = createVirtualClock(nowMs)
  const tool = commandLine({ clock })
  await createObjects(tool)
  const folder = await mkdtemp(join(tmpdir(), 'examples-'))
  const home = process.cwd()
  onTestFinished(async () => {
    process.chdir(home)
    await rm(folder, { recursive: true })
  })
  process.chdir(folder)
  return {
    tool,
    clock,
    async run(line, more = '') {
      const [, , group, verb] = line.split(' ')
      if (group === 'plan') await writeFile('tuning.yaml', tuningFile)
      if (group === 'validate') await cp(join(repository, 'packages'), 'packages', { recursive: true })
      if (group === 'hand-back')
        tool.answer(
          ({ path }) => path.endsWith('/daemonsets'),
          () => ({ items: [] }),
        )
      if (verb === 'build' || verb === 'push') await runTool(['package', 'init', 'my-tuning'])
      const isRemote = registry !== undefined && line.includes('registry.example.com')
      const here = isRemote ? `${line.replace('registry.example.com', registry.host)} --plain-http` : line
      return await tool.run(`${here.replace('kubectl skyhook ', '')} ${more}`, {
        readFile: (path) => readFile(path, 'utf8'),
        // what serves until ctrl-C gets it
        until: group === 'dashboard' ? '?token=' : undefined,
      })
    },
  }
}

/** A later version of one package, which reboots. */
/** The file that examples plan. */
export const tuningFile = `apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  name: tuning
spec:
  nodeSelectors:
    matchLabels: { pool: a }
  interruptionBudget:
    count: 1
  packages:
    tuned:
      version: 1.1.0
      image: registry.example.com/tuned
      interrupt: { type: reboot }
`

async function createObjects(tool: CommandLine): Promise<void> {
  const { admin } = tool
  const packages = Object.fromEntries(
    ['shellscript', 'tuned'].map((name) => [name, { version: '1.0.0', image: `registry.example.com/${name}` }]),
  )
  const spec = { nodeSelectors: { matchLabels: { pool: 'a' } }, interruptionBudget: { count: 1 }, packages }
  await admin.json('POST', skyhooksPath, { body: { metadata: { name: 'tuning' }, spec } })
  for (const [name, { status, state, reason }] of Object.entries(nodes)) {
    const annotations = {
      [nodeStateKey('tuning')]: typeof state === 'string' ? state : JSON.stringify(state),
      [statusKey('tuning')]: status,
      ...(reason && {
        [reasonKey('tuning')]: JSON.stringify({ reason: reason[0], message: reason[1], since: at(90) }),
      }),
    }
    const metadata = { name, labels: { pool: 'a' }, annotations }
    await admin.json('POST', '/api/v1/nodes', { body: { metadata, spec: {} } })
    const path = `/api/v1/nodes/${name}`
    const contentType = 'application/merge-patch+json'
    await admin.json('PATCH', path, { body: { spec: { taints: [] } }, contentType })
    const conditions = [{ type: 'Ready', status: 'True' }]
    await admin.json('PATCH', `${path}/status`, { body: { status: { conditions } }, contentType })
  }
  const list = (...items: readonly object[]) => ({ metadata: { resourceVersion: '1' }, items })
  const metadata = {
    name: 'skyhookd',
    namespace: 'skyhook',
    labels: { 'app.kubernetes.io/name': 'skyhookd', 'app.kubernetes.io/version': '1.4.0' },
  }
  tool.answer(
    ({ path }) => path.endsWith('/daemonsets'),
    () =>
      list({ metadata, spec: { template: { spec: { containers: [{ name: 'agent', image: 'skyhookd:1.4.0' }] } } } }),
  )
  tool.answer(
    ({ method, path }) => method === 'GET' && path.endsWith('/configmaps'),
    () => list(),
  )
  const agents = Object.keys(nodes).map((nodeName) => ({
    metadata: { name: `skyhookd-${nodeName}`, namespace: 'skyhook', uid: nodeName, resourceVersion: '1' },
    spec: { nodeName, containers: [{ name: 'agent', image: 'skyhookd:1.4.0' }] },
    status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at(600) }] },
  }))
  tool.answer(
    ({ path, query }) => path.endsWith('/pods') && query?.['labelSelector'] !== undefined,
    () => list(...agents),
  )
  tool.answer(
    ({ path }) => path.endsWith('/log'),
    ({ path, query }) => agentLog(path.includes('n2') ? 3 : 0, query?.['timestamps'] === true),
  )
  const event = (minutesAgo: number, type: string, reason: string, node: string, message: string, count = 1) => ({
    metadata: { name: `${node}.${minutesAgo}`, resourceVersion: '1' },
    type,
    reason,
    message,
    count,
    lastTimestamp: at(minutesAgo),
    involvedObject: { kind: 'Node', name: node },
  })
  const events = [
    event(50, 'Warning', 'StepFailed', 'n2', 'tuning: package tuned: apply step tune.sh exited with 1', 3),
    event(55, 'Normal', 'Completed', 'n1', 'tuning: complete'),
    event(40, 'Normal', 'Completed', 'n1', 'other: complete'),
  ]
  tool.answer(
    ({ path }) => path.endsWith('/events'),
    ({ query }) => (String(query?.['fieldSelector']).includes('census') ? list() : list(...events)),
  )
}

/** What the agent of a node has logged; its shell script wrote a line and ended so. */
function agentLog(exitCode: number, hasStamps: boolean): string {
  const of = {
    skyhook: 'tuning',
    package: 'shellscript',
    version: '1.0.0',
    mode: 'apply',
    step: 'run.sh',
    stepId: 'd2c1',
    attempt: 1,
  }
  const end = { durationMs: 60_000, result: exitCode === 0 ? 'ok' : 'failed', exitCode }
  const lines = [
    { time: at(60), message: 'agent starting' },
    { time: at(50), ...of, startedAt: at(50), message: 'step started' },
    { time: at(50), ...of, stream: 'stdout', message: 'vm.swappiness = 10' },
    { time: at(49), ...of, startedAt: at(50), endedAt: at(49), ...end, message: 'step ended' },
  ]
  return lines.map((line) => `${hasStamps ? `${line.time} ` : ''}${JSON.stringify(line)}\n`).join('')
}
