import { defineFlags, type FlagValues } from '../framework/command.ts'

/** How a registry is reached, beside what this machine has stored. */
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
