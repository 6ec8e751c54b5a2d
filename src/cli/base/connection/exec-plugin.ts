import { spawn } from 'node:child_process'
import { ExecAuth } from '@kubernetes/client-node/dist/exec_auth.js'
import type { Cluster, User } from '@kubernetes/client-node/dist/config_types.js'
import { CommandError, exitCodes } from '../framework/command-error.ts'
import type { Machine } from '../framework/command.ts'
import { messageOf } from '../../../schemas/json.ts'

/** The part of a kubeconfig's user that names a plugin. */
export type ExecConfig = {
  readonly apiVersion?: string
  readonly command: string
  readonly args?: readonly string[] | null
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null
  readonly interactiveMode?: string
  readonly installHint?: string
  readonly provideClusterInfo?: boolean
}

export type PluginCredential = { readonly token?: string; readonly cert?: string; readonly key?: string }

/** Runs a credential plugin when its last answer has expired. Passes its stderr on to the user. */
export type ExecPlugin = { credential(): Promise<PluginCredential> }

/** Runs a plugin like the official library, and adds what the library lacks: stdin, stderr and the install hint. */
export function createExecPlugin(exec: ExecConfig, cluster: Cluster, machine: Machine): ExecPlugin {
  const isInteractive = exec.interactiveMode !== 'Never' && machine.stdin.isTerminal && machine.stderr.isTerminal
  if (exec.interactiveMode === 'Always' && !isInteractive)
    throw pluginError(exec, 'it must ask, but there is no terminal', undefined)
  const info = {
    apiVersion: exec.apiVersion ?? 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: { interactive: isInteractive, ...(exec.provideClusterInfo && { cluster: clusterInfo(cluster) }) },
  }
  const auth = new ExecAuth()
  const run = (command: string, args: readonly string[] | undefined, options: { readonly env?: NodeJS.ProcessEnv }) => {
    const child = spawn(command, args ?? [], {
      ...options,
      stdio: [isInteractive ? 'inherit' : 'ignore', 'pipe', 'pipe'],
    })
    child.stderr?.on('data', (data: Buffer | string) => machine.stderr.write(data.toString()))
    return child
  }
  Object.assign(auth, { execFn: run })
  const env = [...(exec.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }]
  const user = { name: 'plugin', exec: { ...exec, args: exec.args ?? [], env } } as unknown as User
  return {
    async credential() {
      const options: { headers: Record<string, string>; cert?: string; key?: string } = { headers: {} }
      try {
        await auth.applyAuthentication(user, options)
      } catch (error) {
        throw pluginError(exec, messageOf(error).trim(), error)
      }
      const { cert, key, headers } = options
      const token = headers['Authorization']?.replace(/^Bearer /, '')
      return {
        ...(token !== undefined && { token }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
      }
    },
  }
}

function pluginError({ command, installHint }: ExecConfig, what: string, cause: unknown): CommandError {
  const message = `the credential plugin ${command} of the kubeconfig failed${what === '' ? '' : `: ${what}`}`
  return new CommandError(exitCodes.failed, message, installHint, { cause })
}

const clusterInfo = (cluster: Cluster): object => ({
  server: cluster.server,
  ...(cluster.caData && { 'certificate-authority-data': cluster.caData }),
  ...(cluster.tlsServerName && { 'tls-server-name': cluster.tlsServerName }),
  ...(cluster.skipTLSVerify && { 'insecure-skip-tls-verify': true }),
  ...(cluster.proxyUrl && { 'proxy-url': cluster.proxyUrl }),
})
