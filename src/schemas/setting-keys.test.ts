import { expect, test } from 'vitest'
import { hasSettings, settingsIn } from './setting-keys.ts'

test('settings are read from a key for each, at their paths', () => {
  const data = { logLevel: 'debug', 'drain.skipNamespaces': '["a"]', 'drain.allowDelete': 'true' }
  expect(settingsIn(data)).toEqual({ logLevel: 'debug', drain: { skipNamespaces: ['a'], allowDelete: true } })
})

test('settings are read from one text, as the chart of 0.1 wrote them, and a key counts more', () => {
  const text = JSON.stringify({ logLevel: 'warn', drain: { skipNamespaces: ['a'], allowDelete: true } })
  expect(settingsIn({ 'settings.json': text, logLevel: 'debug', 'drain.allowDelete': 'false' })).toEqual({
    logLevel: 'debug',
    drain: { skipNamespaces: ['a'], allowDelete: false },
  })
})

test.each([
  [{ 'metrics.port': 'http' }, 'metrics.port must be JSON'],
  [{ 'settings.json': '[]' }, 'settings.json is not a JSON object'],
])('%j is refused with the name of the key', (data, message) => {
  expect(() => settingsIn(data)).toThrow(message)
})

test('a ConfigMap with other keys only has no settings', () => {
  expect(hasSettings({ logLevel: 'info' })).toBe(true)
  expect(hasSettings({ loglevel: 'info', 'drain.other': 'x' })).toBe(false)
})
