import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { type ProviderSettings, readProviderSettings } from './settings.ts'

let folder: string
beforeEach(() => (folder = temporaryFolder()))

function read(imageCredentialProviders?: object): ProviderSettings {
  const path = join(folder, 'settings.json')
  writeFileSync(path, JSON.stringify({ imageCredentialProviders }))
  return readProviderSettings({}, path)
}

test('credential providers are asked, at the places that the kubelet names, unless the settings say otherwise', () => {
  expect(read()).toEqual({ isEnabled: true })
  expect(read({ enabled: true, config: '', binDir: '' })).toEqual({ isEnabled: true })
  expect(read({ enabled: false })).toEqual({ isEnabled: false })
  expect(read({ config: '/etc/providers.yaml', binDir: '/opt/providers/' })).toEqual({
    isEnabled: true,
    configPath: '/etc/providers.yaml',
    binFolder: '/opt/providers',
  })
})

test.each(['config', 'binDir'])('a relative path for %s is refused by its name', (name) => {
  expect(() => read({ [name]: 'etc/x' })).toThrow(`imageCredentialProviders.${name} must be an absolute path`)
})
