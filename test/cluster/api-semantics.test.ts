/** The simulated API server of test/fleet answers a script of requests as the real one does. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { Agent, createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { evict, type EvictionOutcome } from '../../src/kube/evict.ts'
import type { KubeObject } from '../../src/kube/objects.ts'
import { nodeWrightDefinition, nodeWrightGroup, nodeWrightGroupPath } from '../../src/schemas/nodewright.ts'
import { inNormalForm } from '../kit/api-server/semantics-normal-form.ts'
import { runSemantics } from '../kit/api-server/semantics-script.ts'
import type { Wire, WireRequest } from '../kit/api-server/semantics-step.ts'
import { simulatedWire } from '../kit/api-server/simulated-wire.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { until } from './chart-cluster.ts'
import { createAuthority } from '../kit/cluster/pki.ts'

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

test('an eviction that a webhook or a policy does not let through names it, whatever the code', async () => {
  const { url, caBundle } = await startDenyingWebhook()
  const outcomes = new Map<string, Promise<EvictionOutcome>>()
  for (const code of [400, 403, 429, 500, 0]) outcomes.set(`c${code}`, evictBeside(`c${code}`, webhookOf(code)))
  outcomes.set('policy', evictBeside('policy', ...policyOf('policy')))
  const says = new Map<string, unknown>()
  for (const [name, outcome] of outcomes) says.set(name, await outcome)
  const denied = (code: number) => ({
    outcome: 'blocked',
    by: 'admission',
    message: `webhook c${code}.example.com denies its eviction: it is rolled`,
    retryAfterMs: undefined,
  })
  expect(Object.fromEntries(says)).toEqual({
    c400: denied(400),
    c403: denied(403),
    c429: denied(429),
    c500: denied(500),
    c0: {
      ...denied(0),
      message: expect.stringMatching(
        /^webhook c0[.]example[.]com cannot be asked about its eviction: .*EOF$/,
      ) as string,
    },
    policy: { ...denied(0), message: 'policy policy denies its eviction: it is rolled' },
  })

  function webhookOf(code: number): [string, object] {
    const webhook = {
      name: `c${code}.example.com`,
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      clientConfig: { url: `${url}/${code}`, caBundle },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods/eviction'] }],
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': `c${code}` } },
    }
    return ['validatingwebhookconfigurations', { metadata: { name: `c${code}` }, webhooks: [webhook] }]
  }
})

const policyOf = (name: string): [string, object][] => {
  const resourceRules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods/eviction'] }]
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': name } }
  const spec = {
    matchConstraints: { resourceRules, namespaceSelector },
    validations: [{ expression: 'false', message: 'it is rolled' }],
  }
  return [
    ['validatingadmissionpolicies', { metadata: { name }, spec }],
    [
      'validatingadmissionpolicybindings',
      { metadata: { name }, spec: { policyName: name, validationActions: ['Deny'] } },
    ],
  ]
}

/** The answer to the eviction of a pod of this namespace, once what stands in its way is in effect. */
async function evictBeside(namespace: string, ...obstacles: readonly [string, object][]): Promise<EvictionOutcome> {
  const { admin } = cluster
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } })
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }
  await admin.json('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, { body: account })
  const body = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'none' }] } }
  const { metadata } = await admin.json<KubeObject>('POST', `/api/v1/namespaces/${namespace}/pods`, { body })
  for (const [plural, obstacle] of obstacles)
    await admin.json('POST', `/apis/admissionregistration.k8s.io/v1/${plural}`, { body: obstacle })
  const pod = { namespace, name: 'p', uid: metadata.uid }
  await until(
    () => evict(admin, pod, undefined, true),
    ({ outcome }) => outcome === 'blocked',
  )
  return await evict(admin, pod)
}

/** Denies with the code that the path names; `/0` closes the connection. */
async function startDenyingWebhook(): Promise<{ readonly url: string; readonly caBundle: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'skyhookd-webhook-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const authority = await createAuthority(folder)
  const { certFile, keyFile } = await authority.issue(
    'webhook',
    '/CN=webhook',
    'extendedKeyUsage=serverAuth\nsubjectAltName=IP:127.0.0.1\n',
  )
  const server = createServer({ cert: await readFile(certFile), key: await readFile(keyFile) }, (asked, answer) => {
    let text = ''
    asked.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    asked.on('end', () => {
      const code = Number(/^[/](\d+)/.exec(asked.url ?? '')?.[1])
      if (code === 0) return void asked.socket.destroy()
      const {
        apiVersion,
        kind,
        request: review,
      } = JSON.parse(text) as {
        apiVersion: string
        kind: string
        request: { uid: string }
      }
      const response = { uid: review.uid, allowed: false, status: { code, message: 'it is rolled' } }
      answer.setHeader('content-type', 'application/json').end(JSON.stringify({ apiVersion, kind, response }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `https://127.0.0.1:${port}`, caBundle: (await readFile(authority.caFile)).toString('base64') }
}

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
