import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../../../test/kit/files/temporary-folder.ts'
import { systemRandom } from '../../../daemon/platform/system-clock.ts'
import { createLocalRoot } from '../../../host/fs/host-root.ts'
import type { ProgramEnd } from './programs.ts'
import { dockerCredentials } from './settings.ts'

let folder = ''
let calls: string[] = []

beforeEach(() => {
  folder = temporaryFolder()
  calls = []
})

async function credentials(document: object | string | undefined, host: string, end?: ProgramEnd | Error) {
  if (document !== undefined)
    writeFileSync(join(folder, 'config.json'), typeof document === 'string' ? document : JSON.stringify(document))
  return await dockerCredentials(
    {
      root: createLocalRoot(systemRandom),
      environment: { DOCKER_CONFIG: folder, XDG_RUNTIME_DIR: folder },
      runProgram: (program, parameters, input) => {
        calls.push(`${program} ${parameters.join(' ')} <${input}`)
        return end instanceof Error || end === undefined
          ? Promise.reject(end ?? new Error('none'))
          : Promise.resolve(end)
      },
    },
    host,
  )
}
const lab = { username: 'lab', password: 'secret' }

test('logins in the file are found, and none without a file', async () => {
  expect(await credentials(undefined, 'r.example')).toEqual([])
  expect(await credentials({}, 'r.example')).toEqual([])
  expect(await credentials({ auths: { 'r.example': lab } }, 'r.example')).toMatchObject([
    { images: 'r.example', login: { kind: 'password', ...lab } },
  ])
})

test('logins of podman are found where docker has none', async () => {
  mkdirSync(join(folder, 'containers'))
  writeFileSync(join(folder, 'containers/auth.json'), JSON.stringify({ auths: { 'r.example': lab } }))
  expect(await credentials({ auths: {} }, 'r.example')).toMatchObject([{ images: 'r.example' }])
})

test('a credential helper is asked by its protocol, the one of the host before the common one', async () => {
  const document = { credsStore: 'common', credHelpers: { 'r.example': 'own' } }
  const end = { code: 0, stdout: '{"ServerURL":"x","Username":"lab","Secret":"secret"}', stderr: '' }
  expect(await credentials(document, 'r.example', end)).toMatchObject([{ login: { kind: 'password', ...lab } }])
  expect(await credentials(document, 'docker.io', end)).toMatchObject([{ images: 'docker.io' }])
  expect(calls).toEqual([
    'docker-credential-own get <r.example',
    'docker-credential-common get <https://index.docker.io/v1/',
  ])
})

test('a helper may give a token', async () => {
  const end = { code: 0, stdout: '{"Username":"<token>","Secret":"abc"}', stderr: '' }
  expect(await credentials({ credsStore: 'x' }, 'r.example', end)).toMatchObject([
    { login: { kind: 'identity-token', token: 'abc' } },
  ])
})

test('a helper that knows no login gives none', async () => {
  const end = { code: 1, stdout: 'credentials not found in native keychain\n', stderr: '' }
  expect(await credentials({ credsStore: 'x' }, 'r.example', end)).toEqual([])
})

test.each<[string, object | string, ProgramEnd | Error | undefined, RegExp]>([
  ['a file that is not JSON', '{', undefined, /config\.json is not JSON/],
  ['a helper that is missing', { credsStore: 'x' }, new Error('ENOENT'), /docker-credential-x gave no login.*ENOENT/],
  [
    'a helper that fails',
    { credsStore: 'x' },
    { code: 2, stdout: '', stderr: 'locked\n' },
    /r\.example: locked; log in/,
  ],
  ['a helper with a senseless answer', { credsStore: 'x' }, { code: 0, stdout: '[]', stderr: '' }, /no Username/],
  ['a helper named like a path', { credsStore: '../x' }, undefined, /not the name of a program/],
])('%s is an error with a remedy', async (_, document, end, message) => {
  await expect(credentials(document, 'r.example', end)).rejects.toMatchObject({
    code: 'misconfigured',
    message: expect.stringMatching(message) as string,
  })
})
