/** etcd and kube-apiserver as static pods on each of several hosts, which together are one control plane. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createAuthority } from '../kit/cluster/pki.ts'
import type { Cluster, NodeName } from '../kit/cluster/cluster.ts'
import type { View } from '../kit/cluster/moments.ts'

const folder = '/etc/kubernetes/quorum'
const manifests = '/etc/kubernetes/manifests'
const data = '/var/lib/quorum'
/** A host of the sandbox boots in three seconds. A machine takes longer: the kubelet waits first. */
export const bootMs = 10_000
const slowBoot = '/etc/systemd/system/kubelet.service.d/slow-boot.conf'
const slowBootUnit = `[Service]\nExecStartPre=/bin/sleep ${bootMs / 1_000}\n`
/** Beside those of the sandbox's own control plane. */
const ports = { etcd: 12_379, peers: 12_380, apiserver: 16_443 } as const
export const components = ['etcd', 'kube-apiserver'] as const

export type Members = {
  /** URL of each API server. */
  readonly servers: readonly string[]
  /** With ca.crt, admin.crt and admin.key. */
  readonly credentials: string
  remove(): Promise<void>
}

/** Returns when the kubelets have their manifests; the pods start later. `programs`: the folder of the sandbox's. */
export async function startMembers(cluster: Cluster, nodes: readonly NodeName[], programs: string): Promise<Members> {
  const work = mkdtempSync(join(tmpdir(), 'quorum-'))
  for (const component of components) copyFileSync(join(programs, component), join(work, component))
  const image = (await cluster.sandbox.must(['push', work, 'test/control-plane:1'])).trim()
  for (const component of components) rmSync(join(work, component))
  const addresses = new Map(nodes.map((node) => [node, addressOf(cluster.history.now, node)]))
  const authority = await createAuthority(work)
  await authority.issue('admin', '/O=system:masters/CN=admin', 'extendedKeyUsage=clientAuth')
  await authority.signingKey()
  for (const [node, address] of addresses) {
    const host = cluster.host(node)
    await authority.issue(node, '/CN=kube-apiserver', `subjectAltName=IP:${address},IP:127.0.0.1`)
    const files = { 'ca.crt': 'ca.crt', 'server.crt': `${node}.crt`, 'server.key': `${node}.key` }
    const keys = { 'accounts.key': 'service-account.key', 'accounts.pub': 'service-account.pub' }
    await host.exec('mkdir', '-p', folder, data, dirname(slowBoot))
    await host.write(slowBoot, slowBootUnit)
    for (const [name, from] of Object.entries({ ...files, ...keys }))
      await host.write(join(folder, name), readFileSync(join(work, from), 'utf8'))
    await pull(cluster, node, image)
    for (const pod of [etcd(image, node, addresses), apiserver(image, address)])
      await host.write(join(manifests, `${pod.metadata.name}.json`), JSON.stringify(pod))
  }
  return {
    servers: [...addresses.values()].map((address) => `https://${address}:${ports.apiserver}`),
    credentials: work,
    async remove() {
      for (const node of nodes)
        for (const component of components) await cluster.host(node).remove(join(manifests, `${component}.json`))
      await cluster.history.eventually('the members are gone', ({ pods }) =>
        nodes.every((node) => components.every((component) => !pods.has(`kube-system/${component}-${node}`))),
      )
      for (const node of nodes) {
        await cluster.host(node).exec('rm', '-rf', folder, data, dirname(slowBoot))
        await cluster.host(node).exec('systemctl', 'daemon-reload')
      }
      rmSync(work, { recursive: true })
    },
  }
}

/** The kubelet has no login for static pods. The password goes through the standard input. */
async function pull({ sandbox }: Cluster, node: NodeName, image: string): Promise<void> {
  const { REGISTRY_USER = '', REGISTRY_PASSWORD = '' } = sandbox.env()
  const hosts = '--hosts-dir /etc/containerd/certs.d'
  const command = `read -r login && ctr -n k8s.io images pull ${hosts} --user "$login" ${image}`
  const input = `${REGISTRY_USER}:${REGISTRY_PASSWORD}\n`
  await sandbox.must(['exec', node, '--', 'sh', '-ec', command], { input })
}

function addressOf({ nodes }: View, node: NodeName): string {
  const addresses = nodes.get(node)?.status?.addresses as { type: string; address: string }[] | undefined
  const found = addresses?.find(({ type }) => type === 'InternalIP')
  if (found === undefined) throw new Error(`${node} has no address`)
  return found.address
}

type HttpProbe = { readonly port: number; readonly scheme: 'HTTP' | 'HTTPS' }

function staticPod(image: string, name: string, readiness: HttpProbe, flags: Readonly<Record<string, string>>) {
  const paths = { quorum: folder, data }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'kube-system', labels: { tier: 'control-plane', component: name } },
    spec: {
      hostNetwork: true,
      priorityClassName: 'system-node-critical',
      priority: 2_000_001_000,
      volumes: Object.entries(paths).map(([key, path]) => ({ name: key, hostPath: { path } })),
      containers: [
        {
          name,
          image,
          imagePullPolicy: 'Never',
          command: [`/skyhook-package/${name}`, ...Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`)],
          readinessProbe: {
            httpGet: { host: '127.0.0.1', path: '/readyz', ...readiness },
            initialDelaySeconds: 10, // longer than the kubelet takes to say that the node is Ready
            periodSeconds: 1,
          },
          volumeMounts: Object.entries(paths).map(([key, mountPath]) => ({ name: key, mountPath })),
        },
      ],
    },
  }
}

const etcd = (image: string, node: NodeName, addresses: ReadonlyMap<NodeName, string>) => {
  const own = addresses.get(node)
  const peers = [...addresses].map(([name, address]) => `${name}=http://${address}:${ports.peers}`)
  return staticPod(
    image,
    'etcd',
    { port: ports.etcd, scheme: 'HTTP' },
    {
      name: node,
      'data-dir': join(data, 'etcd'),
      'listen-client-urls': `http://127.0.0.1:${ports.etcd}`,
      'advertise-client-urls': `http://127.0.0.1:${ports.etcd}`,
      'listen-peer-urls': `http://${own}:${ports.peers}`,
      'initial-advertise-peer-urls': `http://${own}:${ports.peers}`,
      'initial-cluster': peers.join(','),
      'initial-cluster-state': 'new',
    },
  )
}

/** On the etcd of its own host alone, as kubeadm does it. */
const apiserver = (image: string, address: string) =>
  staticPod(
    image,
    'kube-apiserver',
    { port: ports.apiserver, scheme: 'HTTPS' },
    {
      'etcd-servers': `http://127.0.0.1:${ports.etcd}`,
      'secure-port': String(ports.apiserver),
      'advertise-address': address,
      'endpoint-reconciler-type': 'none',
      'tls-cert-file': join(folder, 'server.crt'),
      'tls-private-key-file': join(folder, 'server.key'),
      'client-ca-file': join(folder, 'ca.crt'),
      'service-account-issuer': 'https://kubernetes.default.svc',
      'service-account-key-file': join(folder, 'accounts.pub'),
      'service-account-signing-key-file': join(folder, 'accounts.key'),
      'service-cluster-ip-range': '10.1.0.0/24',
      'authorization-mode': 'RBAC',
    },
  )

/** The folder with the programs of Kubernetes that a sandbox runs. */
export const programsOf = ({ sandbox }: Cluster): string =>
  dirname(readFileSync(join(sandbox.folder, 'control-plane/etcd.command'), 'utf8').split('\n', 1)[0] ?? '')
