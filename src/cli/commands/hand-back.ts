import { skyhookConditions } from '../../schemas/catalogue/conditions.ts'
import { listAgentDaemonSets } from '../connection/connection.ts'
import { defineCommand } from '../framework/command.ts'
import { refusedError, exitCodes } from '../framework/command-error.ts'
import { applyChanges, changeFormats, type Edit, type Editable } from '../objects/edit.ts'
import { listSkyhookNames, noSkyhook, skyhookPath } from '../objects/skyhooks.ts'

export const handBack = defineCommand({
  name: 'hand-back',
  summary: 'after the agents are removed: remove from all Skyhooks the conditions that only agents keep current',
  description:
    'Ready, Reconciling, Stalled and others stay on a Skyhook as the last agent wrote them. After an edit they are ' +
    'wrong, and kubectl wait never ends. The status of the Skyhook operator stays, like everything on Nodes. ' +
    'Refused while agents are installed: they would write the conditions again.',
  example: 'kubectl skyhook hand-back --yes',
  formats: changeFormats,
  exitCodes: { [exitCodes.refused]: 'agents are installed, or refused by the API server' },
  isAction: true,
  run: async (context) => {
    const { transport } = await context.connect()
    const [installed] = (await listAgentDaemonSets(transport, context.signal)).items ?? []
    if (installed !== undefined) {
      const { namespace, name } = installed.metadata
      throw refusedError(`DaemonSet ${namespace}/${name} of the agents is installed`, 'remove the agents first')
    }
    const names = await listSkyhookNames(transport, context.signal)
    if (names.length === 0) context.stderr.write('there is no Skyhook\n')
    else
      await context.confirm(`Remove the conditions of agents from all ${names.length} Skyhooks (${names.join(', ')})?`)
    return await applyChanges(
      context,
      names.map((name) => ({
        kind: 'Skyhook',
        name,
        path: `${skyhookPath(name)}/status`,
        edit: withoutOurConditions,
        done: 'handed back',
        notFound: () => noSkyhook(name),
      })),
    )
  },
})

const ourConditions: ReadonlySet<string> = new Set(
  Object.entries(skyhookConditions).flatMap(([type, { origin }]) => (origin === 'skyhookd' ? [type] : [])),
)

function withoutOurConditions({ status }: Editable): Edit | undefined {
  const conditions = status?.conditions ?? []
  const kept = conditions.filter(({ type }) => !ourConditions.has(type))
  return kept.length === conditions.length ? undefined : { conditions: kept }
}
