/** Reads what NodeWright has in the cluster. */
import { getIfExists } from '../../../kube/get.ts'
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { nodeWrightGroup, nodeWrightGroupPath } from '../../../schemas/nodewright.ts'
import { known } from '../../../stages/model/snapshot.ts'
import { type Collection, readerOf } from '../../fleet-view/collections.ts'
import { readable } from '../../fleet-view/readable.ts'
import type { NodeWrightFacts, NodeWrightJob } from '../takeover/facts.ts'

/** On its Jobs and their pods. */
const nodeLabel = `${nodeWrightGroup}/node`
const nameLabel = `${nodeWrightGroup}/name`

export async function readNodeWright(transport: KubeTransport, signal: AbortSignal): Promise<NodeWrightFacts> {
  const openJobs: Collection<NodeWrightJob> = {
    what: 'Jobs',
    path: '/apis/batch/v1/jobs',
    query: { labelSelector: nodeLabel },
    keep: jobOf,
  }
  const [objects, jobs] = await Promise.all([readGroup(transport, signal), readerOf(transport, signal)(openJobs)])
  return { ...objects, jobs }
}

type ApiGroup = { readonly versions?: readonly { readonly groupVersion: string }[] }
type ApiResources = { readonly resources?: readonly { readonly name: string }[] }

/** The group may be served without NodeWrights: it also has a definition of DeploymentPolicies. */
async function readGroup(transport: KubeTransport, signal: AbortSignal): Promise<Omit<NodeWrightFacts, 'jobs'>> {
  const group = await readable(nodeWrightGroup, getIfExists<ApiGroup>(transport, nodeWrightGroupPath, { signal }))
  if (!group.known) return { isServed: group, objects: group }
  if (group.value === undefined) return { isServed: known(false), objects: known([]) }
  const isServed = known(true)
  for (const { groupVersion } of group.value.versions ?? []) {
    const path = `/apis/${groupVersion}`
    const served = await readable(groupVersion, transport.json<ApiResources>('GET', path, { signal }))
    if (!served.known) return { isServed, objects: served }
    if (served.value.resources?.some(({ name }) => name === 'nodewrights') !== true) continue
    const keep = ({ metadata }: KubeObject): string => metadata.name
    const nodeWrights = { what: 'NodeWrights', path: `${path}/nodewrights`, keep }
    return { isServed, objects: await readerOf(transport, signal)(nodeWrights) }
  }
  return { isServed, objects: known([]) }
}

type JobObject = KubeObject & {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

/** A suspended one has not ended: it continues when it is resumed. */
function jobOf({ metadata, status }: JobObject): NodeWrightJob | undefined {
  const { namespace = '', name, labels = {} } = metadata
  const hasEnded = status?.conditions?.some((one) => ['Complete', 'Failed'].includes(one.type) && one.status === 'True')
  return hasEnded === true
    ? undefined
    : { namespace, name, node: labels[nodeLabel] ?? '', rollout: labels[nameLabel] ?? '' }
}
