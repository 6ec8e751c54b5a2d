import { expect, test } from 'vitest'
import { skyhooksPath } from '../../src/schemas/api.ts'
import { finalizerName } from '../../src/schemas/skyhook.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'
import { uninstalled } from './uninstalled.ts'

const asking = { a: { version: '1.0.0', image: 'registry.test/a', uninstall: { enabled: true } } }

function world(packages: NonNullable<Parameters<typeof sampleSpec>[0]>['packages'] = asking) {
  const one = sampleWorld(uninstalled, { spec: sampleSpec({ packages }) })
  const skyhookUid = one.server.object('skyhooks', undefined, 's')?.metadata.uid ?? ''
  return {
    ...one,
    install: (name: string) => one.run(name, 'apply', { skyhookUid }),
    uninstall: (name: string, code = 0) => one.run(name, 'uninstall-check', { skyhookUid, code }),
    remove: () => void one.send('admin', 'DELETE', `${skyhooksPath}/s`),
  }
}

test('a Skyhook whose hosts have uninstalled may go', async () => {
  const one = world()
  await one.pass(1)
  one.install('n1')
  one.uninstall('n1')
  one.remove()
  expect([one.violations, one.checks()]).toEqual([[], 3])
})

test('a Skyhook that goes before a host has uninstalled is found', async () => {
  const one = world()
  await one.pass(1)
  one.install('n1')
  one.remove()
  expect(one.violations).toEqual(['s is gone (by admin) while n1 has a, which it asks to uninstall'])
})

test('a Skyhook that asks for no uninstall may go', async () => {
  const one = world({ a: { version: '1.0.0', image: 'registry.test/a' } })
  await one.pass(1)
  one.install('n1')
  one.remove()
  expect(one.violations).toEqual([])
})

test('a host that begins for a Skyhook that is gone is found', async () => {
  const one = world()
  await one.pass(1)
  one.remove()
  one.install('n1')
  expect(one.violations).toEqual(['n1 begins apply of a for s, which is gone and asked for an uninstall'])
})

test('a host that nobody has heard of for ten minutes is left out', async () => {
  const one = world()
  await one.pass(1)
  one.install('n1')
  one.setHealthy('n1', false)
  await one.pass(600)
  one.remove()
  expect(one.violations).toEqual([])
})

test('an uninstall of what was never installed is found, and one of what the Skyhook still wants', async () => {
  const one = world()
  await one.pass(300)
  one.uninstall('n1')
  one.install('n2')
  one.uninstall('n2')
  expect(one.violations).toEqual([
    'n1 uninstalls a of s, which was never installed there',
    'n2 uninstalls a 1.0.0, which s still wants',
  ])
})

test('a package whose start came when its host went down may be uninstalled after the boot', async () => {
  const one = world({})
  await one.pass(300)
  one.tell('n1', { event: 'stepRefused', step: one.step('apply') })
  one.uninstall('n1')
  expect(one.violations).toEqual([])
})

test('an agent whose bus did not answer may uninstall what it was about to install', async () => {
  const one = world()
  await one.pass(1)
  one.ends('bus-faults', 'n1')
  one.uninstall('n1')
  expect(one.violations).toEqual([])
})

test('a package that the Skyhook does not want any more is uninstalled', async () => {
  const one = world()
  await one.pass(1)
  one.install('n1')
  one.send('admin', 'PATCH', `${skyhooksPath}/s`, { metadata: { finalizers: [finalizerName] } })
  one.remove()
  await one.pass(300)
  one.uninstall('n1')
  expect(one.violations).toEqual([])
})
