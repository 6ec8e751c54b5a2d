import { expect, test } from 'vitest'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import { otherInterrupt, otherWork } from './run.ts'

const bootId = 'boot'
const interrupted = (type: string, inBoot = bootId) => ({
  packages: {},
  interrupt: { id: 'i', bootId: inBoot, interrupt: { type } },
})
const interrupting = interrupted('service')
const anInterrupt = 'the interrupt of Skyhook other ends'
const stepping = {
  packages: { 'a|1': { progress: { state: 'running', stage: 'apply', attempt: { steps: [{ id: 'step', bootId }] } } } },
}
const idle = { packages: {} }

function asking(other: object, own: object = idle) {
  const snapshot = { bootId, attempts: new Map(), interrupts: new Map(), journal: { skyhooks: { s: own, other } } }
  const view = { metadata: { name: 's' } }
  return { snapshot: snapshot as unknown as Snapshot, view: view as unknown as SkyhookView }
}

test.each([
  ['nothing', idle, undefined, undefined],
  ['an interrupt', interrupting, anInterrupt, anInterrupt],
  ['a restart of services that continues after a boot', interrupted('service', 'earlier'), anInterrupt, anInterrupt],
  ['a reboot that has happened', interrupted('reboot', 'earlier'), undefined, undefined],
  ['a step', stepping, undefined, 'the step of Skyhook other ends'],
] as const)(
  '%s of another Skyhook on the node holds up steps and interrupts as it has to',
  (_, other, step, interrupt) => {
    const messageOf = (end: string | undefined) =>
      end && { reason: 'WaitingForOtherSkyhook', message: `work continues on this node when ${end}` }
    expect(otherInterrupt(asking(other))).toEqual(messageOf(step))
    expect(otherWork(asking(other))).toEqual(messageOf(interrupt))
  },
)

test.each([interrupting, stepping])('work of its own holds up no Skyhook here', (own) => {
  expect([otherInterrupt(asking(idle, own)), otherWork(asking(idle, own))]).toEqual([undefined, undefined])
})
