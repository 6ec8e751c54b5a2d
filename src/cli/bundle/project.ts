/** What a support archive keeps of objects that say more than it needs. Pure. */
import type { KubeObject } from '../../kube/objects.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Pod } from '../../stages/model/pods.ts'
import { slimPod } from '../fleet-view/node-detail.ts'
import { slimNode } from '../fleet-view/project.ts'

/** Versions of what runs there, beside what decisions look at. */
export function nodeForBundle(node: KubernetesNode): KubeObject {
  const slim = slimNode(node)
  const { bootID, kubeletVersion, kernelVersion, osImage, containerRuntimeVersion, architecture } = (node.status
    ?.nodeInfo ?? {}) as Readonly<Record<string, string | undefined>>
  const nodeInfo = { bootID, kubeletVersion, kernelVersion, osImage, containerRuntimeVersion, architecture }
  return { ...slim, status: { ...slim.status, nodeInfo } } as KubeObject
}

/** Which pods may not leave a node, and why, without what runs in them. */
export function podForBundle(object: KubeObject): KubeObject {
  const { metadata, spec, status } = slimPod(object as Pod & KubeObject)
  const { name, namespace, uid, resourceVersion, labels, annotations, ownerReferences, deletionTimestamp } = metadata
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      ...(namespace !== undefined && { namespace }),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(ownerReferences && { ownerReferences }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    spec,
    status,
  } as KubeObject
}

/** Only the file that the agents read; whatever else somebody put in there stays out. */
export function settingsForBundle(object: KubeObject): KubeObject {
  const { metadata, data } = object as KubeObject & { readonly data?: Readonly<Record<string, string>> }
  const text = data?.['settings.json']
  return { metadata, ...(text !== undefined && { data: { 'settings.json': text } }) } as KubeObject
}
