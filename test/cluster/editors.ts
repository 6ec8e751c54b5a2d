/** People who may edit one kind of object and nothing else. */
import { expect } from 'vitest'
import { allowed, leases, nodes, skyhooks } from './agents.ts'
import { namespace, until, type ChartCluster, type Json, type Send } from './chart-cluster.ts'

const editable = {
  skyhooks: { place: undefined, path: skyhooks, rule: { apiGroups: ['skyhook.nvidia.com'], resources: ['*'] } },
  nodes: { place: undefined, path: nodes, rule: { apiGroups: [''], resources: ['nodes', 'nodes/status'] } },
  leases: { place: namespace, path: leases, rule: { apiGroups: ['coordination.k8s.io'], resources: ['leases'] } },
} as const

/** A token of a ServiceAccount that may do everything with what is named, of Leases with those beside the agents. */
export async function editorOf(cluster: ChartCluster, what: keyof typeof editable): Promise<Send> {
  const { admin } = cluster
  const { place, path, rule } = editable[what]
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  const authorization = '/apis/rbac.authorization.k8s.io/v1'
  const kind = place === undefined ? 'ClusterRole' : 'Role'
  const rolesPath = `${authorization}${place === undefined ? '' : `/namespaces/${place}`}/${kind.toLowerCase()}`
  const metadata = { name: `editor-of-${what}` }
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind, name: metadata.name }
  const subjects = [{ kind: 'ServiceAccount', namespace: 'default', name: metadata.name }]
  expect(await admin('POST', accounts, { metadata })).toEqual(allowed)
  expect(await admin('POST', `${rolesPath}s`, { metadata, rules: [{ ...rule, verbs: ['*'] }] })).toEqual(allowed)
  expect(await admin('POST', `${rolesPath}bindings`, { metadata, roleRef, subjects })).toEqual(allowed)
  const { body } = await admin('POST', `${accounts}/${metadata.name}/token`, { spec: {} })
  const send = cluster.as(String((body['status'] as Json)['token']))
  await until(
    () => send('GET', path),
    ({ status }) => status === 200,
  )
  return send
}
