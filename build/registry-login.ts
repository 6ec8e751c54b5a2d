import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { systemRandom } from '../src/daemon/platform/system-clock.ts'
import { createHostRoot } from '../src/host/fs/host-root.ts'
import { type Credential, parseDockerConfig } from '../src/packages/oci/read/credentials.ts'
import type { RegistrySettings } from '../src/packages/oci/read/registry.ts'

/**
 * How a tool on this machine reaches a registry: REGISTRY_USER, REGISTRY_PASSWORD and REGISTRY_CA (a file) as
 * `.sandbox/env` sets them apply to the host of REGISTRY, or to `host` if that is unset. Other registries use what
 * `docker login` stored, and this machine's CAs.
 */
export function registryFromEnvironment(host: string): RegistrySettings {
  const {
    REGISTRY = host,
    REGISTRY_USER,
    REGISTRY_PASSWORD = '',
    REGISTRY_CA,
    DOCKER_CONFIG = join(homedir(), '.docker'),
  } = process.env
  const isNamed = REGISTRY.split('/')[0] === host
  const auths = JSON.stringify({ auths: { [host]: { username: REGISTRY_USER, password: REGISTRY_PASSWORD } } })
  const credentials =
    isNamed && REGISTRY_USER !== undefined
      ? parseDockerConfig(auths, 'REGISTRY_USER')
      : storedLogins(join(DOCKER_CONFIG, 'config.json'))
  const rules = isNamed && REGISTRY_CA !== undefined ? [{ host, ca: readFileSync(REGISTRY_CA, 'utf8') }] : []
  return {
    credentials,
    sources: { files: createHostRoot('/', systemRandom), certsDirectory: undefined, rules },
    proxy: process.env,
  }
}

function storedLogins(path: string): Credential[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return [] // no stored login
  }
  return text.includes('"auths"') ? parseDockerConfig(text, path) : []
}
