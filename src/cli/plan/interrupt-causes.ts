/** Why a package is followed by an interrupt: which part of the spec asks for it. */
import type { Interrupt, PackageSpec } from '../../schemas/skyhook.ts'
import { matchesGlob } from '../../stages/interrupt/merge.ts'
import { changedKeys } from '../../stages/model/package-inputs.ts'

export type InterruptCause = {
  readonly package: string
  readonly type: Interrupt['type']
  /** The field of the spec, such as `packages.tuning.configInterrupts["*.conf"]`. */
  readonly field: string
  /** The key of configMap that it matches; absent for the package's own interrupt. */
  readonly key?: string
  /** Only if the package says that it needs it. */
  readonly isConditional: boolean
}

/** What may ask for an interrupt when a package goes from one spec to the other; `before` undefined: it is new. */
export function interruptCauses(
  name: string,
  before: PackageSpec | undefined,
  after: PackageSpec,
): readonly InterruptCause[] {
  const causeOf = ({ type, when }: Interrupt, field: string, key?: string): InterruptCause => ({
    package: name,
    type,
    field: `packages.${name}.${field}`,
    ...(key !== undefined && { key }),
    isConditional: when === 'required',
  })
  const isInstalled = before === undefined || before.version !== after.version
  const own = after.interrupt ? [causeOf(after.interrupt, 'interrupt')] : []
  if (isInstalled) return own
  const keys = changedKeys(before.configMap ?? {}, after.configMap ?? {})
  const patterns = Object.entries({ ...before.configInterrupts, ...after.configInterrupts })
  const keyed = keys.flatMap((key) =>
    patterns.flatMap(([pattern, interrupt]) =>
      matchesGlob(pattern, key) ? [causeOf(interrupt, `configInterrupts[${JSON.stringify(pattern)}]`, key)] : [],
    ),
  )
  return [...keyed, ...own.filter(({ isConditional }) => isConditional)]
}
