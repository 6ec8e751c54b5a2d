/** A release: everything that people install, as one folder. See `--help`. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock, systemRandom } from '../src/daemon/platform/system-clock.ts'
import { createRegistryClient } from '../src/packages/oci/read/registry.ts'
import { nodeVersion } from './node-binary.ts'
import { registryFromEnvironment } from './registry-login.ts'
import { buildRelease, checkPrefix } from './release/folder.ts'
import { releaseNotes } from './release/notes.ts'
import { pushRelease } from './release/push.ts'
import { cleanCommit } from './release/source.ts'
import { checkVersion, statedVersions } from './release/version.ts'

const usage = `usage: node build/release.ts --version VERSION [--out FOLDER] [--push REGISTRY/PATH] [--url URL]

  --version VERSION     must be what package.json and chart/Chart.yaml state, and have a section in CHANGELOG.md
  --out FOLDER          where the release goes (default: dist/release); replaces a release that is there
  --push REGISTRY/PATH  pushes images and chart below it, and names it in chart, manifests and samples (default:
                        registry.example.com/infra is named and nothing is pushed); login from REGISTRY_USER,
                        REGISTRY_PASSWORD and REGISTRY_CA, or from docker's config.json
  --newest              takes the successor of a pinned Debian package that is gone from the mirrors: for trials
  --url URL             folder from which the archives of cli will be downloaded, and the chart's home; without it there is
                        no manifest for krew
`

const repository = join(import.meta.dirname, '..')

/** What README.md and daemonset/kustomization.yaml name too. */
const unpushedPrefix = 'registry.example.com/infra'

const pushTimeoutMs = 30 * 60_000 // 110 MB over a slow line

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      version: { type: 'string' },
      out: { type: 'string', default: join(repository, 'dist/release') },
      push: { type: 'string' },
      url: { type: 'string' },
      newest: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const { version, out, push, url, newest } = values
  if (values.help || version === undefined) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }
  checkVersion(version, statedVersions(repository))
  checkNode()
  const commit = cleanCommit(repository)
  const prefix = checkPrefix(push ?? unpushedPrefix)
  const notes = releaseNotes(readFileSync(join(repository, 'CHANGELOG.md'), 'utf8'), version)
  const images = await buildRelease({
    repository,
    version,
    out: resolve(out),
    prefix,
    url,
    commit,
    notes,
    isLocked: !newest,
  })
  console.log(`${out}: skyhookd ${version}`)
  if (push === undefined) return 0
  const client = createRegistryClient(registryFromEnvironment(prefix.slice(0, prefix.indexOf('/'))), {
    clock: systemClock,
    random: systemRandom,
  })
  try {
    for (const reference of await pushRelease(client, prefix, images, AbortSignal.timeout(pushTimeoutMs)))
      console.log(reference)
    return 0
  } finally {
    client.close()
  }
}

/** Versions of Node compress differently. @throws Error if this is not the pinned one */
function checkNode(): void {
  if (process.version !== `v${nodeVersion()}`)
    throw new Error(`a release needs Node v${nodeVersion()}, got ${process.version}: run "make release"`)
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(`release: ${error instanceof Error ? error.message : String(error)}`)
  return 1
})
