/** The samples that are shipped, applied as their comments say, and removed without a trace. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodeNames, useCluster } from '../kit/cluster/cluster.ts'
import { overBudget } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const root = join(import.meta.dirname, '..', '..')
const label = 'skyhook.nvidia.com/sample'
let samples: string
const onEachNode = async (script: string): Promise<string[]> =>
  await Promise.all(nodeNames.map(async (node) => (await cluster.host(node).exec('sh', '-c', script)).trim()))

beforeAll(async () => {
  await cluster.sandbox.must(['push', join(root, 'packages/shellscript'), 'packages/shellscript:1.2.0'])
  samples = await mkdtemp(join(tmpdir(), 'samples-'))
  await cp(join(root, 'samples'), samples, { recursive: true })
  const variable = join(samples, 'registry.yaml')
  const text = await readFile(variable, 'utf8')
  await writeFile(variable, text.replace('registry: registry.example.com', `registry: ${cluster.registry}`))
})
afterAll(async () => {
  await cluster.sandbox.kubectl(['label', 'nodes', '--all', `${label}-`])
  await rm(samples, { recursive: true })
})

test('the samples complete as they are printed, and their deletion cleans the hosts', async () => {
  await cluster.sandbox.kubectl(['label', 'nodes', '--all', `${label}=rollout`])
  await cluster.sandbox.kubectl(['apply', '-k', samples])
  // the third one selects no node until somebody labels one
  for (const name of ['demo', 'rollout', 'runtime-required'])
    await cluster.sandbox.kubectl(['wait', '--for=condition=Ready', `skyhook/${name}`, '--timeout=120s'])
  await cluster.history.never('two nodes at once', overBudget('demo', 1))
  await cluster.history.never('two nodes at once', overBudget('rollout', 1))
  for (const text of await onEachNode('cat /etc/skyhook-greeting')) expect(text).toContain('polite')
  expect(await onEachNode('cat /etc/skyhook-sample-site /etc/skyhook-sample-zone')).toEqual(
    nodeNames.map(() => 'example\nEtc/UTC'),
  )

  await cluster.sandbox.kubectl(['delete', '-k', samples, '--timeout=120s'])
  expect(await onEachNode('ls -d /etc/skyhook-* /var/tmp/skyhook-sample-* 2>/dev/null || echo none')).toEqual(
    nodeNames.map(() => 'none'),
  )
})
