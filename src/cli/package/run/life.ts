/**
 * The whole life of a package on one host, as acts: each stage is killed in the middle, run to its end, and run again.
 * Pure; `live.ts` carries the acts out.
 */
import { checkOf, type PackageConfig, type Stage } from '../../../schemas/package-config.ts'
import type { Interrupt } from '../../../schemas/skyhook.ts'

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
export function lifeOf(current: PackageConfig, { previous, interrupt, ignored = [] }: LifeOptions = {}): Act[] {
  const hasSteps = (config: PackageConfig, stage: Stage): boolean =>
    (config.modes[stage]?.length ?? 0) + (config.modes[checkOf(stage)]?.length ?? 0) > 0
  const thorough = (stage: Stage): Act[] => {
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
  const once = (stage: Stage): Act[] =>
    previous !== undefined && hasSteps(previous, stage)
      ? [{ act: 'run', version: 'previous', stage, isRepeated: false }]
      : []
  const installation: readonly Stage[] = previous === undefined ? ['apply', 'config', 'upgrade'] : ['upgrade', 'config']
  const lasting: readonly Stage[] = [...installation, 'post-interrupt']
  const interrupted = (run: InterruptRun): Act[] =>
    interrupt === undefined ? [] : [{ act: 'interrupt', interrupt, run }]
  const checksAfter = (stage: Stage): Act[] =>
    (current.modes[checkOf(stage)]?.length ?? 0) > 0 ? [{ act: 'check-after', version: 'current', stage }] : []
  return [
    ...once('apply'),
    ...once('config'),
    ...installation.flatMap(thorough),
    ...(interrupt === undefined
      ? []
      : [
          ...interrupted('killed'),
          ...interrupted('first'),
          ...thorough('post-interrupt'),
          ...interrupted('again'),
          ...lasting.flatMap(checksAfter),
        ]),
    ...thorough('uninstall'),
    ...(hasSteps(current, 'uninstall') ? [{ act: 'look-for-remains', ignored } as const] : []),
  ]
}

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
