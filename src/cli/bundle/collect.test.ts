import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import type { KubeTransport, Method } from '../../kube/transport.ts'
import { cordonKey, journalKey, nodeStateKey } from '../../schemas/annotations.ts'
import { packBundle, unpackBundle } from './archive.ts'
import { collectBundle } from './collect.ts'

/** A cluster in which somebody wrote these values into every place that an archive has anything of. */
function clusterWith(literal: string, likely: string, seen: string[]): Pick<KubeTransport, 'json'> {
  const lastApplied = { 'kubectl.kubernetes.io/last-applied-configuration': `{"x":"${literal}"}` }
  const text = `it failed with password=${likely} and printed ${literal}`
  const metadata = (name: string, annotations: object = {}): object => ({
    name,
    namespace: 'skyhook',
    uid: `uid-${name}`,
    resourceVersion: '1',
    labels: { app: name },
    annotations: { note: text, ...lastApplied, ...annotations },
    managedFields: [{ manager: literal }],
  })
  const env = [{ name: 'MODE', value: literal }]
  const status = { conditions: [{ type: 'Ready', status: 'False', message: text }], phase: 'Running' }
  const pod = {
    metadata: metadata('p'),
    spec: { nodeName: 'n1', containers: [{ name: 'agent', env, args: [`--token ${likely}`] }] },
    status,
  }
  const byPlural: Readonly<Record<string, object>> = {
    skyhooks: {
      metadata: metadata('s'),
      spec: {
        packages: { p: { version: '1.0.0', image: 'r/p', env, configMap: { 'a.conf': `${literal} ${likely}` } } },
      },
      status,
    },
    nodes: {
      metadata: metadata('n1', {
        [cordonKey('s')]: 'true',
        [nodeStateKey('s')]: JSON.stringify({ 'p|1.0.0': { name: 'p', version: '1.0.0', message: text } }),
        [journalKey('s')]: JSON.stringify({ v: 1, rev: 1, sha256: 'x', nodeUID: 'uid-n1', note: text }),
      }),
      status: { ...status, addresses: [{ address: literal }], images: [{ names: [literal] }] },
    },
    pods: pod,
    daemonsets: { metadata: metadata('d'), spec: { template: pod } },
    configmaps: {
      metadata: metadata('c'),
      data: {
        'proxy.httpsProxy': `https://me:${likely}@p.test`,
        other: literal,
      },
    },
    leases: { metadata: metadata('l'), spec: { holderIdentity: 'n1' } },
    events: { metadata: metadata('e'), involvedObject: { kind: 'Node', name: 'n1' }, message: text },
    poddisruptionbudgets: { metadata: metadata('b'), spec: { selector: {} }, status },
    deploymentpolicies: { metadata: metadata('o'), spec: { apiToken: likely } },
  }
  return {
    async json<T>(method: Method, path: string): Promise<T> {
      seen.push(`${method} ${path}`)
      const found = byPlural[path.split('/').at(-1) ?? '']
      return { metadata: { resourceVersion: '1' }, items: found ? [found] : [] } as T
    },
  }
}

const secret = fc.stringMatching(/^[A-Za-z0-9]{12,24}$/)

test('no environment value, likely secret or last-applied annotation gets into a bundle, and no Secret is asked for', async () => {
  await fc.assert(
    fc.asyncProperty(secret, secret, async (literal, likely) => {
      const seen: string[] = []
      const api = clusterWith(literal, likely, seen) as KubeTransport
      const signal = new AbortController().signal
      const documents = new Map([['doctor.json', { items: [{ message: `${literal} and token=${likely}` }] }]])
      const request = { namespace: 'skyhook', clock: createVirtualClock(), signal, nodes: [], documents }
      const { index, files } = await unpackBundle(await packBundle(await collectBundle(api, request)), 'b')
      const text = [JSON.stringify(index), ...files.values()].join('\n')
      expect(
        [literal, likely, 'last-applied-configuration', '"managedFields"'].filter((one) => text.includes(one)),
      ).toEqual([])
      expect(files.size).toBe(13)
      expect(seen.filter((one) => !one.startsWith('GET ') || one.includes('secrets'))).toEqual([])
    }),
    { numRuns: 60 },
  )
})
