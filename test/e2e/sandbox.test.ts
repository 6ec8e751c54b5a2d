import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cgroupOf, type Sandbox, sandbox } from '../sandbox/sandbox.ts'
import { onThisMachine } from '../kit/machine-speed.ts'

const firstSandbox = sandbox('selftest')
const secondSandbox = sandbox('selftest-2') // has a node-1, too
const nodes = ['node-1', 'node-2', 'node-3'] as const

beforeAll(async () => {
  await Promise.all([firstSandbox.run(['down']), secondSandbox.run(['down'])])
  await Promise.all([
    firstSandbox.must(['up', '3'], { env: { AGENT: '0' } }),
    secondSandbox.must(['up', '1'], { env: { AGENT: '0', KUBELET_SHUTDOWN_GRACE: '10s' } }),
  ])
  await firstSandbox.kubectl(['apply', '-f', '-'], probeScript)
  await firstSandbox.kubectl(['rollout', 'status', 'daemonset/probe', '--timeout=60s'])
})
afterAll(async () => {
  await Promise.all([firstSandbox.run(['down']), secondSandbox.run(['down'])])
})

describe('a node', () => {
  test('a node of the sandbox gives a pod with the mounts of an agent its file system and its bus', async () => {
    for (const node of nodes) {
      const seen = await firstSandbox.kubectl([
        'exec',
        await podOn(node),
        '--',
        'sh',
        '-c',
        'cat /host/proc/sys/kernel/random/boot_id; ls /run/dbus/system_bus_socket; cat /host/etc/hostname',
      ])
      expect(seen.split('\n').slice(0, 3)).toEqual([await bootIdOf(node), '/run/dbus/system_bus_socket', node])
    }
  })

  test('a node of the sandbox has the services that packages restart', async () => {
    const state = await firstSandbox.must([
      'exec',
      'node-1',
      '--',
      'systemctl',
      'is-active',
      'cron',
      'rsyslog',
      'tuned',
      'foobar',
      'kubelet',
      'containerd',
    ])
    expect(state.trim().split('\n')).toEqual(Array(6).fill('active'))
  })

  test('exec runs a command with its input and returns its exit code', async () => {
    const echo = await firstSandbox.run(['exec', 'node-1', '--', 'sh', '-c', 'cat; exit 7'], { input: 'to the host' })
    expect(echo).toMatchObject({ status: 7, stdout: 'to the host' })
  })

  test('a node of the sandbox pulls with a pull secret under the registry name that this machine uses', async () => {
    const { REGISTRY, REGISTRY_USER, REGISTRY_PASSWORD, REGISTRY_CA } = firstSandbox.env() as Record<string, string>
    const [image, login] = [`${REGISTRY}/test/workload:1`, `${REGISTRY_USER}:${REGISTRY_PASSWORD}`]
    const push = [
      'ctr',
      '-n',
      'k8s.io',
      'images',
      'push',
      '--hosts-dir',
      '/etc/containerd/certs.d',
      '--user',
      login,
      image,
      'sandbox.local/workload:1',
    ]
    await firstSandbox.must(['exec', 'node-1', '--', ...push])
    await firstSandbox.kubectl([
      'create',
      'secret',
      'docker-registry',
      'pull',
      `--docker-server=${REGISTRY}`,
      `--docker-username=${REGISTRY_USER}`,
      `--docker-password=${REGISTRY_PASSWORD}`,
    ])
    await firstSandbox.kubectl(['apply', '-f', '-'], pulling(image))
    await firstSandbox.kubectl(['wait', '--for=condition=Ready', 'pod/pulling', '--timeout=30s'])
    const curl = (...more: string[]) =>
      execFileSync('curl', ['-s', '--cacert', `${REGISTRY_CA}`, ...more, `https://${REGISTRY}/v2/_catalog`], {
        encoding: 'utf8',
      })
    expect(curl('-u', login)).toContain('test/workload')
    expect(curl()).toContain('UNAUTHORIZED')
  })

  test('a node of the sandbox returns from an orderly reboot with a new boot id, the same disk and the same pod', async () => {
    const [before, pod] = [await bootIdOf('node-1'), await podOn('node-1')]
    await firstSandbox.must(['exec', 'node-1', '--', 'sh', '-c', 'echo kept >/var/kept; echo lost >/run/lost'])
    await firstSandbox.must(['reboot', 'node-1'])
    await eventually(async () => (await bootIdOf('node-1')) !== before)
    expect(
      await firstSandbox.must(['exec', 'node-1', '--', 'sh', '-c', 'cat /var/kept; ls /run/lost 2>&1 || true']),
    ).toMatch(/^kept\n.*No such file/)
    await eventually(async () => (await restartsOf(pod)) === 1)
    expect(await bootIdOf('node-1')).toBe(
      (await firstSandbox.must(['exec', 'node-1', '--', 'cat', '/proc/sys/kernel/random/boot_id'])).trim(),
    )
  })

  test('a command left running on a node of the sandbox does not delay its reboot', async () => {
    const command = secondSandbox.run(['exec', 'node-1', '--', 'sleep', '1000'])
    await eventually(
      async () => (await secondSandbox.run(['exec', 'node-1', '--', 'pgrep', '-f', 'sleep 1000'])).status === 0,
    )
    const startedMs = Date.now()
    await secondSandbox.must(['reboot', 'node-1'])
    // 5 s of it: systemd waits that long for a process that is not its child
    expect(Date.now() - startedMs).toBeLessThan(onThisMachine(20_000))
    expect((await command).status).not.toBe(0)
  })

  test('a node of the sandbox ends a pod at once, and one that ignores TERM after its grace period', async () => {
    await secondSandbox.kubectl(['apply', '-f', '-'], workload('willing', '[]') + workload('stubborn', '[stubborn]'))
    await secondSandbox.kubectl(['wait', '--for=condition=Ready', 'pod/willing', 'pod/stubborn', '--timeout=30s'])
    await secondSandbox.kubectl(['delete', 'pod', 'willing', 'stubborn', '--wait=false'])
    await secondSandbox.kubectl(['wait', '--for=delete', 'pod/willing', '--timeout=10s'])
    expect(await secondSandbox.kubectl(['get', 'pod', '-o', 'name'])).toBe('pod/stubborn\n')
    await secondSandbox.kubectl(['wait', '--for=delete', 'pod/stubborn', '--timeout=20s'])
  })

  test('a node of the sandbox is off after a power cut and starts again from the same disk', async () => {
    const before = await bootIdOf('node-2')
    await firstSandbox.must(['exec', 'node-2', '--', 'sh', '-c', 'echo kept >/var/kept'])
    await firstSandbox.must(['crash', 'node-2'])
    expect(await firstSandbox.run(['leader', 'node-2'])).toMatchObject({
      status: 1,
      stderr: 'sandbox: node-2 is off\n',
    })
    await firstSandbox.must(['start', 'node-2'])
    expect(await firstSandbox.must(['exec', 'node-2', '--', 'cat', '/var/kept'])).toBe('kept\n')
    await eventually(async () => (await bootIdOf('node-2')) !== before && (await isReady('node-2')))
  })

  test('a node of the sandbox is NotReady while its network is cut', async () => {
    await firstSandbox.must(['cut', 'node-3'])
    await eventually(async () => !(await isReady('node-3')))
    await firstSandbox.must(['join', 'node-3'])
    await eventually(() => isReady('node-3'))
  })

  test('a node of the sandbox is cut and joined at any moment of its reboot', async () => {
    const rebooted = firstSandbox.must(['reboot', 'node-3']).then(() => true)
    while (!(await Promise.race([rebooted, sleep(0, false)]))) {
      await firstSandbox.must(['cut', 'node-3'])
      await firstSandbox.must(['join', 'node-3'])
    }
    await eventually(() => isReady('node-3'))
  })

  test('a node of the sandbox exposes its systemd to this machine', async () => {
    const leader = (await firstSandbox.must(['leader', 'node-1'])).trim()
    expect(readFileSync(`/proc/${leader}/root/etc/hostname`, 'utf8').trim()).toBe('node-1')
    expect(existsSync(`/proc/${leader}/root/run/dbus/system_bus_socket`)).toBe(true)
  })

  test('a node of the sandbox delays its shutdown for its pods if configured to', async () => {
    expect(await secondSandbox.must(['exec', 'node-1', '--', 'systemd-inhibit', '--list', '--no-pager'])).toMatch(
      /kubelet .*shutdown.*delay/,
    )
  })
})

