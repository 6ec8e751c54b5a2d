/**
 * Steps and interrupts never overlap on a host: no service is restarted and no reboot is asked for while a step runs.
 * No step starts before the restart has ended, or while the host goes down for the reboot.
 */
import type { HostEvent, HostStep } from '../kit/host/observer.ts'
import { evidenceOf } from './evidence.ts'
import { interruptIn } from './may-end.ts'
import type { Promised } from './promised.ts'

export const interruptApart: Promised = {
  name: 'interrupt-apart',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By host: that it waits for a reboot that it asked for, what restarts, and that it goes down. */
    const rebooting = new Set<string>()
    const underWay = new Map<string, Set<string>>()
    let checks = 0

    const underWayOn = (host: string): Set<string> => {
      const known = underWay.get(host) ?? new Set<string>()
      underWay.set(host, known)
      return known
    }

    function seeStart(host: string, { package: name, mode, path }: HostStep): void {
      checks++
      const [interrupt] = underWayOn(host)
      if (interrupt !== undefined) violate(`${host} starts ${name} ${mode} ${path} while ${interrupt}`)
    }

    function seeInterrupt(host: string, what: string): void {
      checks++
      const [running] = evidence.disruption.runningSteps(host)
      if (running === undefined) return
      violate(`${host} ${what} while ${running.package} ${running.mode} ${running.path} runs`)
    }

    function takeIn(host: string, event: HostEvent): void {
      if (event.event === 'restartRequested') underWayOn(host).add(`${event.unit} restarts`)
      else if (event.event === 'restartEnded') underWayOn(host).delete(`${event.unit} restarts`)
      else if (event.event === 'rebootRequested' && event.answer === 'accepted' && !event.isLost) rebooting.add(host)
      else if (event.event === 'shutdownStarted' && rebooting.has(host)) underWayOn(host).add('it goes down')
      else if (event.event === 'booted') {
        rebooting.delete(host)
        underWay.delete(host)
      }
    }

    return {
      on(event) {
        evidence.see(event)
        if (event.kind !== 'host') return
        if (event.event.event === 'stepStarted') return seeStart(event.host, event.event.step)
        const what = interruptIn(event.event)
        if (what !== undefined) seeInterrupt(event.host, what)
        takeIn(event.host, event.event)
      },
      checks: () => checks,
    }
  },
}
