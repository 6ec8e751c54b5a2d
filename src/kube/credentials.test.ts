import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../test/kit/files/temporary-folder.ts'
import { createVirtualClock, type VirtualClock } from '../../test/kit/virtual-clock.ts'
import { serviceAccountFiles } from '../daemon/platform/service-account.ts'
import { inClusterCredentials, type Credentials } from './credentials.ts'

const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
let dir: string
let clock: VirtualClock
let generation = 0

beforeEach(() => {
  clock = createVirtualClock()
  dir = temporaryFolder()
})

const credentialsIn = (folder: string, environment: Record<string, string> = env): Credentials =>
  inClusterCredentials({ env: environment, files: serviceAccountFiles(folder), clock })

/** As the kubelet does it: a new folder, then one link swapped. */
async function projectFiles(files: Record<string, string>): Promise<void> {
  const name = `..${++generation}`
  await mkdir(join(dir, name))
  for (const [file, text] of Object.entries(files)) await writeFile(join(dir, name, file), text)
  await symlink(name, join(dir, '..data_tmp'))
  await rename(join(dir, '..data_tmp'), join(dir, '..data'))
  // there since the first time
  for (const file of Object.keys(files)) await symlink(`..data/${file}`, join(dir, file)).catch(() => {})
}

test('the token is read again after a minute, or at once when asked', async () => {
  const credentials = credentialsIn(dir)
  await projectFiles({ token: 'one\n', 'ca.crt': 'CA' })
  expect(await credentials.current()).toMatchObject({ token: 'one', ca: 'CA' })
  await projectFiles({ token: 'two', 'ca.crt': 'CA' })
  await clock.advance(59_000)
  expect(await credentials.current()).toMatchObject({ token: 'one' })
  expect(await credentials.current({ forceRefresh: true })).toMatchObject({ token: 'two' })
  await projectFiles({ token: 'three', 'ca.crt': 'CA' })
  await clock.advance(61_000)
  expect(await credentials.current()).toMatchObject({ token: 'three' })
})

test('a new CA makes a new TLS revision, a new token does not', async () => {
  const credentials = credentialsIn(dir)
  await projectFiles({ token: 'one', 'ca.crt': 'CA 1' })
  const first = await credentials.current()
  await writeFile(join(dir, 'token'), 'two')
  const second = await credentials.current({ forceRefresh: true })
  await projectFiles({ token: 'two', 'ca.crt': 'CA 2' })
  const third = await credentials.current({ forceRefresh: true })
  expect(second.tlsRevision).toBe(first.tlsRevision)
  expect(third).toMatchObject({ ca: 'CA 2' })
  expect(third.tlsRevision).not.toBe(first.tlsRevision)
})

test('files that vanish later leave the last known token in force; files that were never there are an error', async () => {
  const missing = credentialsIn(join(dir, 'nowhere'))
  await expect(missing.current()).rejects.toThrow('cannot read the ServiceAccount')
  const credentials = credentialsIn(dir)
  await projectFiles({ token: 'one', 'ca.crt': 'CA' })
  await credentials.current()
  await rm(join(dir, 'token'))
  expect(await credentials.current({ forceRefresh: true })).toMatchObject({ token: 'one' })
})

test('a read that does not end leaves the last known token in force, and is the only one', async () => {
  const reads: ((content: string) => void)[] = []
  let isStuck = false
  const files = {
    read: async (name: string): Promise<string> =>
      await (isStuck ? new Promise<string>((resolve) => reads.push(resolve)) : Promise.resolve(`${name} 1`)),
  }
  const credentials = inClusterCredentials({ env, files, clock })
  await credentials.current()
  isStuck = true
  for (let round = 0; round < 3; round++) {
    await clock.advance(61_000)
    const answer = credentials.current()
    await clock.advance(5_000)
    expect(await answer).toMatchObject({ token: 'token 1' })
    // nobody waits again before the next minute
    expect(await credentials.current()).toMatchObject({ token: 'token 1' })
  }
  expect(reads).toHaveLength(1)
  isStuck = false
  reads[0]?.('token 2')
  await clock.advance(1)
  expect(await credentials.current()).toMatchObject({ token: 'token 2', ca: 'ca.crt 1' })
})

test('a first read that does not end is an error that says so', async () => {
  const credentials = inClusterCredentials({ env, files: { read: () => new Promise(() => {}) }, clock })
  const answer = credentials.current().catch((error: Error) => `${error.message}: ${(error.cause as Error).message}`)
  await clock.advance(5_000)
  expect(await answer).toBe("cannot read the ServiceAccount's token and ca.crt: no answer from the disk within 5 s")
})

test("the server's address comes from the environment, IPv6 in brackets", () => {
  expect(credentialsIn(dir).server).toBe('https://10.0.0.1:443')
  expect(credentialsIn(dir, { ...env, KUBERNETES_SERVICE_HOST: 'fd00::1' }).server).toBe('https://[fd00::1]:443')
  expect(() => credentialsIn(dir, {})).toThrow('not in a cluster')
})
