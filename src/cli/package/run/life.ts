/**
 * The whole life of a package on one host, as acts: each stage is killed in the middle, run to its end, and run again.
 * Pure; `live.ts` carries the acts out.
 */
import { checkOf, type PackageConfig, type Stage } from '../../../schemas/package-config.ts'
import type { Interrupt, StageName } from '../../../schemas/skyhook.ts'

export type Act =
  /** The check of a stage whose work is not there (any more) must fail. */
  | { readonly act: 'check-before'; readonly version: Version; readonly stage: Stage }
  /** Every process of a step of the stage is killed. */
  | { readonly act: 'kill'; readonly version: Version; readonly stage: Stage }
  /** All steps and the check. `isRepeated`: the stage was complete before. */
  | { readonly act: 'run'; readonly version: Version; readonly stage: Stage; readonly isRepeated: boolean }
  | { readonly act: 'interrupt'; readonly interrupt: Interrupt; readonly run: InterruptRun }
  /** The check of a stage that was complete before the last interrupt. */
  | { readonly act: 'check-after'; readonly version: Version; readonly stage: Stage }
  /** The stages so far must have left only what the package's logs and state folder are for, and what is ignored. */
  | { readonly act: 'look-for-remains'; readonly ignored: readonly string[] }

/** Of an upgrade, the version before it; else there is one only. */
export type Version = 'previous' | 'current'

/** `killed`: the power of the host is cut, or the processes of the services are killed, while it takes place. */
export type InterruptRun = 'killed' | 'first' | 'again'

export type LifeOptions = {
  /** The version that is installed before the upgrade. */
  readonly previous?: PackageConfig
  readonly interrupt?: Interrupt
  /** Patterns of what may be left behind. */
  readonly ignored?: readonly string[]
}

/** The acts, in order. Stages without steps are left out, as the agent skips them. */
export function lifeOf(current: PackageConfig, options: LifeOptions = {}): Act[] {
  const { previous, interrupt, ignored = [] } = options
  const thorough = (stage: Stage): Act[] => thoroughActs(stage, current, previous)
  const installation = installationAfter(previous)
  const lasting: readonly Stage[] = [...installation, 'post-interrupt']
  return [
    ...previousActs(previous),
    ...installation.flatMap(thorough),
    ...(interrupt === undefined
      ? []
      : [
          { act: 'interrupt', interrupt, run: 'killed' } as const,
          { act: 'interrupt', interrupt, run: 'first' } as const,
          ...thorough('post-interrupt'),
          { act: 'interrupt', interrupt, run: 'again' } as const,
          ...lasting.flatMap((stage) => checkAfter(stage, current)),
        ]),
    ...thorough('uninstall'),
    ...(hasSteps(current, 'uninstall') ? [{ act: 'look-for-remains', ignored } as const] : []),
  ]
}

/** The stages that a life goes through, in order. */
export function stagesOf(current: PackageConfig, { previous, interrupt }: LifeOptions = {}): StageName[] {
  const has = (stage: Stage): boolean => hasSteps(current, stage)
  return [
    ...installationAfter(previous).filter(has),
    ...(interrupt === undefined ? [] : ['interrupt' as const, ...(['post-interrupt'] as const).filter(has)]),
    ...(['uninstall'] as const).filter(has),
  ]
}

/**
 * The acts of one stage of `stagesOf`: what a node does before it runs once, and nothing comes after it. An upgrade
 * from the package's own version is before no other stage: no node makes one.
 */
export function lifeOfStage(stage: StageName, current: PackageConfig, options: LifeOptions = {}): Act[] {
  const { previous, interrupt, ignored = [] } = options
  const before = stagesOf(current, options).filter(
    (one) => previous !== undefined || one !== 'upgrade' || one === stage,
  )
  const once = (one: StageName): Act[] => {
    if (one !== 'interrupt') return [{ act: 'run', version: 'current', stage: one, isRepeated: false }]
    return interrupt === undefined ? [] : [{ act: 'interrupt', interrupt, run: 'first' }]
  }
  const installed = before.slice(0, before.indexOf(stage))
  const itself = (): Act[] => {
    if (stage !== 'interrupt') return thoroughActs(stage, current, previous)
    const done = installed.flatMap((one) => (one === 'interrupt' ? [] : checkAfter(one, current)))
    return interrupt === undefined
      ? []
      : [{ act: 'interrupt', interrupt, run: 'killed' }, { act: 'interrupt', interrupt, run: 'first' }, ...done]
  }
  return [
    ...previousActs(previous),
    ...installed.flatMap(once),
    ...itself(),
    ...(stage === 'uninstall' ? [{ act: 'look-for-remains', ignored } as const] : []),
  ]
}

const installationAfter = (previous: PackageConfig | undefined): readonly Stage[] =>
  previous === undefined ? ['apply', 'config', 'upgrade'] : ['upgrade', 'config']

const hasSteps = (config: PackageConfig, stage: Stage): boolean =>
  (config.modes[stage]?.length ?? 0) + (config.modes[checkOf(stage)]?.length ?? 0) > 0

/** A stage that is killed in the middle, run to its end and run again. */
function thoroughActs(stage: Stage, current: PackageConfig, previous: PackageConfig | undefined): Act[] {
  if (!hasSteps(current, stage)) return []
  // An upgrade from the own version, the same configuration in the previous one, and an interrupt bring what the
  // check looks for without the stage.
  const isPresentBefore =
    stage === 'post-interrupt' ||
    (stage === 'upgrade' && previous === undefined) ||
    (stage === 'config' && previous !== undefined && hasSteps(previous, 'config'))
  return [
    ...(isPresentBefore ? [] : [{ act: 'check-before', version: 'current', stage } as const]),
    // where only the check has steps there is no work to kill
    ...((current.modes[stage]?.length ?? 0) > 0 ? [{ act: 'kill', version: 'current', stage } as const] : []),
    { act: 'run', version: 'current', stage, isRepeated: false },
    { act: 'run', version: 'current', stage, isRepeated: true },
  ]
}

/** How the version before an upgrade comes onto the host. */
const previousActs = (previous: PackageConfig | undefined): Act[] =>
  previous === undefined
    ? []
    : (['apply', 'config'] as const)
        .filter((stage) => hasSteps(previous, stage))
        .map((stage) => ({ act: 'run', version: 'previous', stage, isRepeated: false }))

const checkAfter = (stage: Stage, current: PackageConfig): Act[] =>
  (current.modes[checkOf(stage)]?.length ?? 0) > 0 ? [{ act: 'check-after', version: 'current', stage }] : []

/** What an act is called in the report. */
export function nameOf(act: Act): string {
  switch (act.act) {
    case 'check-before':
      return `${checkOf(act.stage)} before ${act.stage}`
    case 'check-after':
      return `${checkOf(act.stage)} after the interrupt`
    case 'kill':
      return `${act.stage}, killed in the middle`
    case 'run': {
      const version = act.version === 'previous' ? ' of the previous version' : ''
      return `${act.stage}${version}${act.isRepeated ? ', again' : ''}`
    }
    case 'interrupt':
      return `${nameOfInterrupt(act.interrupt)}${runNames[act.run]}`
    case 'look-for-remains':
      return 'what is left behind'
  }
}

const runNames: Readonly<Record<InterruptRun, string>> = {
  killed: ', killed in the middle',
  first: '',
  again: ', again',
}

const nameOfInterrupt = ({ type, services = [] }: Interrupt): string =>
  type === 'service' ? `restart of ${services.join(', ')}` : `interrupt ${type}`
