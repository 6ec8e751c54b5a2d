/** A support archive as the data of a dashboard: one moment, which stays. */
import { once } from 'node:events'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Clock } from '../../schemas/clock.ts'
import { hostFolderOf } from '../agent-log/step-texts.ts'
import { readNodeDetail } from '../fleet-view/node-detail.ts'
import { slimNode } from '../fleet-view/project.ts'
import { readFleet } from '../fleet-view/read-fleet.ts'
import { notFoundError, refusedError } from '../framework/command-error.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { version } from '../../schemas/version.ts'
import { createNodeReader } from '../status/node-report.ts'
import { readCompletions } from '../status/read-completions.ts'
import { archivedNodeActions, logsCommand } from './commands.ts'
import { planEdit } from './edit-plan.ts'
import { manifestOf } from './manifest.ts'
import { nodeAnswer, skyhookNamed } from './node-answer.ts'
import type { DashboardSource, FleetMoment } from './source.ts'

export type Archive = {
  /** In place of an API server. */
  readonly transport: KubeTransport
  /** Of the agents. */
  readonly namespace: string
  /** Its wall clock stands at the time at which the archive was made. */
  readonly clock: Clock
  /** As the person has named it. */
  readonly file: string
  /** Version of the tool that has made it. */
  readonly madeBy: string
}

/** Asks no API server, now and later. */
export async function openArchivedSource(archive: Archive, signal: AbortSignal): Promise<DashboardSource> {
  const { transport, namespace, clock, file, madeBy } = archive
  const [fleet, completions] = await Promise.all([
    readFleet(transport, { namespace, clock, signal, nodeOf: slimNode }),
    readCompletions(transport, signal),
  ])
  const takenAtMs = clock.wallMs()
  const rows = fleet.nodes.known ? known(fleet.nodes.value.map(createNodeReader())) : fleet.nodes
  const moment: FleetMoment = {
    fleet: { ...fleet, nodes: rows },
    completions,
    freshness: { state: 'live' },
    contactAtMs: takenAtMs,
  }
  return {
    identity: { isLive: false, file, takenAtMs, madeBy, namespace, version },
    async follow(onMoment, until) {
      onMoment(moment)
      if (!until.aborted) await once(until, 'abort')
      throw until.reason
    },
    async explain({ skyhook: name, node: nodeName }, asked) {
      const skyhook = skyhookNamed(fleet.skyhooks, name)
      const node = nodeNamed(fleet.nodes, nodeName)
      const detail = await readNodeDetail(transport, nodeName, asked)
      return nodeAnswer(
        fleet,
        { skyhook, node, detail },
        { actions: archivedNodeActions(name, nodeName, file), here: (command) => command },
      )
    },
    followOutput({ skyhook, node }, { onNote }) {
      const [command, folder] = [logsCommand(skyhook, node), hostFolderOf({ skyhook })]
      onNote(`A support archive has no output of steps. In the cluster: ${command}; on the host: ${folder}`)
      return Promise.resolve()
    },
    async manifest(name) {
      return manifestOf(skyhookNamed(fleet.skyhooks, name))
    },
    async plan(text, asked) {
      return await planEdit(text, { transport, namespace, clock, signal: asked }, 'archive')
    },
  }
}

function nodeNamed(nodes: Known<readonly KubernetesNode[]>, name: string): KubernetesNode {
  if (!nodes.known) throw refusedError(nodes.why)
  const found = nodes.value.find(({ metadata }) => metadata.name === name)
  if (found === undefined) throw notFoundError(`the archive has no Node ${name}`)
  return found
}