describe('the control plane', () => {
  test.each(['etcd', 'apiserver', 'kcm'])(
    'the control plane keeps its objects when %s is killed and restarted',
    async (component) => {
      await firstSandbox.kubectl(['create', 'configmap', `before-${component}`])
      await firstSandbox.must(['restart', component])
      expect(await firstSandbox.kubectl(['get', 'configmap', `before-${component}`, '-o', 'name'])).toBe(
        `configmap/before-${component}\n`,
      )
    },
  )

  test('a paused API server does not answer', async () => {
    await firstSandbox.must(['pause', 'apiserver'])
    await expect(firstSandbox.kubectl(['get', 'nodes', '--request-timeout=1s'])).rejects.toThrow(/deadline|[Tt]imeout/)
    await firstSandbox.must(['resume', 'apiserver'])
    expect(await firstSandbox.kubectl(['get', 'nodes', '-o', 'name'])).toContain('node/node-3')
  })

  test('the audit log records each request once with its user', async () => {
    await firstSandbox.kubectl([
      'get',
      'configmap',
      'never-made',
      '--ignore-not-found',
      '--as=somebody',
      '--as-group=system:masters',
    ])
    const lines = readFileSync(`${firstSandbox.folder}/control-plane/audit.log`, 'utf8').split('\n')
    expect(lines.filter((line) => line.includes('configmaps/never-made'))).toHaveLength(1)
    expect(lines.filter((line) => line.includes('"system:node:'))).toHaveLength(0)
  })
})

