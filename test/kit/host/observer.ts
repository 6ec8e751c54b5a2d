/** What happens on a simulated host, as the host sees it: the truth that a judge of a fleet goes by. */
import type { StepEnd } from '../../../src/schemas/step-end.ts'

/** A step as its unit says what it is. */
export type HostStep = {
  readonly unit: string
  /** Of the attempt, in the names of its files. */
  readonly attempt: string
  readonly skyhook: string
  /** Of the Skyhook for which the agent runs it, from its folder; absent where the path does not tell. */
  readonly skyhookUid?: string | undefined
  /** Of the spec that the work is of, from the same folder. */
  readonly generation?: number | undefined
  readonly package: string
  readonly version: string
  /** `apply`, `config-check` and the like. */
  readonly mode: string
  /** Of the script, below `skyhook_dir/`. */
  readonly path: string
  readonly invocationId: string
  readonly startedAtMs: number
}

export type ProcessKind = 'agent' | 'census'

export type HostEvent =
  | { readonly event: 'agentStarted'; readonly process: number; readonly kind: ProcessKind }
  | { readonly event: 'agentEnded'; readonly process: number; readonly kind: ProcessKind }
  | { readonly event: 'stepStarted'; readonly step: HostStep }
  /** `isRecorded`: its record is on disk. */
  | { readonly event: 'stepEnded'; readonly step: HostStep; readonly end: StepEnd; readonly isRecorded: boolean }
  /** Because the host is shutting down: after the boot, its agent cannot tell it from a step that was lost. */
  | { readonly event: 'stepRefused'; readonly step: HostStep }
  /** Its process died with the host, and nobody wrote down how. */
  | { readonly event: 'stepLost'; readonly step: HostStep }
  /** The status that a package wrote asks for another run of it. */
  | { readonly event: 'runRequested'; readonly skyhook: string; readonly package: string }
  | { readonly event: 'restartRequested'; readonly unit: string }
  | { readonly event: 'restartEnded'; readonly unit: string; readonly result: string }
  /** `isLost`: logind said yes, and nothing will come of it. */
  | { readonly event: 'rebootRequested'; readonly answer: 'accepted' | 'refused'; readonly isLost: boolean }
  | { readonly event: 'shutdownStarted'; readonly bootId: string }
  | { readonly event: 'wentDown'; readonly bootId: string; readonly how: 'shutdown' | 'power cut' }
  | { readonly event: 'booted'; readonly bootId: string }
  /** Of a control-plane host: what the kubelet runs from files runs again since the boot. */
  | { readonly event: 'staticPodsRun' }
  | { readonly event: 'wiped' }
  | { readonly event: 'imageStored'; readonly digest: string }
  /** Something that outlives the process has just happened; its name is that of the failpoint. */
  | { readonly event: 'effect'; readonly process: number; readonly name: string }

/** `atMs` is virtual time, which no clock of a host changes. */
export type HostListener = (event: HostEvent, atMs: number) => void
