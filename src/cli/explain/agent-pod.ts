/** Why the pod of an agent is not Ready: what its container waits for, or how it ended, and whether that passes. */
import { silentAfterMs } from '../../stages/skyhook/gates.ts'
import type { AgentPod } from '../fleet-view/fleet-view.ts'
import type { Vitals, Warning } from '../fleet-view/vitals.ts'

/**
 * `image`: it cannot be pulled. `set-up`: its container cannot be made, or its pod cannot be placed. `crash`: its
 * container ended. `hang`: it runs and does not answer. `start`: it is on its way.
 */
export type PodFailure = {
  readonly kind: 'image' | 'set-up' | 'crash' | 'hang' | 'start'
  /** For brackets: the message of the kubelet or the scheduler; may be empty. */
  readonly why: string
  /** It does not pass by itself, unlike the start of a pod that a rolling update replaces. */
  readonly isLasting: boolean
}

const imageErrors: ReadonlySet<string> = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
])
const setUpErrors: ReadonlySet<string> = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'StartError',
  'ContainerCannotRun',
  'Evicted',
])
/** Normal reasons to wait, while a pod starts. */
const startStates: ReadonlySet<string | undefined> = new Set([undefined, 'ContainerCreating', 'PodInitializing'])

/** An agent answers its probe a second after its start. */
export const slowStartMs = 30_000

/** The kubelet retries a mount after two minutes at most. */
const repeatedWithinMs = 150_000

/** `pod` is not Ready. */
export function podFailure(pod: AgentPod, warnings: Vitals['warnings'], nowMs: number): PodFailure {
  const { containerError, sinceMs, runningSinceMs, unplaced } = pod
  const isOld = nowMs - (sinceMs ?? -Infinity) >= silentAfterMs
  const why = [containerError, pod.containerMessage].filter((text) => text !== undefined && text !== '').join(': ')
  if (unplaced) return { kind: 'set-up', why: unplaced.why, isLasting: true }
  if (containerError !== undefined && imageErrors.has(containerError)) return { kind: 'image', why, isLasting: true }
  if (containerError !== undefined && setUpErrors.has(containerError)) return { kind: 'set-up', why, isLasting: true }
  if (!startStates.has(containerError)) return { kind: 'crash', why, isLasting: true }
  if (runningSinceMs !== undefined)
    return { kind: 'hang', why: '', isLasting: isOld || nowMs - runningSinceMs >= slowStartMs }
  const warning = warningAbout('Pod', pod.name, warnings)
  // mounts and sandboxes are retried: a young one may be a first attempt, and an old one may have passed since
  if (warning && nowMs - warning.atMs < repeatedWithinMs)
    return { kind: 'set-up', why: warning.message, isLasting: nowMs - (sinceMs ?? -Infinity) >= slowStartMs / 2 }
  return { kind: 'start', why, isLasting: isOld }
}

export const warningAbout = (kind: string, name: string, warnings: Vitals['warnings']): Warning | undefined =>
  warnings.known ? warnings.value.find((one) => one.kind === kind && one.name === name) : undefined
