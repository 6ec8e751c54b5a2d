import { expect, test } from 'vitest'
import { flagValue } from './process.ts'

const flag = 'image-credential-provider-config'

test.each<[args: string[], value: string | undefined]>([
  [[`--${flag}=/etc/a.yaml`], '/etc/a.yaml'],
  [[`--${flag}`, '/etc/a.yaml', '--v=2'], '/etc/a.yaml'],
  [[`-${flag}=/etc/a.yaml`], '/etc/a.yaml'],
  [[`--${flag}=/etc/a.yaml`, `--${flag}=/etc/b.yaml`], '/etc/b.yaml'],
  [[`--${flag}=/etc/a=b.yaml`], '/etc/a=b.yaml'],
  [[`--${flag}=`], undefined],
  [[`--${flag}`], undefined],
  [[`--${flag}-more=/etc/a.yaml`], undefined],
  [['--hint', flag, '/etc/a.yaml'], undefined],
  [[], undefined],
])('the flag in %j has the value %j', (args, value) => {
  expect(flagValue(['/usr/bin/kubelet', ...args], flag)).toBe(value)
})
