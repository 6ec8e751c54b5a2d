import { skyhooksPath, policiesPath } from '../../schemas/api.ts'
import { timeoutSignal } from '../../schemas/clock.ts'
import type { Connection } from '../connection/connection.ts'
import type { Command, CompletionSource } from './command.ts'
import type { Machine } from './machine.ts'
import { type GlobalFlags, parseGlobals } from './parse.ts'
import { formatSuggestions, suggest } from './suggest.ts'

/** A person waits for it after each press of tab. */
const timeoutMs = 1_500

type Listed = { readonly items?: readonly { readonly metadata: { readonly name: string }; readonly spec?: Listing }[] }
type Listing = { readonly packages?: Readonly<Record<string, unknown>> }

export type CompletionPorts = {
  readonly connect: (flags: GlobalFlags) => Promise<Connection>
  readonly contextNames: (flags: GlobalFlags) => Promise<readonly string[]>
}

const paths = {
  skyhooks: skyhooksPath,
  packages: skyhooksPath,
  deploymentPolicies: policiesPath,
  nodes: '/api/v1/nodes',
  namespaces: '/api/v1/namespaces',
} as const satisfies Partial<Record<CompletionSource, string>>

/** Writes what may follow the typed text. Silent if a cluster does not answer in time: a shell shows no errors. */
export async function complete(
  typed: readonly string[],
  commands: readonly Command[],
  machine: Machine,
  ports: CompletionPorts,
): Promise<void> {
  const namesOf = async (source: Exclude<CompletionSource, 'files'>): Promise<readonly string[]> => {
    try {
      const flags = parseGlobals(typed.slice(0, -1))
      return source === 'contexts' ? await ports.contextNames(flags) : await namesInCluster(source, flags)
    } catch {
      return []
    }
  }
  const namesInCluster = async (source: keyof typeof paths, flags: GlobalFlags): Promise<readonly string[]> => {
    const { transport } = await ports.connect(flags)
    const signal = AbortSignal.any([machine.signal, timeoutSignal(machine.clock, timeoutMs)])
    try {
      const { items = [] } = await transport.json<Listed>('GET', paths[source], { query: { limit: 500 }, signal })
      if (source !== 'packages') return items.map(({ metadata }) => metadata.name).sort()
      return [...new Set(items.flatMap(({ spec }) => Object.keys(spec?.packages ?? {})))].sort()
    } finally {
      transport.close()
    }
  }
  machine.stdout.write(formatSuggestions(await suggest(typed, commands, namesOf)))
}
