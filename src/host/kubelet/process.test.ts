import { expect, test } from 'vitest'
import { flagValue, isRuntimeUnit, kubeletUnits } from './process.ts'

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

test.each([
  ...kubeletUnits,
  'k3s.service',
  'k3s-agent.service',
  'k3s-edge.service',
  'rke2-server.service',
  'rke2-agent.service',
  'k0scontroller.service',
  'k0sworker.service',
  'snap.microk8s.daemon-kubelite.service',
  'snap.microk8s.daemon-containerd.service',
  'snap.k8s.kubelet.service',
  'containerd.service',
  'crio.service',
  'cri-o.service',
  'docker.service',
  'cri-docker.service',
  'cri-dockerd.service',
])('%s runs a kubelet or a container runtime', (unit) => {
  expect(isRuntimeUnit(unit)).toBe(true)
})

test.each([
  'cron.service',
  'kubelet.timer',
  'k3sup.service',
  'snap.lxd.daemon.service',
  'systemd-sysctl.service',
  'my-kubelet.service',
])('%s runs neither a kubelet nor a container runtime', (unit) => {
  expect(isRuntimeUnit(unit)).toBe(false)
})