test('base disks that no sandbox used for a month are deleted, those in use and other files stay', () => {
  const cache = mkdtempSync(join(tmpdir(), 'cache-'))
  const old = new Date(Date.now() - 40 * 86_400_000)
  for (const name of [
    'base-b-1',
    'base-b-1-packages-2',
    'base-b-2',
    'base-b-2-packages-3',
    'base-b-4.partial',
    'bin',
    'base-b-5',
  ])
    mkdirSync(join(cache, name, 'etc'), { recursive: true })
  for (const name of readdirSync(cache)) if (name !== 'base-b-5') utimesSync(join(cache, name), old, old)
  const script = join(import.meta.dirname, '../sandbox/cluster.sh')
  execFileSync('bash', ['-c', `. ${script}; CACHE=${cache} BASE=${cache}/base-b-2; forget_old_bases`])
  expect(readdirSync(cache).sort()).toEqual(['base-b-2', 'base-b-2-packages-3', 'base-b-5', 'bin'])
  rmSync(cache, { recursive: true })
})

describe('two sandboxes with equal node names', () => {
  test('one of two sandboxes goes down without a trace, even while it starts, and does not affect the other', async () => {
    const boots = await Promise.all(nodes.map(bootIdOf))
    expect(traces(secondSandbox)).not.toEqual([])
    await secondSandbox.must(['down'])
    expect(traces(secondSandbox)).toEqual([])

    const killed = AbortSignal.timeout(3_000) // half-way: hosts are booting
    await secondSandbox.run(['up', '1'], { env: { AGENT: '0' }, signal: killed })
    expect(traces(secondSandbox)).not.toEqual([])
    freeze(secondSandbox) // as a power cut that was interrupted
    await secondSandbox.must(['down'])
    await secondSandbox.must(['down'])
    expect(traces(secondSandbox)).toEqual([])

    expect(await Promise.all(nodes.map(isReady))).toEqual([true, true, true])
    expect(await Promise.all(nodes.map(bootIdOf))).toEqual(boots)
  })

  test('the other of two sandboxes goes down without a trace', async () => {
    await firstSandbox.must(['down'])
    expect(traces(firstSandbox)).toEqual([])
  })
})

