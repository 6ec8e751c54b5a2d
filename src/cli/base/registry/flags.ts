import { defineFlags, type FlagValues } from '../framework/command.ts'

/** How to reach a registry, in addition to the stored settings of this machine. */
export const registryFlags = defineFlags({
  ca: {
    type: 'text',
    placeholder: 'FILE',
    summary: 'trust the authorities in this PEM file for the registry',
    complete: 'files',
  },
  plainHttp: { type: 'boolean', summary: 'reach the registry without TLS' },
})

export type RegistryFlags = FlagValues<typeof registryFlags>
