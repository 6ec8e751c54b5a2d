/** The simulated API server of test/fleet answers a script of requests as the real one does. */
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodeWrightDefinition, nodeWrightGroup, nodeWrightGroupPath } from '../../src/schemas/nodewright.ts'
import { inNormalForm } from '../fleet/api-server/semantics-normal-form.ts'
import { runSemantics } from '../fleet/api-server/semantics-script.ts'
import type { Wire, WireRequest } from '../fleet/api-server/semantics-step.ts'
import { simulatedWire } from '../fleet/api-server/simulated-wire.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { until } from './chart-cluster.ts'

let cluster: ApiServer
let agent: Agent
beforeAll(async () => {
  cluster = await startApiServer()
  const { ca, cert, key } = await cluster.credentials.current()
  agent = new Agent({ keepAlive: true, ca, cert, key })
})
afterAll(async () => {
  agent?.destroy()
  await cluster?.stop()
})

test('the simulated API server gives the same answers and events as the real one', async () => {
  await cluster.kubectl('apply', '-f', join(import.meta.dirname, '../../crds'))
  const real = realWire()
  for (const plural of ['skyhooks', 'deploymentpolicies']) {
    const path = `/apis/skyhook.nvidia.com/v1alpha1/${plural}`
    await until(
      () => real.send({ method: 'GET', path }),
      ({ code }) => code === 200,
    )
  }
  const answered = inNormalForm(await runSemantics(real))
  expect(inNormalForm(await runSemantics(simulatedWire()))).toEqual(answered)
})

test('an API server that starts never denies a group that it serves, at the path of the group', async () => {
  const { apiVersion, kind, spec } = groupDefinition
  await cluster.admin.json('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    body: { apiVersion, kind, metadata: { name: nodeWrightDefinition }, spec },
  })
  const real = realWire()
  const ask = async (): Promise<number> => (await real.send({ method: 'GET', path: nodeWrightGroupPath })).code
  await until(ask, (code) => code === 200)
  await cluster.crash()
  agent.destroy()
  const answers = new Set<number>()
  const start = new AbortController()
  const restarted = cluster.restart().finally(() => start.abort())
  while (!start.signal.aborted) answers.add(await ask().catch(() => 0)) // 0: there is no server yet
  await restarted
  expect([[...answers].filter((code) => ![0, 200, 503].includes(code)), await ask()]).toEqual([[], 200])
})

const groupDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  spec: {
    group: nodeWrightGroup,
    scope: 'Cluster',
    names: { plural: 'nodewrights', singular: 'nodewright', kind: 'NodeWright' },
    versions: [{ name: 'v1alpha1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
} as const

function realWire(): Wire {
  return {
    async send(sent) {
      const { code, text, retryAfter } = await exchange(sent)
      const answer = { code, retryAfter, body: isJson(text) ? (JSON.parse(text) as unknown) : text }
      if (sent.method === 'POST' && sent.path === '/api/v1/namespaces' && code === 201) await createServiceAccount(sent)
      return answer
    },
    async watch(sent) {
      const { text } = await exchange(sent)
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as unknown)
    },
    async compact() {
      await cluster.compact()
      await cluster.crash()
      agent.destroy()
      await cluster.restart()
    },
  }
}

/** What a controller would do: without it no pod is admitted. */
async function createServiceAccount({ body }: WireRequest): Promise<void> {
  const { name } = (body as { metadata: { name: string } }).metadata
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }
  const path = `/api/v1/namespaces/${name}/serviceaccounts`
  expect((await exchange({ method: 'POST', path, body: account })).code).toBe(201)
}

type Exchanged = { readonly code: number; readonly text: string; readonly retryAfter: string | undefined }

const exchange = async ({ method, path, body, contentType, accept }: WireRequest): Promise<Exchanged> =>
  await new Promise((resolve, reject) => {
    const payload = body === undefined ? '' : JSON.stringify(body)
    const headers = {
      accept: accept ?? 'application/json',
      'content-type': contentType ?? 'application/json',
      'content-length': Buffer.byteLength(payload),
    }
    const sent = request(`${cluster.url}${path}`, { method, agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () =>
        resolve({ code: response.statusCode ?? 0, text, retryAfter: response.headers['retry-after'] }),
      )
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(payload)
  })

const isJson = (text: string): boolean => text.startsWith('{')
