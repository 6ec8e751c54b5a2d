/** The kubelet of this host as systemd runs it: its command line and its variables. */
import type { Variant } from 'dbus-next/lib/variant.js'
import { BusError } from '../dbus/errors.ts'
import type { BusCall } from '../dbus/messages.ts'
import type { BusConnection } from '../dbus/reconnecting.ts'
import type { HostRoot } from '../fs/host-root.ts'
import { unitPath } from '../systemd/unit-properties.ts'

export type KubeletProcess = {
  /** Program and arguments of the running process. */
  readonly commandLine: readonly string[]
  /** Variables that its unit sets, without those of its environment files. */
  readonly environment: Readonly<Record<string, string>>
  /** Files of variables as its unit names them, in systemd's notation. */
  readonly environmentFiles: readonly EnvironmentFile[]
}

/** A path or pattern, and whether the file may be missing. */
export type EnvironmentFile = readonly [path: string, isOptional: boolean]

const systemd = 'org.freedesktop.systemd1'
const busTimeoutMs = 5_000

/**
 * Undefined where none of the units runs. Only units count, because only root can create them. A process named
 * `kubelet` may belong to a pod, which could make the agent run any program of the host as root.
 * @throws BusError, NotConnectedError
 */
export async function readKubeletProcess(
  connection: BusConnection,
  root: Pick<HostRoot, 'readText'>,
  signal: AbortSignal,
): Promise<KubeletProcess | undefined> {
  for (const unit of kubeletUnits) {
    const mainPid = await readProperty(connection, unit, 'MainPID', signal)
    if (typeof mainPid !== 'number' || mainPid === 0) continue
    const commandLine = await root.readText(`/proc/${mainPid}/cmdline`)
    if (commandLine === undefined || commandLine === '') continue
    const environment = (await readProperty(connection, unit, 'Environment', signal)) as readonly string[] | undefined
    const files = await readProperty(connection, unit, 'EnvironmentFiles', signal)
    return {
      commandLine: commandLine.replace(/\0$/, '').split('\0'),
      environment: Object.fromEntries((environment ?? []).map(splitVariable)),
      environmentFiles: (files as readonly EnvironmentFile[] | undefined) ?? [],
    }
  }
  return undefined
}

/** The value of a flag, written as `--name=value` or `--name value`; the last one counts. */
export function flagValue(commandLine: readonly string[], flag: string): string | undefined {
  let value: string | undefined
  for (const [index, argument] of commandLine.entries()) {
    const [name = '', ...rest] = argument.split('=')
    if (name.replace(/^--?/, '') !== flag || !name.startsWith('-')) continue
    value = argument.includes('=') ? rest.join('=') : commandLine[index + 1]
  }
  return value === '' ? undefined : value
}

function splitVariable(assignment: string): [name: string, value: string] {
  const [name = '', ...rest] = assignment.split('=')
  return [name, rest.join('=')]
}

async function readProperty(
  connection: BusConnection,
  unit: string,
  property: string,
  signal: AbortSignal,
): Promise<unknown> {
  const call: BusCall = {
    destination: systemd,
    path: unitPath(unit),
    interface: 'org.freedesktop.DBus.Properties',
    member: 'Get',
    signature: 'ss',
    body: [`${systemd}.Service`, property],
  }
  try {
    const [value] = await connection.withBus((bus) => bus.call(call, { timeoutMs: busTimeoutMs, signal }), { signal })
    return (value as Variant | undefined)?.value
  } catch (error) {
    if (error instanceof BusError) return undefined // no such unit, or systemd cannot load it
    throw error
  }
}

/** Units of the kubelet and of the container runtime, as distributions of Kubernetes name them. */

/** The main process is the kubelet: its command line has the kubelet's flags. */
export const kubeletUnits: readonly string[] = ['kubelet.service', 'snap.kubelet-eks.daemon.service']

/** The kubelet is a part or a child of the main process. */
const bundledKubeletUnits = ['rke2-server.service', 'rke2-agent.service', 'k0scontroller.service', 'k0sworker.service']

const containerRuntimeUnits = [
  'containerd.service',
  'crio.service',
  'cri-o.service',
  'docker.service',
  'cri-docker.service',
  'cri-dockerd.service',
]

const runtimeUnits: ReadonlySet<string> = new Set([...kubeletUnits, ...bundledKubeletUnits, ...containerRuntimeUnits])
/** k3s.service, k3s-agent.service, and k3s-NAME.service where k3s was installed with INSTALL_K3S_NAME. */
const k3sUnit = /^k3s(?:-.+)?\.service$/
/** Such as snap.microk8s.daemon-kubelite.service, snap.k8s.kubelet.service and snap.docker.dockerd.service. */
const snapUnit = /^snap\..*(?:kubelet|kubelite|containerd|docker).*\.service$/

/** Whether the unit runs a kubelet or a container runtime: after its restart the kubelet reports Ready too early. */
export function isRuntimeUnit(unit: string): boolean {
  return runtimeUnits.has(unit) || k3sUnit.test(unit) || snapUnit.test(unit)
}
