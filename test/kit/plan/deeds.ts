/** What happens on a node for one Skyhook, as a plan foretells it and as a history tells it: the two are compared. */
import type { RehearsedStep } from '../../../src/cli/reason/plan/rehearsal.ts'
import type { MergedInterrupt } from '../../../src/schemas/package-record.ts'

/** In the words of a plan. */
export type Deed =
  | { readonly deed: 'drain' }
  | { readonly deed: 'taint' }
  | { readonly deed: 'stage'; readonly package: string; readonly version: string; readonly stage: string }
  | {
      readonly deed: 'interrupt'
      /** Such as `reboot` or `service cron`. */
      readonly what: string
      readonly packages: readonly string[]
    }

/** Without what nobody notices: an interrupt of type noop does nothing. */
export const foretoldDeeds = (steps: readonly RehearsedStep[]): readonly Deed[] =>
  steps.flatMap((step): readonly Deed[] => {
    switch (step.do) {
      case 'taint':
      case 'drain':
        return [{ deed: step.do }]
      case 'stage': {
        const { package: name, version, stage } = step
        return [{ deed: 'stage', package: name, version, stage }]
      }
      case 'interrupt':
        return interruptDeed(step, step.packages)
    }
  })

export function interruptDeed(
  { type, services = [], alsoRestartAllServices }: MergedInterrupt,
  packages: readonly string[],
): readonly Deed[] {
  if (type === 'noop') return []
  const more = alsoRestartAllServices ? ['and restartAllServices'] : []
  return [{ deed: 'interrupt', what: [type, ...services.toSorted(), ...more].join(' '), packages: packages.toSorted() }]
}

export const deedText = (deed: Deed): string => {
  switch (deed.deed) {
    case 'drain':
    case 'taint':
      return deed.deed
    case 'stage':
      return `${deed.package} ${deed.version} ${deed.stage}`
    case 'interrupt':
      return `${deed.what} for ${deed.packages.join()}`
  }
}

/** Which order counts: packages work side by side, and how long the steps of one take is nobody's promise. */
export type Order = 'serial' | 'side by side'

/**
 * The first way in which the deeds differ, in words; undefined where they are the same: as often, and in an order that
 * each package, its interrupts and the drain before them keep.
 */
export function differenceOf(foretold: readonly Deed[], done: readonly Deed[], order: Order): string | undefined {
  const [expected, found] = [foretold.map(deedText), done.map(deedText)]
  const more = without(found, expected)
  if (more.length > 0) return `not foretold: ${more.join(', ')}`
  const less = without(expected, found)
  if (less.length > 0) return `foretold and not done: ${less.join(', ')}`
  const packages = [...new Set(foretold.flatMap((deed) => packagesOf(deed)))]
  for (const name of packages) {
    const [own, real] = [threadOf(foretold, name), threadOf(done, name)]
    if (own !== real) return `package ${name} in another order: foretold ${own}; done ${real}`
  }
  if (order === 'side by side' || orderOf(foretold) === orderOf(done)) return undefined
  return 'in another order, although the Skyhook is serial'
}

/** Without the drain: while a node finds out what runs there, the package that is next may start. */
const orderOf = (deeds: readonly Deed[]): string =>
  deeds
    .filter(({ deed }) => deed !== 'drain')
    .map(deedText)
    .join()

const packagesOf = (deed: Deed): readonly string[] => {
  if (deed.deed === 'stage') return [deed.package]
  return deed.deed === 'interrupt' ? deed.packages : []
}

/**
 * What concerns one package, with the drain before its interrupt. The first package that needs the node drained has it
 * drained: where the drain stands among the stages of one counts if no other one owes an interrupt under it.
 */
function threadOf(deeds: readonly Deed[], name: string): string {
  const thread: Deed[] = []
  const sharedDrain: Deed[] = []
  for (const [at, deed] of deeds.entries()) {
    if (deed.deed === 'drain') {
      const owners = ownersUnder(deeds.slice(at + 1))
      if (!owners.has(name)) continue
      if (owners.size === 1) thread.push(deed)
      else sharedDrain.push(deed)
    }
    if (!packagesOf(deed).includes(name)) continue
    if (deed.deed === 'interrupt') thread.push(...sharedDrain.splice(0))
    thread.push(deed)
  }
  return thread.map(deedText).join(', ')
}

/** Packages whose interrupts come before the next drain. */
function ownersUnder(deeds: readonly Deed[]): ReadonlySet<string> {
  const next = deeds.findIndex(({ deed }) => deed === 'drain')
  const under = next < 0 ? deeds : deeds.slice(0, next)
  return new Set(under.flatMap((deed) => (deed.deed === 'interrupt' ? deed.packages : [])))
}

/** As often as they are there. */
function without(texts: readonly string[], others: readonly string[]): readonly string[] {
  const left = [...others]
  return texts.filter((text) => {
    const at = left.indexOf(text)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}
