import { rootCertificates } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { readEndpoints, type RegistryRule } from './endpoints.ts'
import { fakeSources } from '../../../../test/kit/registry/registry-documents.ts'

const certsRoot = '/etc/containerd/certs.d'
const read = (host: string, files: Record<string, string> = {}, rules: RegistryRule[] = []) =>
  readEndpoints(host, fakeSources(rules, files))
const bases = async (...parameters: Parameters<typeof read>) => (await read(...parameters)).map(({ base }) => base)

describe('the addresses of a registry', () => {
  test.each([
    ['r.example:5000', 'https://r.example:5000/v2'],
    ['docker.io', 'https://registry-1.docker.io/v2'], // the images of Docker Hub have another host name than its server
    ['[fd00::1]:5000', 'https://[fd00::1]:5000/v2'],
  ])('the registry %s is reached at %s', async (host, base) => {
    expect(await read(host)).toMatchObject([{ base, namespace: undefined }])
  })

  test.each([
    ['server = "https://docker.io"', ['https://registry-1.docker.io/v2']],
    ['server = "mirror.example"', ['https://mirror.example/v2']],
    [
      '[host."http://m:1"]\n[host."https://n/path/"]',
      ['http://m:1/v2', 'https://n/path/v2', 'https://registry-1.docker.io/v2'],
    ],
    ['[host."https://m/v2/hub"]\noverride_path = true', ['https://m/v2/hub', 'https://registry-1.docker.io/v2']],
    // the usual form for project caches
    ['[host."https://m/v2/hub/"]', ['https://m/v2/hub', 'https://registry-1.docker.io/v2']],
    ['[host."https://m/api"]\noverride_path = true', ['https://m/api', 'https://registry-1.docker.io/v2']],
    ['[host."https://m"]\noverride_path = true', ['https://m', 'https://registry-1.docker.io/v2']],
    // a host may have only headers, in one line
    ['[host."https://m".header]\nx-token = "t"', ['https://m/v2', 'https://registry-1.docker.io/v2']],
    ['host."https://m" = { override_path = true }', ['https://m', 'https://registry-1.docker.io/v2']],
    ['[host."https://registry-1.docker.io"]', ['https://registry-1.docker.io/v2']], // duplicates are dropped
  ])('the addresses of hosts.toml %j are taken in order', async (text, expected) => {
    expect(await bases('docker.io', { [`${certsRoot}/docker.io/hosts.toml`]: text })).toEqual(expected)
  })

  test('a directory of the host takes precedence over _default, in either spelling of its port', async () => {
    const fallback = { [`${certsRoot}/_default/hosts.toml`]: '[host."https://default"]' }
    const own = { [`${certsRoot}/r.example:5000/hosts.toml`]: '[host."https://own"]' }
    const underscored = { [`${certsRoot}/r.example_5000_/hosts.toml`]: '[host."https://underscored"]' }
    expect((await bases('r.example:5000', { ...fallback, ...own, ...underscored }))[0]).toBe('https://underscored/v2')
    expect((await bases('r.example:5000', { ...fallback, ...own }))[0]).toBe('https://own/v2')
    expect((await bases('r.example:5000', fallback))[0]).toBe('https://default/v2')
  })

  test('mirrors of the chart follow those of containerd, and http is used only where it is set', async () => {
    const rules = [
      { host: 'r.example', mirrors: ['m.example:5000', 'http://n.example', 'p.example'], plainHTTP: false },
      { host: 'p.example', plainHTTP: true },
    ]
    expect(
      await bases('r.example', { [`${certsRoot}/r.example/hosts.toml`]: '[host."https://c.example"]' }, rules),
    ).toEqual([
      'https://c.example/v2',
      'https://m.example:5000/v2',
      'http://n.example/v2',
      'http://p.example/v2',
      'https://r.example/v2',
    ])
    expect(await bases('p.example', {}, rules)).toEqual(['http://p.example/v2'])
  })

  test('an address trusts the bundle of the host and the authorities set for it alone', async () => {
    const files = {
      [`${certsRoot}/r.example/hosts.toml`]:
        'ca = "own.pem"\n[host."https://m.example"]\nca = ["/etc/m.pem"]\nclient = [["m.cert", "m.key"]]\nskip_verify = true',
      [`${certsRoot}/r.example/own.pem`]: 'OWN',
      '/etc/m.pem': 'MIRROR',
      [`${certsRoot}/r.example/m.cert`]: 'CERT',
      [`${certsRoot}/r.example/m.key`]: 'KEY',
    }
    const rules = [{ host: 'r.example', ca: 'CHART' }]
    const trusts = async (bundle: Record<string, string>) =>
      (await read('r.example', { ...files, ...bundle }, rules)).map(({ trust }) => trust)
    expect(await trusts({ '/etc/ssl/ca-bundle.pem': 'BUNDLE' })).toEqual([
      { ca: ['BUNDLE', 'MIRROR'], skipVerify: true, client: [{ cert: 'CERT', key: 'KEY' }] },
      { ca: ['BUNDLE', 'OWN', 'CHART'], skipVerify: false, client: [] },
    ])
    expect((await trusts({}))[1]?.ca).toEqual([...rootCertificates, 'OWN', 'CHART'])
    expect((await read('other.example'))[0]?.trust.ca).toEqual([]) // Node's own roots
  })

  test('loose certificates in the docker layout are read where there is no hosts.toml', async () => {
    const files = {
      [`${certsRoot}/r.example/a.crt`]: 'CA',
      [`${certsRoot}/r.example/c.cert`]: 'CERT',
      [`${certsRoot}/r.example/c.key`]: 'KEY',
      [`${certsRoot}/r.example/d.cert`]: 'ALONE',
    }
    expect((await read('r.example', files))[0]?.trust).toMatchObject({
      ca: [...rootCertificates, 'CA'],
      client: [{ cert: 'CERT', key: 'KEY' }],
    })
  })

  test.each([
    ['ca = "missing.pem"', /r\.example\/hosts\.toml: .*missing\.pem does not exist/],
    ['capabilities = ["fly"]', /unknown capability "fly"/],
    ['skip_verify = "yes"', /skip_verify must be true or false, got string/],
    ['[host."https://m"]\nclient = [["only"]]', /client must be a file, or a list of files or pairs/],
    ['host = "https://m"', /host must be a table, got string/],
    ['[host."https://m"]\nca = [1]', /ca must be a string or a list of strings, got a list/],
    ['server = ', /line 1/],
  ])('a mistake is reported with its file: %j', async (text, expected) => {
    await expect(read('r.example', { [`${certsRoot}/r.example/hosts.toml`]: text })).rejects.toMatchObject({
      code: 'misconfigured',
      message: expect.stringMatching(expected),
    })
  })
})
