import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type ProviderSettings, readProviderSettings } from './provider-settings.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'settings-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

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
