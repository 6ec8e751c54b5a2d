import { expect, test } from 'vitest'
import { proxyOfEnvironment } from './proxy.ts'

const proxy = 'http://proxy:3128'

test.each([
  ['https://api.example:6443', { HTTPS_PROXY: proxy }, proxy],
  ['https://api.example:6443', { https_proxy: proxy }, proxy],
  ['https://api.example:6443', { HTTPS_PROXY: 'proxy:3128' }, proxy],
  ['https://api.example:6443', { HTTP_PROXY: proxy }, undefined],
  ['http://api.example', { HTTP_PROXY: proxy }, proxy],
  ['https://127.0.0.1:6443', { HTTPS_PROXY: proxy }, undefined],
  ['https://localhost:6443', { HTTPS_PROXY: proxy }, undefined],
  ['https://[::1]:6443', { HTTPS_PROXY: proxy }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: '*' }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'other, example' }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: '.example' }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, no_proxy: 'api.example:6443' }, undefined],
  ['https://api.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'api.example:443' }, proxy],
  ['https://api.example', { HTTPS_PROXY: proxy, NO_PROXY: 'api.example:443' }, undefined],
  ['https://myapi.example:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'api.example' }, proxy],
  ['https://10.1.2.3:6443', { HTTPS_PROXY: proxy, NO_PROXY: '10.0.0.0/8' }, undefined],
  ['https://11.1.2.3:6443', { HTTPS_PROXY: proxy, NO_PROXY: '10.0.0.0/8' }, proxy],
])('the proxy for %s under %o is %s', (server, environment, expected) => {
  expect(proxyOfEnvironment(server, environment)).toBe(expected)
})
