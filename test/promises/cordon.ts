/**
 * A cordon that an administrator set stays until an administrator takes it off; a cordon of an agent goes with its
 * work. Marks and `unschedulable` are apart for a moment only.
 */
import { keepCordonedKey, cordonedBeforeKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { hostOfClient, marksOf, nodeOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'
import { everyFewSeconds } from './look-interval.ts'

/** An agent that nothing hinders repairs its Node within this time. It cordons at most once a minute in a fight. */
const maxRepairMs = 90_000

const isCordoned = (node: KubernetesNode | undefined): boolean => node?.spec?.unschedulable === true

export const cordon: Promised = {
  name: 'cordon',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** UIDs of Nodes that an administrator has cordoned and not uncordoned, as far as that shows. */
    const byAdministrator = new Set<string>()
    /** Since when a Node is wrong, in healthy time of its host. */
    const wrongSinceMs = new Map<string, number>()
    const isTime = everyFewSeconds()
    let checks = 0

    function seeNode(before: KubernetesNode | undefined, after: KubernetesNode, client: string): void {
      const { uid, annotations = {}, name } = after.metadata
      if (isCordoned(before) === isCordoned(after)) return
      checks++
      if (client === 'admin') {
        if (isCordoned(after)) byAdministrator.add(uid)
        else byAdministrator.delete(uid)
      } else if (hostOfClient(client, 'agent') !== undefined && !isCordoned(after)) {
        if (byAdministrator.has(uid)) violate(`${client} takes off the cordon that an administrator set on ${name}`)
        if (annotations[keepCordonedKey] === 'true') violate(`${client} uncordons ${name} against ${keepCordonedKey}`)
      }
    }

    const problemOf = (node: KubernetesNode): string | undefined => {
      const marks = marksOf(node)
      if (marks.length > 0 && !isCordoned(node))
        return `carries the cordon mark of ${marks.join(', ')} and is schedulable`
      if (marks.length === 0 && isCordoned(node) && !byAdministrator.has(node.metadata.uid))
        return 'is unschedulable, and neither a mark nor an administrator says why'
      return undefined
    }

    return {
      on(event) {
        evidence.see(event)
        if (event.kind === 'restored') {
          byAdministrator.clear()
          for (const object of world.server.objects('nodes')) {
            const node = object as unknown as KubernetesNode
            const memory = node.metadata.annotations?.[cordonedBeforeKey]
            // on a schedulable Node the memory is of a cordon that somebody has lifted since
            if (isCordoned(node) && (memory === 'true' || marksOf(node).length === 0))
              byAdministrator.add(node.metadata.uid)
          }
        } else if (event.kind === 'commit' && event.change.resource.plural === 'nodes') {
          const { previous, version, type } = event.change
          const after = version.object as unknown as KubernetesNode
          if (type !== 'DELETED') seeNode(previous?.object as KubernetesNode | undefined, after, event.client)
        }
      },
      tick(atMs) {
        evidence.tick(atMs)
        if (!isTime(atMs)) return
        for (const view of world.hosts.values()) {
          const node = nodeOf(world, view)
          const problem = node && problemOf(node)
          if (node === undefined || problem === undefined) {
            wrongSinceMs.delete(view.name)
            continue
          }
          const totalMs = evidence.health.totalMs(view.name)
          const sinceMs = wrongSinceMs.get(view.name) ?? totalMs
          wrongSinceMs.set(view.name, sinceMs)
          checks++
          if (totalMs - sinceMs > maxRepairMs) violate(`Node ${node.metadata.name} ${problem}, for ${maxRepairMs} ms`)
        }
      },
      checks: () => checks,
    }
  },
}
