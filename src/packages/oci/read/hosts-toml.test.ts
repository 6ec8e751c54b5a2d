import { describe, expect, test } from 'vitest'
import { parseToml } from './hosts-toml.ts'

const plain = (text: string) =>
  parseToml(text).map(({ path, values }) => [path.join(' / '), Object.fromEntries(values)])

describe('hosts.toml', () => {
  test('hosts.toml keeps the order of hosts and tells nested tables from comments', () => {
    const text = `
# upstream
server = "https://docker.io"   # trailing
capabilities = ["pull", 'resolve'] 

[host."https://mirror.example:5000"]
  ca = [ "/etc/certs/a.pem", # one
         "b.pem", ]
  skip_verify = false
[host."https://mirror.example:5000".header]
  x-token = ["a", "b"]
[ host . 'http://10.0.0.1' ]
  dial_timeout = "1s"
  client = [["a.cert", "a.key"]]
  weight = 1_000
`
    expect(plain(text)).toEqual([
      ['', { server: 'https://docker.io', capabilities: ['pull', 'resolve'] }],
      ['host / https://mirror.example:5000', { ca: ['/etc/certs/a.pem', 'b.pem'], skip_verify: false }],
      ['host / https://mirror.example:5000 / header', { 'x-token': ['a', 'b'] }],
      ['host / http://10.0.0.1', { dial_timeout: '1s', client: [['a.cert', 'a.key']], weight: 1000 }],
    ])
  })

  test('hosts.toml may have escapes or be empty', () => {
    expect(plain(String.raw`a = "tab\there \"quoted\" \u00e9"`)).toEqual([['', { a: 'tab\there "quoted" é' }]])
    expect(plain('')).toEqual([['', {}]])
    expect(plain('\r\na = true\r\n# end')).toEqual([['', { a: true }]])
  })

  test.each([
    ['a = 1\nb =\n', /line 2/],
    ['[host."x"\n', /line 1: expected "\]"/],
    ['a = "open\n', /line 1/],
    ['a = [1, 2\n', /expected/],
    ['a = 1 b = 2', /end of the line/],
    ['a = {b = 1}', /expected a string/],
  ])('the malformed hosts.toml %j is refused with its line', (text, expected) => {
    expect(() => parseToml(text)).toThrow(expected)
  })
})
