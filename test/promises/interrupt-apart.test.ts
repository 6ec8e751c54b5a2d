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
  expect([world.violations, world.checks()]).toEqual([[], 1])
})
