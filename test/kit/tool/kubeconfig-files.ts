/** Kubeconfigs for tests, and the machine of the person who has them. Its time stands still. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Machine } from '../../../src/cli/base/framework/command.ts'
import { createSeededRandom, createVirtualClock } from '../virtual-clock.ts'

type Config = {
  readonly name?: string
  readonly server?: string
  readonly user?: object
  readonly current?: string | null
}

/** A kubeconfig of one cluster, one user and one context, all of the same name. */
export function configOf(config: Config): string {
  const { name = 'a', server = `https://${name}:6443`, user = { token: `token-${name}` }, current = name } = config
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': current ?? undefined,
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  })
}

export function machineWith(
  environment: Readonly<Record<string, string>> = {},
): Machine & { readonly errors: () => string } {
  let stderr = ''
  const output = { isTerminal: false, hasColor: false, columns: () => undefined }
  return {
    stdout: { ...output, write: () => {} },
    stderr: { ...output, write: (text) => (stderr += text) },
    stdin: { isTerminal: false, readLine: () => Promise.resolve(undefined), readAll: () => Promise.resolve('') },
    environment,
    clock: createVirtualClock(),
    random: createSeededRandom(1),
    signal: new AbortController().signal,
    readFile: (path) =>
      new Promise((resolve, reject) => {
        try {
          resolve(readFileSync(path, 'utf8'))
        } catch (error) {
          reject(error as Error)
        }
      }),
    errors: () => stderr,
  }
}

export const folder = (): string => mkdtempSync(join(tmpdir(), 'kubeconfig-'))

export function files(texts: Readonly<Record<string, string>>): string {
  const place = folder()
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(place, name), text)
  return place
}
