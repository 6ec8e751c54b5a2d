import { expect, test } from 'vitest'
import { parseToml } from './toml.ts'

test('hosts keep the order of the file', () => {
  const { host } = parseToml('[host."https://b"]\nca = "x"\n[host."https://c".header]\na = "1"\n[host."https://a"]\n')
  expect(Object.keys(host as object)).toEqual(['https://b', 'https://c', 'https://a'])
})

test.each([
  ['a = 1\nb =\n', 2],
  ['[host."x"\n', 1],
  ['a = "open\n', 1],
  ['a = [1, 2\n', 2],
  ['a = 1 b = 2', 1],
  ['[a]\n[b]\n[a]', 3],
])('the malformed TOML %j is refused with line %i', (text, line) => {
  expect(() => parseToml(text)).toThrow(new RegExp(`^line ${line}: .`))
})

test('an error quotes nothing of the file, whose headers may hold tokens', () => {
  const attempt = (): unknown => parseToml('[host."https://m".header]\nauthorization = "Bearer s3cr3t\n')
  expect(attempt).toThrow(/^line 2: [^\n]*$/)
  expect(attempt).not.toThrow(/s3cr3t/)
})
