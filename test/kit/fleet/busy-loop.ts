/** Notices a process that repeats an effect without a pause: on a real host it would take a processor for itself. */
import type { HostEvent } from '../host/observer.ts'

/** A package with all its stages has a tenth of it. */
const maxEffectsPerSecond = 400

/** `onBusy` is called once per process. */
export function createBusyLoopDetector(
  onBusy: (name: string, count: number) => void,
): (event: HostEvent, atMs: number) => void {
  const counts = new Map<number, { second: number; count: number }>()
  return (one, atMs) => {
    if (one.event === 'agentEnded') counts.delete(one.process)
    if (one.event !== 'effect') return
    const second = Math.floor(atMs / 1_000)
    const current = counts.get(one.process)
    const count = current?.second === second ? current.count + 1 : 1
    counts.set(one.process, { second, count })
    if (count === maxEffectsPerSecond) onBusy(one.name, count)
  }
}
