import { describe, expect, test } from 'vitest'
import { apiErrorFrom } from './errors.ts'
import { type EvictionOutcome, evict, readBlockedDrain } from './evict.ts'
import type { KubeTransport } from './transport.ts'

/** Answers as a kube-apiserver gives them, of webhooks that answer with these codes. */
const status = (code: number, message: string, more: object = {}): [number, string] => [
  code,
  JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code, ...more }),
]
const denial = 'admission webhook "evict.example.com" denied the request'
const rolled = 'The pod will be rolled by the cluster operator'
const notAsked = (cause: string): [number, string] => {
  const message = `failed calling webhook "evict.example.com": failed to call webhook: ${cause}`
  const details = { causes: [{ message }] }
  return status(500, `Internal error occurred: ${message}`, { reason: 'InternalError', details })
}
const post = 'Post "https://127.0.0.1:9999/0?timeout=10s"'
const policy = "ValidatingAdmissionPolicy 'quiet.example.com' with binding 'quiet' denied request"

async function evictUnder([code, body]: [number, string]): Promise<EvictionOutcome> {
  const pod = { namespace: 'shop', name: 'cart', uid: '1' }
  const transport = {
    async json(method: string, path: string) {
      if (method === 'GET') return { metadata: pod }
      throw apiErrorFrom(code, undefined, body, `${method} ${path}`)
    },
  } as unknown as KubeTransport
  return await evict(transport, pod)
}

describe('an eviction that admission refuses', () => {
  test.each<[string, [number, string], string]>([
    ['400', status(400, `${denial}: ${rolled}`), `denies its eviction: ${rolled}`],
    ['403', status(403, `${denial}: ${rolled}`, { reason: 'Forbidden' }), `denies its eviction: ${rolled}`],
    ['409', status(409, `${denial}: ${rolled}`, { reason: 'Conflict' }), `denies its eviction: ${rolled}`],
    ['422', status(422, `${denial}: ${rolled}`, { reason: 'Invalid' }), `denies its eviction: ${rolled}`],
    ['429', status(429, `${denial}: ${rolled}`, { reason: 'TooManyRequests' }), `denies its eviction: ${rolled}`],
    ['500', status(500, `${denial}: ${rolled}`), `denies its eviction: ${rolled}`],
    ['503', status(503, `${denial}: two\nlines`), 'denies its eviction: two\nlines'],
    ['400 without a word', status(400, `${denial} without explanation`), 'denies its eviction'],
    [
      'a closed connection',
      notAsked(`${post}: EOF`),
      `cannot be asked about its eviction: failed to call webhook: ${post}: EOF`,
    ],
    [
      'no answer in time',
      notAsked(`${post}: context deadline exceeded`),
      `cannot be asked about its eviction: failed to call webhook: ${post}: context deadline exceeded`,
    ],
  ])('a webhook that answers with %s blocks the drain by its name', async (_, answer, says) => {
    const outcome = await evictUnder(answer)
    expect(outcome).toMatchObject({ outcome: 'blocked', by: 'admission', message: `webhook evict.example.com ${says}` })
    const reason = outcome.outcome === 'blocked' ? `pod shop/cart (${outcome.message})` : ''
    expect(readBlockedDrain(reason)).toMatchObject({ pod: 'shop/cart', refusal: { name: 'evict.example.com' } })
  })

  test.each<[string, [number, string]]>([
    ['422', status(422, `pods "cart" is forbidden: ${policy}: not now`, { reason: 'Invalid' })],
    ['403', status(403, `pods "cart" is forbidden: ${policy}: not now`, { reason: 'Forbidden' })],
  ])('an admission policy that answers with %s blocks the drain by its name', async (_, answer) => {
    const message = 'policy quiet.example.com denies its eviction: not now'
    expect(await evictUnder(answer)).toMatchObject({ outcome: 'blocked', by: 'admission', message })
    const refusal = { by: 'policy', name: 'quiet.example.com', what: 'denied', detail: 'not now' }
    expect(readBlockedDrain(`pod shop/cart (${message})`)).toEqual({ pod: 'shop/cart', refusal })
  })

  const user = 'system:serviceaccount:skyhook:skyhookd'
  test.each<[string, [number, string]]>([
    [
      'a missing right',
      status(403, `pods "cart" is forbidden: User "${user}" cannot create resource "pods/eviction" in API group ""`),
    ],
    ['an exhausted quota', status(403, 'pods "cart" is forbidden: exceeded quota: objects')],
    ['a store that is too slow', status(500, 'etcdserver: request timed out')],
    ['a proxy without an API server', [502, '<html>Bad Gateway</html>']],
    ['a webhook that takes no dry runs', status(400, 'admission webhook "evict.example.com" does not support dry run')],
  ])('%s is not a blocked drain', async (_, answer) => {
    await expect(evictUnder(answer)).rejects.toMatchObject({ status: answer[0] })
  })

  test('a refusal by a disruption budget names the budget and not a webhook', async () => {
    const message = "Cannot evict pod as it would violate the pod's disruption budget."
    const causes = [
      { reason: 'DisruptionBudget', message: 'The disruption budget cart needs 2 healthy pods and has 2 currently' },
    ]
    const outcome = await evictUnder(status(429, message, { reason: 'TooManyRequests', details: { causes } }))
    expect(outcome).toMatchObject({ by: 'budget', message: 'PDB shop/cart: needs 2 healthy pods and has 2' })
    expect(readBlockedDrain('pod shop/cart (PDB shop/cart: needs 2 healthy pods and has 2)')).toBeUndefined()
  })
})
