import { expect, test } from 'vitest'
import { isRuntimeUnit, kubeletUnits } from './units.ts'

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
