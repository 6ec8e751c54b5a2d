import { expect, test } from 'vitest'
import { ApiError } from '../../../kube/errors.ts'
import type { KubeRequestOptions, KubeTransport, Method } from '../../../kube/transport.ts'
import { agentPermissions } from '../permissions.ts'
import { readAccess } from './read-access.ts'

const installation = { name: 'skyhookd', namespace: 'hosts', serviceAccount: 'agents', version: '1.0.0' }
const agents = 'system:serviceaccount:hosts:agents'

type Sent = { readonly plural: string; readonly spec: Readonly<Record<string, unknown>> }

/** An API server with this caller; `answer` says what a review is answered. */
function apiFor(
  caller: string,
  answer: (sent: Sent) => boolean,
): { readonly api: KubeTransport; readonly sent: Sent[] } {
  const sent: Sent[] = []
  const json = async (_: Method, path: string, { body }: KubeRequestOptions = {}): Promise<unknown> => {
    const plural = path.split('/').at(-1) ?? ''
    if (plural === 'selfsubjectreviews') return { status: { userInfo: { username: caller } } }
    const review = { plural, spec: (body as { readonly spec: Sent['spec'] }).spec }
    sent.push(review)
    return { status: { allowed: answer(review) } }
  }
  return { api: { json } as unknown as KubeTransport, sent }
}

const { signal } = new AbortController()
const attributes = ({ spec }: Sent): Readonly<Record<string, unknown>> =>
  spec['resourceAttributes'] as Readonly<Record<string, unknown>>

test('each right is asked for as the agents, in its namespace, and the answers are those of the API server', async () => {
  const { api, sent } = apiFor('admin', (review) => attributes(review)['verb'] !== 'patch')
  const access = await readAccess(api, installation, signal)
  expect(sent).toHaveLength(agentPermissions.length)
  expect(new Set(sent.map(({ plural, spec }) => `${plural} ${String(spec['user'])}`))).toEqual(
    new Set([`subjectaccessreviews ${agents}`]),
  )
  expect(sent[0]?.spec['groups']).toContain('system:serviceaccounts:hosts')
  expect(sent.map(attributes)).toContainEqual({ group: '', resource: 'pods', subresource: 'eviction', verb: 'create' })
  expect(sent.map(attributes)).toContainEqual({ group: '', resource: 'secrets', verb: 'get', namespace: 'hosts' })
  expect(sent.map(attributes)).toContainEqual({ group: '', resource: 'events', verb: 'patch', namespace: 'default' })
  expect(
    access.known && access.value.filter(({ isAllowed }) => !isAllowed).map(({ permission }) => permission.verb),
  ).toEqual(agentPermissions.filter(({ verb }) => verb === 'patch').map(({ verb }) => verb))
})

test('a caller that acts as the agents asks about itself', async () => {
  const { api, sent } = apiFor(agents, () => true)
  expect(await readAccess(api, installation, signal)).toMatchObject({ known: true })
  expect(new Set(sent.map(({ plural }) => plural))).toEqual(new Set(['selfsubjectaccessreviews']))
  expect(sent.every(({ spec }) => !('user' in spec))).toBe(true)
})

test('a caller that may not ask gets the way around, and other errors are thrown', async () => {
  const failing = (status: number): KubeTransport =>
    apiFor('viewer', () => {
      throw new ApiError({ status, reason: 'x', message: 'no' })
    }).api
  expect(await readAccess(failing(403), installation, signal)).toMatchObject({
    known: false,
    why: expect.stringContaining(`--as ${agents}`) as unknown,
  })
  await expect(readAccess(failing(500), installation, signal)).rejects.toMatchObject({ status: 500 })
})
