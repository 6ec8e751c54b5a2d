/** How this machine reaches registries: stored logins, its own authorities, proxies, and what flags add. */
import { createLocalRoot } from '../../host/fs/host-root.ts'
import { createRegistryClient, type RegistryClient } from '../../packages/oci/read/registry.ts'
import type { Context } from '../framework/command.ts'
import { usageError } from '../framework/command-error.ts'
import { dockerCredentials } from './docker-credentials.ts'
import type { RegistryFlags } from './flags.ts'
import { runProgram } from './programs.ts'

/** A client for the registry of `host`, to be closed. @throws ImageError misconfigured, CommandError */
export async function openRegistry(context: Context, flags: RegistryFlags, host: string): Promise<RegistryClient> {
  const { environment, clock, random, signal } = context
  const root = createLocalRoot(random)
  const ca = flags.ca === undefined ? undefined : await context.readText(flags.ca)
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----'))
    throw usageError(`--ca ${flags.ca} has no certificate`, 'name a PEM file with the authority of the registry')
  const credentials = await dockerCredentials(
    { root, environment, runProgram: (...call) => runProgram(...call, signal) },
    host,
  )
  const rule = { host, ...(ca !== undefined && { ca }), ...(flags.plainHttp && { plainHTTP: true }) }
  return createRegistryClient(
    { credentials, sources: { files: root, certsDirectory: undefined, rules: [rule] }, proxy: environment },
    { clock, random },
  )
}
