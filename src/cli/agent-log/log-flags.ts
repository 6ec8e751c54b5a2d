/** The arguments and flags of the commands that read the logs of agents. */
import { exitCodes } from '../framework/exit-codes.ts'

export const logArguments = { skyhook: { summary: 'name of the Skyhook', complete: 'skyhooks' } } as const

export const logFlags = {
  node: {
    type: 'list',
    placeholder: 'NODE',
    complete: 'nodes',
    summary: 'nodes of this name or pattern; by default ten, those in trouble first',
  },
  package: { type: 'text', placeholder: 'NAME', complete: 'packages', summary: 'only this package' },
} as const

export const logExitCodes = {
  [exitCodes.failed]: 'the log of a node could not be read; the others are shown',
  [exitCodes.notFound]: 'the Skyhook does not exist, or no agent runs on these nodes',
}
