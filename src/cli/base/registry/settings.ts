/** How this machine reaches registries: stored logins, its own authorities, proxies, and flags. */
import { createLocalRoot, type HostRoot } from '../../../host/fs/host-root.ts'
import { createRegistryClient, type RegistryClient } from '../../../packages/oci/read/registry.ts'
import { parseDockerConfig, type Credential } from '../../../packages/oci/read/credentials.ts'
import type { Context } from '../framework/command.ts'
import { usageError } from '../framework/command-error.ts'
import type { RegistryFlags } from './flags.ts'
import { runProgram, type ProgramEnd } from './programs.ts'
import { ImageError } from '../../../packages/oci/errors.ts'
import { isObject, type JsonObject, messageOf, parseJson } from '../../../schemas/json.ts'

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

type CredentialPorts = {
  /** Files of this machine. */
  readonly root: HostRoot
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Runs a program with a text as its input. Rejects when it cannot be started. */
  readonly runProgram: (program: string, parameters: readonly string[], input: string) => Promise<ProgramEnd>
}

/**
 * The logins for a registry's host; empty without a login.
 * @throws ImageError misconfigured: the file or a credential helper cannot be read
 */
export async function dockerCredentials(ports: CredentialPorts, host: string): Promise<Credential[]> {
  for (const path of configFiles(ports.environment)) {
    const text = await ports.root.readText(path)
    if (text === undefined) continue
    const document = parseJson(text)
    if (!isObject(document)) throw new ImageError('misconfigured', `${path} is not JSON; log in again`)
    const helper = helperFor(document, host)
    const found = helper === undefined ? storedLogins(document, path) : await askHelper(ports, helper, host)
    if (found.length > 0) return found
  }
  return []
}

function configFiles(environment: CredentialPorts['environment']): string[] {
  const { DOCKER_CONFIG, HOME = '/root', REGISTRY_AUTH_FILE = '', XDG_RUNTIME_DIR = '' } = environment
  const docker = `${DOCKER_CONFIG ?? `${HOME}/.docker`}/config.json`
  const podman = XDG_RUNTIME_DIR === '' ? '' : `${XDG_RUNTIME_DIR}/containers/auth.json`
  return [docker, REGISTRY_AUTH_FILE, podman].filter((path) => path !== '')
}

/** Docker Hub has its own name among the logins. */
const serverName = (host: string): string => (host === 'docker.io' ? 'https://index.docker.io/v1/' : host)

function helperFor({ credHelpers, credsStore }: JsonObject, host: string): string | undefined {
  const own = isObject(credHelpers) ? (credHelpers[host] ?? credHelpers[serverName(host)]) : undefined
  const name = own ?? credsStore
  return typeof name === 'string' && name !== '' ? name : undefined
}

const storedLogins = (document: JsonObject, path: string): Credential[] =>
  isObject(document['auths']) ? parseDockerConfig(JSON.stringify({ auths: document['auths'] }), path) : []

/** Runs the protocol of docker's credential helpers: the server's name as input, a JSON object as output. */
async function askHelper({ runProgram }: CredentialPorts, helper: string, host: string): Promise<Credential[]> {
  const program = `docker-credential-${helper}`
  const fail = (why: string): ImageError =>
    new ImageError('misconfigured', `${program} gave no login for ${host}: ${why}; log in again`)
  if (!/^[\w.-]+$/.test(helper)) throw fail('its name is not the name of a program')
  const end = await runProgram(program, ['get'], serverName(host)).catch((error: unknown) => {
    throw fail(messageOf(error))
  })
  const reported = `${end.stdout}${end.stderr}`
  if (end.code !== 0) {
    if (/credentials not found/i.test(reported)) return []
    throw fail(reported.trim().split('\n')[0] ?? `exit code ${end.code}`)
  }
  const answer = parseJson(end.stdout)
  const { Username: username, Secret: secret } = isObject(answer) ? answer : {}
  if (typeof username !== 'string' || typeof secret !== 'string') throw fail('its answer has no Username and Secret')
  if (secret === '') return []
  const entry = username === '<token>' ? { identitytoken: secret } : { username, password: secret }
  return parseDockerConfig(JSON.stringify({ auths: { [host]: entry } }), program)
}
