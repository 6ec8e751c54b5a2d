/** How a simulated host of a fleet behaves: normally, and what faults make of it while they last. */
import type { FetchFate } from '../host/images.ts'
import type { HostStep } from '../host/observer.ts'
import type { ServiceRestart } from '../host/systemd.ts'

export type HostConditions = {
  /** From a request for a reboot until the host is down. */
  readonly shutdownMs: number
  readonly bootMs: number
  /** From the start of the kubelet until the Node is Ready. */
  readonly readyMs: number
  /** `of`: only of this package, by its key, such as `p0a|1.0.0`. */
  readonly fetch: FetchFate & { readonly of?: string }
  readonly restart: ServiceRestart
  readonly stepMs: number
  /** Whether a step fails. */
  readonly isFailing: (step: HostStep) => boolean
}

const normal: HostConditions = {
  shutdownMs: 3_000,
  bootMs: 15_000,
  readyMs: 3_000,
  fetch: { durationMs: 200 },
  restart: { durationMs: 1_500, result: 'done' },
  stepMs: 1_000,
  isFailing: () => false,
}

export type Conditions = {
  current(): HostConditions
  /** Returns what ends the change; of several changes of one thing the latest counts. */
  change(changes: Partial<HostConditions>): () => void
}

export function createConditions(): Conditions {
  const changes = new Set<Partial<HostConditions>>()
  let merged = normal
  const merge = (): void => void (merged = Object.assign({ ...normal }, ...changes) as HostConditions)
  return {
    current: () => merged,
    change(change) {
      const own = { ...change }
      changes.add(own)
      merge()
      return () => {
        changes.delete(own)
        merge()
      }
    },
  }
}
