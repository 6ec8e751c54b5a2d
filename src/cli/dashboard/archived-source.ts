/** A support archive as the data of a dashboard: one moment, which stays. */
import { once } from 'node:events'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Clock } from '../../schemas/clock.ts'
import { hostFolderOf } from '../agent-log/step-texts.ts'
import { notFoundError } from '../framework/command-error.ts'
import { version } from '../../schemas/version.ts'
import { readCompletions } from '../status/read-completions.ts'
import { readRollouts } from '../status/read-rollouts.ts'
import { archivedNodeActions, logsCommand } from './commands.ts'
import { planEdit } from './edit-plan.ts'
import { manifestOf } from './manifest.ts'
import { answerAbout, skyhookNamed } from './node-answer.ts'
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
    readRollouts(transport, { namespace, clock, signal }),
    readCompletions(transport, signal),
  ])
  const takenAtMs = clock.wallMs()
  const moment: FleetMoment = { fleet, completions, freshness: { state: 'live' }, contactAtMs: takenAtMs }
  return {
    identity: { isLive: false, file, takenAtMs, madeBy, namespace, version },
    async follow(onMoment, until) {
      onMoment(moment)
      if (!until.aborted) await once(until, 'abort')
      throw until.reason
    },
    explain: async (of, asked) =>
      await answerAbout(
        of,
        fleet,
        {
          transport,
          actions: archivedNodeActions(of.skyhook, of.node, file),
          here: (command) => command,
          noNode: () => notFoundError(`the archive has no Node ${of.node}`),
        },
        asked,
      ),
    followOutput({ skyhook, node }, onPart) {
      const [command, folder] = [logsCommand(skyhook, node), hostFolderOf({ skyhook })]
      onPart({ note: `A support archive has no output of steps. In the cluster: ${command}; on the host: ${folder}` })
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
