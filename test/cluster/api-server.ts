/**
 * A real control plane: etcd, kube-apiserver and optionally kube-controller-manager, on loopback ports. With
 * `KUBERNETES=oldest` the kube-apiserver is that of the oldest supported version.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { createWriteStream, rmSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import type { Credentials } from '../../src/kube/credentials.ts'
import { staticCredentials } from '../kit/tool/static-credentials.ts'
import { createKubeTransport, type KubeTransport } from '../../src/kube/transport.ts'
import { createAuthority } from '../kit/cluster/pki.ts'

const run = promisify(execFile)

/** The tests are about the kube-apiserver of the oldest supported version. */
export const isOldest = process.env['KUBERNETES'] === 'oldest'

export type ApiServer = {
  readonly url: string
  /** Credentials of a member of system:masters. */
  readonly credentials: Credentials
  /** A client with these credentials, closed with the server. */
  readonly admin: KubeTransport
  readonly kubeconfig: string
  readonly kubectl: (...args: string[]) => Promise<string>
  /** What it costs can be read from its processes, and from etcd's `/metrics`. */
  readonly processes: () => { readonly server: number; readonly etcd: number }
  readonly etcdUrl: string
  /** Metadata of the requests of `audited` users, one JSON object in a line. */
  readonly auditLog: string
  /** Kills the server with SIGKILL and waits for its end; connections break as in a crash. */
  crash(): Promise<void>
  /** Restarts the server on the same port and etcd, and waits until it is ready. */
  restart(): Promise<void>
  /** Starts kube-controller-manager and waits until it works; returns what kills it. */
  startControllerManager(): Promise<() => Promise<void>>
  /** Compacts etcd: all earlier revisions are gone. */
  compact(): Promise<void>
  /** Copies etcd's data; etcd is restarted for it. */
  backUp(): Promise<void>
  /** Puts the copy back, as after `etcdutl snapshot restore` without a raised revision, and restarts all. */
  restore(): Promise<void>
  stop(): Promise<void>
}

export type ApiServerOptions = {
  /** The users whose requests are in the audit log; by default there is none. */
  readonly audited?: readonly string[]
  /** Serves `/debug/pprof`. */
  readonly profiling?: boolean
}

