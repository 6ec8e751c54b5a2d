import { expect, test } from 'vitest'
import { interruptApart } from './interrupt-apart.ts'
import { sampleWorld } from './sample-world.ts'

test('a reboot that is asked for while a step runs is found', () => {
  const world = sampleWorld(interruptApart)
  world.start('n1')
  world.tell('n1', { event: 'rebootRequested', answer: 'accepted', isLost: false })
  expect(world.violations).toEqual(['n1 asks for a reboot while a apply apply.sh runs'])
})

test('a restart beside a step of another host is allowed', () => {
  const world = sampleWorld(interruptApart)
  world.start('n2')
  world.start('n1')()
  world.tell('n1', { event: 'restartRequested', unit: 'x.service' })
  expect([world.violations, world.checks()]).toEqual([[], 3])
})

test('a step that starts before the restart has ended is found', () => {
  const world = sampleWorld(interruptApart)
  world.tell('n1', { event: 'restartRequested', unit: 'x.service' })
  world.start('n1')
  expect(world.violations).toEqual(['n1 starts a apply apply.sh while x.service restarts'])
  world.tell('n1', { event: 'restartEnded', unit: 'x.service', result: 'done' })
  world.start('n1', 'config')
  expect(world.violations).toHaveLength(1)
})

test('a step that starts while the host goes down for a reboot is found, if its agent asked for that', () => {
  const world = sampleWorld(interruptApart)
  world.tell('n2', { event: 'shutdownStarted', bootId: 'b' })
  world.start('n2')
  world.tell('n1', { event: 'rebootRequested', answer: 'accepted', isLost: false })
  world.tell('n1', { event: 'shutdownStarted', bootId: 'b' })
  world.start('n1')
  expect(world.violations).toEqual(['n1 starts a apply apply.sh while it goes down'])
  world.tell('n1', { event: 'booted', bootId: 'c' })
  world.start('n1', 'config')
  expect(world.violations).toHaveLength(1)
})
