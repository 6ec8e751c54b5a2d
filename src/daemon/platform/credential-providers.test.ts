import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { parseConfigFile, readConfigFiles } from './credential-providers.ts'

let folder: string
let root: HostRoot
beforeEach(() => ({ folder, host: root } = temporaryHost()))

const parsed = async (path: string) => await Promise.all((await readConfigFiles(root, path)).map(parseConfigFile))

test.each([
  ['JSON', '{"kind": "CredentialProviderConfig"}'],
  ['YAML', '# of the image\nkind: CredentialProviderConfig\n'],
  ['YAML in braces', '{kind: CredentialProviderConfig}'],
])('a file in %s is read, whatever it is called', async (_, text) => {
  writeFileSync(join(folder, 'config'), text)
  expect(await parsed('/config')).toEqual([{ path: '/config', document: { kind: 'CredentialProviderConfig' } }])
})

test('the files of a folder are read in the order of their names, others in it are not', async () => {
  mkdirSync(join(folder, 'all.d'))
  for (const name of ['20.yml', '10.json', '30.yaml', 'README', '40.yaml.bak'])
    writeFileSync(join(folder, 'all.d', name), '{}')
  expect((await parsed('/all.d')).map(({ path }) => path)).toEqual([
    '/all.d/10.json',
    '/all.d/20.yml',
    '/all.d/30.yaml',
  ])
})

test('a file that cannot be read as either is named with the line, and not quoted', async () => {
  writeFileSync(join(folder, 'config'), 'kind: x\nenv: "hunter2\nargs: [a')
  await expect(parsed('/config')).rejects.toThrow(/^\/config: is neither JSON nor YAML, line \d$/)
})

test.each([
  ['nothing is there', () => undefined],
  ['the folder has no file of that kind', () => mkdirSync(join(folder, 'config'))],
])('a path is named where %s', async (_, prepare) => {
  prepare()
  await expect(parsed('/config')).rejects.toThrow('/config: there is no')
})