export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const bin = await binaryFolder()
  const serverBin = isOldest ? await binaryFolder('--oldest') : bin
  const dir = await mkdtemp(join(tmpdir(), 'skyhookd-cluster-'))
  const [etcdPort, peerPort, port] = (await freePorts(3)) as [number, number, number]
  const url = `https://127.0.0.1:${port}`
  const etcd = `http://127.0.0.1:${etcdPort}`
  const pki = await createAuthority(dir)
  const serving = await pki.issue(
    'apiserver',
    '/CN=kube-apiserver',
    'extendedKeyUsage=serverAuth\nsubjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost\n',
  )
  const client = 'extendedKeyUsage=clientAuth\n'
  const admin = await pki.issue('admin', '/O=system:masters/CN=admin', client)
  const signing = await pki.signingKey()
  const running = new Set<ChildProcess>()
  const killAll = (): void => {
    for (const child of running) child.kill('SIGKILL')
  }
  const abandon = (): void => {
    killAll()
    rmSync(dir, { recursive: true, force: true })
  }
  const endProcess = (): void => {
    abandon()
    process.kill(process.pid, 'SIGTERM') // `process.exit` throws in tests
  }
  // vitest ends its processes by SIGTERM, and they must not outlive it
  const endings = { exit: abandon, SIGTERM: endProcess, disconnect: endProcess }
  for (const [event, listener] of Object.entries(endings)) process.once(event, listener)

  const launch = (name: string, flags: Readonly<Record<string, string | number | boolean>>): ChildProcess => {
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`)
    // It ends with this process, even on SIGKILL.
    const program = join(name === 'kube-apiserver' ? serverBin : bin, name)
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    const log = createWriteStream(join(dir, `${name}.log`), { flags: 'a' })
    child.stdout.pipe(log, { end: false })
    child.stderr.pipe(log, { end: false })
    running.add(child)
    child.on('exit', () => running.delete(child))
    return child
  }
  const kill = async (child: ChildProcess): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }
  const ready = async (what: string, child: ChildProcess, probe: () => Promise<unknown>): Promise<void> => {
    for (const deadline = Date.now() + 90_000; Date.now() < deadline; await sleep(100)) {
      if (child.exitCode !== null) break
      const isUp = await probe().then(
        () => true,
        () => false,
      )
      if (isUp) return
    }
    killAll()
    throw new Error(
      `${what} is not ready; the end of its log:\n${(await readFile(join(dir, `${what}.log`), 'utf8')).slice(-2000)}`,
    )
  }

  const [dataDir, backupDir] = [join(dir, 'etcd'), join(dir, 'etcd-backup')]
  const startEtcd = async (): Promise<ChildProcess> => {
    const child = launch('etcd', {
      'data-dir': dataDir,
      'unsafe-no-fsync': true,
      'log-level': 'warn',
      'listen-client-urls': etcd,
      'advertise-client-urls': etcd,
      'listen-peer-urls': `http://127.0.0.1:${peerPort}`,
      'initial-advertise-peer-urls': `http://127.0.0.1:${peerPort}`,
      'initial-cluster': `default=http://127.0.0.1:${peerPort}`,
    })
    await ready('etcd', child, async () => await etcdCall(etcd, '/v3/maintenance/status', {}))
    return child
  }
  let etcdProcess = await startEtcd()

  const credentials = staticCredentials({
    server: url,
    ca: await readFile(pki.caFile, 'utf8'),
    cert: await readFile(admin.certFile, 'utf8'),
    key: await readFile(admin.keyFile, 'utf8'),
  })
  const transport = createKubeTransport({ credentials, version: 'test', clock: systemClock, rate: false })
  const [auditPolicy, auditLog] = [join(dir, 'audit-policy.json'), join(dir, 'audit.log')]
  if (options.audited) await writeFile(auditPolicy, auditPolicyText(options.audited))
  const startServer = async (): Promise<ChildProcess> => {
    const child = launch('kube-apiserver', {
      'etcd-servers': etcd,
      'bind-address': '127.0.0.1',
      'advertise-address': '127.0.0.1',
      'secure-port': port,
      'endpoint-reconciler-type': 'none', // 127.0.0.1 is not a valid address of an endpoint
      'tls-cert-file': serving.certFile,
      'tls-private-key-file': serving.keyFile,
      'client-ca-file': pki.caFile,
      'service-account-issuer': 'https://kubernetes.default.svc',
      'service-account-key-file': signing.publicFile,
      'service-account-signing-key-file': signing.keyFile,
      'service-cluster-ip-range': '10.0.0.0/24',
      'authorization-mode': 'Node,RBAC',
      'enable-admission-plugins': 'NodeRestriction',
      'allow-privileged': true,
      ...(options.audited && {
        'audit-policy-file': auditPolicy,
        'audit-log-path': auditLog,
        'audit-log-maxsize': 10_000, // MB: a run has one file
      }),
      profiling: options.profiling === true,
    })
    const probe = createKubeTransport({ credentials, version: 'test', clock: systemClock, rate: false })
    await ready('kube-apiserver', child, async () => await probe.json('GET', '/readyz', {}).catch(onlyIfOk))
    probe.close()
    return child
  }
  let server = await startServer()

  const kubeconfig = join(dir, 'kubeconfig')
  await writeFile(kubeconfig, kubeconfigText(url, pki.caFile, admin))
  const startControllerManager = async (): Promise<() => Promise<void>> => {
    const manager = await pki.issue('kcm', '/CN=system:kube-controller-manager', client)
    const managerConfig = join(dir, 'kcm.kubeconfig')
    await writeFile(managerConfig, kubeconfigText(url, pki.caFile, manager))
    const child = launch('kube-controller-manager', {
      kubeconfig: managerConfig,
      'leader-elect': false,
      'secure-port': 0,
      'use-service-account-credentials': true,
      'service-account-private-key-file': signing.keyFile,
      'root-ca-file': pki.caFile,
      'kube-api-qps': 500, // with the default 20 it takes 5 s until it works
      'kube-api-burst': 1000,
      profiling: false,
    })
    // It works once it has created the default ServiceAccount.
    await ready(
      'kube-controller-manager',
      child,
      async () => await transport.json('GET', '/api/v1/namespaces/default/serviceaccounts/default'),
    )
    return async () => await kill(child)
  }

  return {
    url,
    credentials,
    admin: transport,
    kubeconfig,
    kubectl: async (...args) => (await run(join(bin, 'kubectl'), ['--kubeconfig', kubeconfig, ...args])).stdout,
    processes: () => ({ server: server.pid ?? 0, etcd: etcdProcess.pid ?? 0 }),
    etcdUrl: etcd,
    auditLog,
    crash: async () => await kill(server),
    async restart() {
      server = await startServer()
    },
    startControllerManager,
    async compact() {
      const status = (await etcdCall(etcd, '/v3/maintenance/status', {})) as { header: { revision: string } }
      await etcdCall(etcd, '/v3/kv/compaction', { revision: status.header.revision, physical: true })
    },
    async backUp() {
      await kill(etcdProcess)
      await cp(dataDir, backupDir, { recursive: true })
      etcdProcess = await startEtcd()
    },
    async restore() {
      await kill(server)
      await kill(etcdProcess)
      await rm(dataDir, { recursive: true })
      await cp(backupDir, dataDir, { recursive: true })
      etcdProcess = await startEtcd()
      server = await startServer()
    },
    async stop() {
      transport.close()
      for (const child of running) await kill(child)
      for (const [event, listener] of Object.entries(endings)) process.off(event, listener)
      await rm(dir, { recursive: true })
    },
  }
}

async function binaryFolder(...options: readonly string[]): Promise<string> {
  const { stdout } = await run('bash', [join(import.meta.dirname, '../sandbox/build-binaries.sh'), ...options])
  return stdout.trim().split('\n').at(-1) ?? ''
}

/** `/readyz` answers `ok`, which is not JSON: the transport's error about that means ready. */
function onlyIfOk(error: unknown): void {
  if (!(error instanceof Error && error.cause instanceof SyntaxError)) throw error
}

/** A call of etcd's JSON gateway. */
export async function etcdCall(etcd: string, path: string, body: unknown): Promise<unknown> {
  const answer = await fetch(`${etcd}${path}`, { method: 'POST', body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`etcd answered ${answer.status}`)
  return await answer.json()
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(async (server) => await new Promise((resolve) => server.close(resolve))))
  return ports
}

function auditPolicyText(users: readonly string[]): string {
  return JSON.stringify({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [{ level: 'Metadata', users }, { level: 'None' }],
  })
}

function kubeconfigText(
  server: string,
  ca: string,
  user: { readonly certFile: string; readonly keyFile: string },
): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority': ca } }],
    users: [{ name: 'test', user: { 'client-certificate': user.certFile, 'client-key': user.keyFile } }],
  })
}
