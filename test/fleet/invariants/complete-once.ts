/**
 * No step succeeds twice on a host without a cause: a change of the spec, an attempt whose end nobody knows, a failure
 * in its package, a person's edit of the state, a lost disk.
 */
import type { HostStep } from '../host/observer.ts'
import { evidenceOf } from './evidence.ts'
import type { Invariant } from './invariant.ts'

export const completeOnce: Invariant = {
  name: 'complete-once',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** How many causes to repeat steps there have been, by host, `host/skyhook` and `host/skyhook/package`. */
    const causes = new Map<string, number>()
    /** By step: the causes at its last success. */
    const successes = new Map<string, number>()
    let checks = 0

    const add = (key: string): void => void causes.set(key, (causes.get(key) ?? 0) + 1)
    const causesOf = (host: string, { skyhook, package: name }: HostStep): number =>
      [skyhook, host, `${host}/${skyhook}`, `${host}/${skyhook}/${name}`].reduce(
        (sum, key) => sum + (causes.get(key) ?? 0),
        0,
      )

    function seeEnd(host: string, step: HostStep, isSuccess: boolean, isRecorded: boolean): void {
      const { skyhook, package: name, version, mode, path } = step
      const key = [host, skyhook, name, version, mode, path].join(' ')
      if (isSuccess) {
        const now = causesOf(host, step)
        checks++
        if (successes.get(key) === now)
          violate(`${name} ${version} ${mode} ${path} of ${skyhook} succeeds a second time on ${host} without a cause`)
        successes.set(key, now)
      }
      if (!isSuccess || !isRecorded) add(`${host}/${skyhook}/${name}`)
    }

    return {
      on(event) {
        evidence.see(event)
        if (event.kind === 'commit') {
          const { resource, version, previous } = event.change
          const { name, generation, annotations } = version.object.metadata
          if (resource.plural === 'skyhooks' && generation !== previous?.object.metadata.generation) add(name)
          if (resource.plural === 'skyhooks' && event.change.type === 'DELETED') add(name)
          const isEdited = JSON.stringify(annotations) !== JSON.stringify(previous?.object.metadata.annotations)
          const view = resource.plural === 'nodes' ? evidence.hostNamed(name) : undefined
          if (view && event.client === 'admin' && isEdited) add(view.name)
        } else if (event.kind === 'host') {
          const { host, event: what } = event
          if (what.event === 'wiped' || (what.event === 'wentDown' && what.how === 'power cut')) add(host)
          else if (what.event === 'stepLost') add(`${host}/${what.step.skyhook}/${what.step.package}`)
          else if (what.event === 'stepEnded')
            seeEnd(host, what.step, what.end.outcome === 'exited' && what.end.code === 0, what.isRecorded)
        }
      },
      checks: () => checks,
    }
  },
}
