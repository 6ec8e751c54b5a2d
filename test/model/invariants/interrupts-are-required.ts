import { type Invariant, violate } from './invariant.ts'

/** An interrupt that a spec leaves to its packages runs only if one of them requires it. */
export const interruptsAreRequired: Invariant = ({ node, host }) => ({
  interruptStarts({ owners }, { metadata }) {
    const entries = owners.map((key) => node.journal.skyhooks[metadata.name]?.packages[key])
    const isRequired = (name: string): boolean => host.get(`${metadata.name}/${name}`)?.requiredInBoot === node.bootId
    if (entries.every((entry) => entry?.pendingInterrupt?.interrupt.when === 'required' && !isRequired(entry.name)))
      violate('an interrupt runs that no package requires')
  },
})
