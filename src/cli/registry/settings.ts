/** How this machine reaches registries: stored logins, its own authorities, proxies, and flags. */
import { createLocalRoot } from '../../host/fs/host-root.ts'
import { createRegistryClient, type RegistryClient } from '../../packages/oci/read/registry.ts'
import { parseDockerConfig } from '../../packages/oci/read/credentials.ts'
import type { Context } from '../framework/command.ts'
import { usageError } from '../framework/command-error.ts'
import { dockerCredentials } from './docker-credentials.ts'
import type { RegistryFlags } from './flags.ts'
import { runProgram } from './programs.ts'

/** Settings of the user for the registry of a call. */
export type RegistryAccess = RegistryFlags & {
  readonly login?: { readonly username: string; readonly password: string }
}

/** Opens a client for the registry of `host`. The caller closes it. @throws ImageError misconfigured, CommandError */
export async function openRegistry(context: Context, flags: RegistryAccess, host: string): Promise<RegistryClient> {
  const { environment, clock, random, signal } = context
  const root = createLocalRoot(random)
  const ca = flags.ca === undefined ? undefined : await context.readText(flags.ca)
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----'))
    throw usageError(`--ca ${flags.ca} has no certificate`, "name a PEM file with the registry's certificate authority")
  const credentials =
    flags.login === undefined
      ? await dockerCredentials({ root, environment, runProgram: (...call) => runProgram(...call, signal) }, host)
      : parseDockerConfig(JSON.stringify({ auths: { [host]: flags.login } }), 'REGISTRY_USER')
  const rule = { host, ...(ca !== undefined && { ca }), ...(flags.plainHttp && { plainHTTP: true }) }
  return createRegistryClient(
    {
      credentials,
      loginSource: 'docker login',
      sources: { files: root, certsDirectory: undefined, rules: [rule] },
      proxy: environment,
    },
    { clock, random },
  )
}
