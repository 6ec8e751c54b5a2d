import { expect, test } from 'vitest'
import { serviceNameProblem, serviceUnit } from './systemd.ts'

test.each([
  ['kubelet', 'kubelet.service'],
  ['cron.service', 'cron.service'],
  ['systemd-sysctl', 'systemd-sysctl.service'],
  ['getty@tty1', 'getty@tty1.service'],
  ['docker.socket', 'docker.socket'],
  ['foo.bar', 'foo.bar.service'],
  ['foo\\x2dbar.mount', 'foo\\x2dbar.mount'],
  ['-.mount', '-.mount'],
  ['snap.k8s.kubelet', 'snap.k8s.kubelet.service'],
  ['a@b@c.timer', 'a@b@c.timer'],
  ['org.freedesktop:1_x', 'org.freedesktop:1_x.service'],
  ['user@.hidden', 'user@.hidden.service'],
  ['x'.repeat(247), `${'x'.repeat(247)}.service`],
])('the service %s is the unit %s, and a unit may have the name', (name, unit) => {
  expect([serviceUnit(name), serviceNameProblem(name)]).toEqual([unit, undefined])
})

test.each([
  ['cron*', /not the name of a unit/],
  ['nvidia-?', /not the name of a unit/],
  ['cron.service ', /not the name of a unit/],
  [' cron', /not the name of a unit/],
  ['', /not the name of a unit/],
  ['.service', /not the name of a unit/],
  ['@tty1', /not the name of a unit/],
  ['/etc/systemd/system/cron.service', /not the name of a unit/],
  ['cron\n', /not the name of a unit/],
  ['größe', /not the name of a unit/],
  ['getty@', /template/],
  ['getty@.service', /template/],
  ['x'.repeat(248), /256 characters/],
])('no unit has the name %j', (name, problem) => expect(serviceNameProblem(name)?.problem).toMatch(problem))