/** All traces of a sandbox on this machine: namespaces, cgroups, mounts, processes, folders. */
function traces(of: Sandbox): string[] {
  const name = new RegExp(`(^|/)skyhookd[.]${of.name}-[0-9a-f]{4}([.]|$)`)
  const list = (command: string): string[] =>
    execFileSync('sh', ['-c', `${command} 2>/dev/null || true`], { encoding: 'utf8' }).split('\n')
  return [
    ...list('ls /run/netns').filter((line) => name.test(line)),
    ...list('find /sys/fs/cgroup -type d').filter((line) => name.test(line)),
    ...list(`ls -d '${of.folder}' /run/systemd/nspawn/*/${of.name}-????.*`).filter((line) => line !== ''),
    ...readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .filter((line) => line.includes(`${of.folder}/`)),
    ...commandLines().filter((line) => line.includes(`${of.folder}/`)),
  ]
}

/** All hosts, by either version of cgroups. */
function freeze(of: Sandbox): void {
  const groups = `${cgroupOf(of)}/hosts/*/cgroup.freeze`
  execFileSync('sh', ['-c', `for group in ${groups}; do [ ! -e "$group" ] || echo 1 >"$group"; done`])
  const states = `find /sys/fs/cgroup/freezer -path '*/skyhookd.${of.name}-????/hosts/*' -name freezer.state`
  execFileSync('sh', ['-c', `for state in $(${states} 2>/dev/null); do echo FROZEN >"$state"; done`])
}

function commandLines(): string[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      } catch {
        return '' // it has ended
      }
    })
}

async function bootIdOf(node: string): Promise<string> {
  return await firstSandbox.kubectl(['get', 'node', node, '-o', 'jsonpath={.status.nodeInfo.bootID}'])
}

async function isReady(node: string): Promise<boolean> {
  return (
    (await firstSandbox.kubectl([
      'get',
      'node',
      node,
      '-o',
      'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
    ])) === 'True'
  )
}

async function podOn(node: string): Promise<string> {
  return await firstSandbox.kubectl([
    'get',
    'pods',
    '-l',
    'app=probe',
    '--field-selector',
    `spec.nodeName=${node}`,
    '-o',
    'jsonpath={.items[0].metadata.name}',
  ])
}

async function restartsOf(pod: string): Promise<number> {
  return Number(
    await firstSandbox.kubectl(['get', 'pod', pod, '-o', 'jsonpath={.status.containerStatuses[0].restartCount}']),
  )
}

async function eventually(check: () => Promise<boolean>, limitMs = 40_000): Promise<void> {
  const end = Date.now() + limitMs
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`condition not met within ${limitMs} ms: ${check.toString()}`)
    await sleep(200)
  }
}

const probeScript = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: probe}
spec:
  selector: {matchLabels: {app: probe}}
  template:
    metadata: {labels: {app: probe}}
    spec:
      hostNetwork: true
      tolerations: [{operator: Exists}]
      containers:
      - name: probe
        image: sandbox.local/workload:1
        imagePullPolicy: Never
        securityContext: {privileged: true}
        volumeMounts:
        - {name: host, mountPath: /host, mountPropagation: HostToContainer}
        - {name: dbus, mountPath: /run/dbus}
      volumes:
      - {name: host, hostPath: {path: /}}
      - {name: dbus, hostPath: {path: /run/dbus, type: Directory}}
`

function workload(name: string, args: string): string {
  return `
---
apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec:
  nodeName: node-1
  terminationGracePeriodSeconds: 5
  containers: [{name: workload, image: "sandbox.local/workload:1", args: ${args}}]
`
}

function pulling(image: string): string {
  return `
apiVersion: v1
kind: Pod
metadata: {name: pulling}
spec:
  nodeName: node-2
  imagePullSecrets: [{name: pull}]
  terminationGracePeriodSeconds: 1
  containers: [{name: workload, image: "${image}", imagePullPolicy: Always}]
`
}
