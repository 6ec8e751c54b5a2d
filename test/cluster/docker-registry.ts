import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Debian's docker-registry on loopback, with TLS and basic authentication, for one test file. */
export type DockerRegistry = {
  /** `127.0.0.1:<port>` */
  readonly host: string
  readonly username: string
  readonly password: string
  readonly caFile: string
  readonly ca: string
  /** The folder of its blobs; a test may damage them. */
  blobFile(digest: string): string
  stop(): Promise<void>
}

const tls = join(import.meta.dirname, '../fixtures/tls')
const username = 'tester'
const password = 'a password: with "odd" characters'
// its bcrypt hash, the only kind that the registry accepts
const hash = '$2y$04$RSXnMGGiIrAsWv9DCCBVTegGdf6ZxdCWRm1A9VBxvWQK/L6/i3/3C'

export async function startDockerRegistry(): Promise<DockerRegistry> {
  const folder = mkdtempSync(join(tmpdir(), 'registry-'))
  const data = join(folder, 'data')
  mkdirSync(data)
  writeFileSync(join(folder, 'htpasswd'), `${username}:${hash}\n`)
  const config = {
    version: '0.1',
    log: { level: 'info', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: data } },
    http: { addr: '127.0.0.1:0', tls: { certificate: join(tls, 'localhost.crt'), key: join(tls, 'localhost.key') } },
    auth: { htpasswd: { realm: 'test', path: join(folder, 'htpasswd') } },
  }
  writeFileSync(join(folder, 'config.yml'), JSON.stringify(config)) // JSON is YAML
  const child = spawn(registryProgram(), ['serve', join(folder, 'config.yml')], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()))
  let log = ''
  const host = await new Promise<string>((resolve, reject) => {
    const listen = (text: Buffer) => {
      log += text.toString()
      const found = /listening on (127\.0\.0\.1:\d+)/.exec(log)?.[1]
      if (found !== undefined) resolve(found)
    }
    child.stdout.on('data', listen)
    child.stderr.on('data', listen)
    void ended.then(() => reject(new Error(`docker-registry did not start: ${log}`)))
  })
  return {
    host,
    username,
    password,
    caFile: join(tls, 'ca.crt'),
    ca: readFileSync(join(tls, 'ca.crt'), 'utf8'),
    blobFile: (digest) => join(data, `docker/registry/v2/blobs/sha256/${digest.slice(7, 9)}/${digest.slice(7)}/data`),
    stop: async () => {
      child.kill()
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

/** The sandbox's registry from the cache, fetched by the sandbox if missing. */
function registryProgram(): string {
  const script =
    'set -e; for file in common machine base; do . "$0/$file.sh"; done; fetch_registry; echo "$REGISTRY_PROGRAM"'
  return execFileSync('bash', ['-c', script, join(import.meta.dirname, '../sandbox')], { encoding: 'utf8' }).trim()
}
