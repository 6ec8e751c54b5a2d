import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { krewManifest } from './krew-manifest.ts'

test('each archive is a platform of the manifest', () => {
  const archive = { fileName: 'a.tar.gz', sha256: 'f'.repeat(64), folder: 'a' }
  const text = krewManifest('1.2.3', 'https://example.com/x', [{ ...archive, architecture: 'arm64' }])
  expect(parse(text)).toMatchObject({
    metadata: { name: 'skyhook' },
    spec: {
      version: 'v1.2.3',
      platforms: [
        {
          selector: { matchLabels: { os: 'linux', arch: 'arm64' } },
          uri: 'https://example.com/x/a.tar.gz',
          sha256: archive.sha256,
          files: [{ from: 'a/*', to: '.' }],
          bin: 'kubectl-skyhook',
        },
      ],
    },
  })
})
