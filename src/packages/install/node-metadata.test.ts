import { expect, test } from 'vitest'
import { nodeMetadata } from './copy-dir.ts'

const packages = {
  tuning: {
    version: '1.0.0',
    image: 'r/tuning',
    configMap: { 'secret.sh': 'x' },
    interrupt: { type: 'reboot' as const },
  },
  base: { version: '2.0.0', image: 'r/base', configInterrupts: { a: { type: 'noop' as const } } },
}

test('node metadata has sorted keys, and of packages only identity and interrupts', () => {
  const metadata = nodeMetadata({ labels: { b: '2', a: '1' }, agentVersion: 'v0.1.0', packages })
  expect(metadata.labels).toBe('{"a":"1","b":"2"}')
  expect(metadata.annotations).toBe('{}')
  expect(JSON.parse(metadata.packages)).toEqual({
    agentVersion: 'v0.1.0',
    packages: {
      base: { name: 'base', version: '2.0.0', image: 'r/base', configInterrupts: { a: { type: 'noop' } } },
      tuning: { name: 'tuning', version: '1.0.0', image: 'r/tuning', interrupt: { type: 'reboot' } },
    },
  })
})

test('the same facts in another order give the same texts', () => {
  const { tuning, base } = packages
  expect(nodeMetadata({ labels: { b: '2', a: '1' }, agentVersion: 'v', packages: { base, tuning } })).toEqual(
    nodeMetadata({ labels: { a: '1', b: '2' }, agentVersion: 'v', packages: { tuning, base } }),
  )
})
