/** pause, resume, disable and enable: one annotation on a Skyhook. */
import { disableKey, pauseKey } from '../../schemas/annotations.ts'
import { defineCommand, type Command, type Context } from '../framework/command.ts'
import { usageError, exitCodes, type ExitCode } from '../framework/command-error.ts'
import { applyChanges, changeFormats } from '../objects/edit.ts'
import { listSkyhookNames, noSkyhook, skyhookPath } from '../objects/skyhooks.ts'

type Switch = {
  readonly name: 'pause' | 'resume' | 'disable' | 'enable'
  readonly key: string
  readonly isOn: boolean
  readonly done: string
  /** Asked before; absent: the action has no risk. */
  readonly question?: string
  readonly summary: string
  readonly description: string
}

const switches: readonly Switch[] = [
  {
    name: 'pause',
    key: pauseKey,
    isOn: true,
    done: 'paused',
    question: 'Nodes at work stop after their current step, and stay cordoned if they are.',
    summary: 'pause a Skyhook: nodes finish the current step, and start nothing',
    description:
      'Nodes that are at work keep their slot and their cordon until the Skyhook is resumed. A paused Skyhook still ' +
      'holds up Skyhooks of a later priority on nodes where it is not complete.',
  },
  {
    name: 'resume',
    key: pauseKey,
    isOn: false,
    done: 'resumed',
    summary: 'resume a paused Skyhook',
    description: 'Nodes continue where they stopped. It does not ask for confirmation.',
  },
  {
    name: 'disable',
    key: disableKey,
    isOn: true,
    done: 'disabled',
    question: 'Nodes at work finish, others start nothing.',
    summary: 'disable a Skyhook: nodes at work finish, others start nothing',
    description: 'A disabled Skyhook does not hold up Skyhooks of a later priority.',
  },
  {
    name: 'enable',
    key: disableKey,
    isOn: false,
    done: 'enabled',
    summary: 'enable a disabled Skyhook',
    description: 'It does not ask for confirmation.',
  },
]

export const lifecycleCommands: readonly Command[] = switches.map((one) =>
  defineCommand({
    name: one.name,
    summary: one.summary,
    description: one.description,
    example: `kubectl skyhook ${one.name} tuning${one.question === undefined ? '' : ' --yes'}`,
    arguments: { skyhook: { summary: 'name of the Skyhook', isOptional: true, complete: 'skyhooks' } },
    flags: { all: { type: 'boolean', summary: 'every Skyhook of the cluster instead of one' } },
    formats: changeFormats,
    exitCodes: {
      [exitCodes.notFound]: 'the Skyhook does not exist',
      ...(one.question === undefined && { [exitCodes.refused]: 'refused by the API server' }),
    },
    isAction: true,
    run: async (context, { arguments: { skyhook }, flags: { all } }) => await runSwitch(context, one, skyhook, all),
  }),
)

async function runSwitch(context: Context, one: Switch, name: string | undefined, all: boolean): Promise<ExitCode> {
  if ((name === undefined) !== all) {
    const message = all ? 'give the name of a Skyhook or --all, not both' : 'the name of a Skyhook is missing'
    throw usageError(message, `kubectl skyhook ${one.name} NAME, or --all for every Skyhook`)
  }
  const names = name === undefined ? await allNames(context) : [name]
  if (names.length === 0) context.stderr.write('there is no Skyhook\n')
  const what = name === undefined ? `all ${names.length} Skyhooks (${names.join(', ')})` : `Skyhook "${name}"`
  if (one.question !== undefined && names.length > 0) await context.confirm(`${one.name} ${what}? ${one.question}`)
  return await applyChanges(
    context,
    names.map((skyhook) => ({
      kind: 'Skyhook',
      name: skyhook,
      path: skyhookPath(skyhook),
      edit: () => ({ annotations: { [one.key]: one.isOn ? 'true' : null } }),
      done: one.done,
      notFound: () => noSkyhook(skyhook),
    })),
  )
}

async function allNames(context: Context): Promise<readonly string[]> {
  const { transport } = await context.connect()
  return await listSkyhookNames(transport, context.signal)
}
