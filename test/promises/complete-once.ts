/**
 * No step succeeds twice on a host without a cause: a change of packages in the spec, an attempt whose end nobody
 * knows, a failure in its package, a run that the package requests, a person's edit of the state, a lost disk.
 */
import { packageKeyOf } from './open-packages.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import type { HostStep } from '../kit/host/observer.ts'
import type { Fact } from './facts.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'

const packagesIn = (skyhook: object | undefined): string =>
  JSON.stringify((skyhook as Skyhook | undefined)?.spec.packages)

/** Agents may work by the state before an edit for so long: watches are slow, and networks are cut. */
const maxLagMs = 120_000

export const completeOnce: Promised = {
  name: 'complete-once',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** When there was the last cause to repeat steps, by host, Skyhook, `host/skyhook/package`. */
    const causeAtMs = new Map<string, number>()
    /** By step: when its last successful run started. */
    const successes = new Map<string, number>()
    let checks = 0

    const hasCause = (host: string, { skyhook, package: name }: HostStep, sinceMs: number): boolean =>
      [skyhook, host, `${host}/${skyhook}/${name}`].some((key) => (causeAtMs.get(key) ?? -Infinity) >= sinceMs)

    function seeEnd(host: string, step: HostStep, isSuccess: boolean): void {
      const { skyhook, package: name, version, mode, path } = step
      const key = [host, skyhook, name, version, mode, path].join(' ')
      if (!isSuccess) return
      const beforeMs = successes.get(key)
      checks++
      if (beforeMs !== undefined && !hasCause(host, step, beforeMs))
        violate(`${name} ${version} ${mode} ${path} of ${skyhook} succeeds a second time on ${host} without a cause`)
      successes.set(key, step.startedAtMs)
    }

    function seeCommit({ change, client }: Extract<Fact, { kind: 'commit' }>, atMs: number): void {
      const { resource, version, previous, type } = change
      const { name, generation, annotations } = version.object.metadata
      if (resource.plural === 'skyhooks') {
        const isEdited = type === 'MODIFIED' && generation !== previous?.object.metadata.generation
        if (type === 'DELETED' || (isEdited && packagesIn(version.object) !== packagesIn(previous?.object)))
          causeAtMs.set(name, atMs + maxLagMs)
      } else if (resource.plural === 'nodes' && client === 'admin') {
        const isEdited = JSON.stringify(annotations) !== JSON.stringify(previous?.object.metadata.annotations)
        const view = evidence.hostNamed(name)
        if (view && isEdited) causeAtMs.set(view.name, atMs + maxLagMs)
      }
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        if (event.kind === 'commit') return seeCommit(event, atMs)
        if (event.kind === 'restored') for (const { name } of world.plan.skyhooks) causeAtMs.set(name, atMs + maxLagMs)
        if (event.kind !== 'host') return
        const { host, event: what } = event
        if (what.event === 'wiped' || (what.event === 'wentDown' && what.how === 'power cut')) causeAtMs.set(host, atMs)
        if (what.event === 'runRequested') causeAtMs.set(`${host}/${what.skyhook}/${what.package}`, atMs)
        if (what.event !== 'stepLost' && what.event !== 'stepEnded') return
        const { step } = what
        const isSuccess = what.event === 'stepEnded' && what.end.outcome === 'exited' && what.end.code === 0
        seeEnd(host, step, isSuccess)
        const isRecorded = what.event === 'stepEnded' && what.isRecorded
        if (!isSuccess || !isRecorded) causeAtMs.set(`${host}/${packageKeyOf(step)}`, atMs)
      },
      checks: () => checks,
    }
  },
}
