/** No service is restarted and no reboot is asked for while a step runs on the host. */
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'

export const interruptApart: Promised = {
  name: 'interrupt-apart',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    let checks = 0
    return {
      on(event) {
        evidence.see(event)
        if (event.kind !== 'host') return
        const { event: what } = event
        if (what.event !== 'restartRequested' && what.event !== 'rebootRequested') return
        checks++
        const [running] = evidence.disruption.runningSteps(event.host)
        if (running === undefined) return
        const asked = what.event === 'restartRequested' ? `a restart of ${what.unit}` : 'a reboot'
        violate(`${event.host} asks for ${asked} while ${running.package} ${running.mode} ${running.path} runs`)
      },
      checks: () => checks,
    }
  },
}
