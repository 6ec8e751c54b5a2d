/** Puts a recorded moment into a real cluster: Skyhooks first, and what they own with the UIDs that they got. */
import { policiesPath, skyhooksPath } from '../../../src/schemas/api.ts'
import type { KubeTransport } from '../../../src/kube/transport.ts'
import { type Moment, withUids } from './moments.ts'

const merge = 'application/merge-patch+json'

/** Throws for an object that the API server refuses. Returns what takes all of it out again. */
export async function loadMoment(
  api: KubeTransport,
  recorded: Moment,
  namespace: string,
): Promise<() => Promise<void>> {
  const created: string[] = []
  const post = async (folder: string, body: PostedObject): Promise<string> => {
    const { metadata } = await api.json<{ readonly metadata: { readonly uid: string } }>('POST', folder, { body })
    created.unshift(`${folder}/${body.metadata.name}`)
    return metadata.uid
  }
  const patch = async (path: string, body: object): Promise<void> =>
    void (await api.json('PATCH', path, { body, contentType: merge }))
  for (const { metadata, spec } of recorded.policies) await post(policiesPath, { ...policy, ...named(metadata), spec })
  const uids = new Map<string, string>()
  for (const { apiVersion, kind, metadata, spec } of recorded.skyhooks)
    uids.set(metadata.name, await post(skyhooksPath, { apiVersion, kind, ...named(metadata), spec }))
  const { nodes, skyhooks, pods, configMaps } = withUids(recorded, uids)
  for (const { metadata, status } of skyhooks) {
    const path = `${skyhooksPath}/${metadata.name}`
    await patch(`${path}/status`, { status })
    if (metadata.deletionTimestamp !== undefined) await api.json('DELETE', path)
  }
  for (const { metadata, spec, status } of nodes) {
    await post('/api/v1/nodes', { ...named(metadata), spec })
    await patch(`/api/v1/nodes/${metadata.name}/status`, { status })
  }
  for (const { metadata, spec, status } of pods) {
    const folder = `/api/v1/namespaces/${namespace}/pods`
    await post(folder, { ...named(metadata), spec })
    await patch(`${folder}/${metadata.name}/status`, { status })
  }
  for (const { metadata, data } of configMaps)
    await post(`/api/v1/namespaces/${namespace}/configmaps`, { ...named(metadata), data })
  return async () => {
    for (const { metadata } of recorded.skyhooks)
      await patch(`${skyhooksPath}/${metadata.name}`, { metadata: { finalizers: null } }).catch(() => undefined)
    for (const path of created)
      await api.json('DELETE', path, { body: { gracePeriodSeconds: 0 } }).catch(() => undefined) // gone with its owner
  }
}

type PostedObject = { readonly metadata: { readonly name: string }; readonly [field: string]: unknown }

const policy = { apiVersion: 'skyhook.nvidia.com/v1alpha1', kind: 'DeploymentPolicy' }

type Named = {
  readonly name: string
  readonly labels?: object
  readonly annotations?: object
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly object[]
}

/** What somebody has written of an object's metadata. */
const named = ({ name, labels, annotations, finalizers, ownerReferences }: Named) => ({
  metadata: {
    name,
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(finalizers && { finalizers }),
    ...(ownerReferences && { ownerReferences }),
  },
})
