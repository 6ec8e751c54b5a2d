/** The installation that docs/usage/getting-started.md prints, from a packaged chart on a real API server. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeChartPackage } from '../../build/release/chart-package.ts'
import { blocksOf } from '../kit/pages/page-commands.ts'
import { startApiServer } from './api-server.ts'
import { chart, startChartCluster, type ChartCluster } from './chart-cluster.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..', '..')
const digest = `sha256:${'0'.repeat(64)}`
const blocks = blocksOf('getting-started.md').filter(({ place }) => place === 'release')
let cluster: ChartCluster
let folder: string
let environment: Readonly<Record<string, string | undefined>>

beforeAll(async () => {
  cluster = await startChartCluster(await startApiServer())
  await cluster.server.startControllerManager()
  folder = await mkdtemp(join(tmpdir(), 'skyhookd-release-'))
  const image = { repository: 'registry.example.com/infra/skyhookd', digest }
  await writeChartPackage(chart, image, join(folder, 'skyhookd-0.1.0.tgz'))
  await cp(join(root, 'samples'), join(folder, 'samples'), { recursive: true })
  const bin = (await run(join(root, 'test/sandbox/build-binaries.sh'), ['--path'])).stdout.trim()
  const { PATH } = process.env
  environment = { ...process.env, PATH: `${bin}:${PATH}`, KUBECONFIG: cluster.server.kubeconfig }
})
afterAll(async () => {
  await cluster?.stop()
  await rm(folder, { recursive: true })
})

test.each(blocks.map((block) => [block.line, block] as const))(
  'the commands in line %i end well in the folder of a release',
  async (_, { script }) => {
    await expect(
      run('bash', ['-euo', 'pipefail', '-c', script], { cwd: folder, env: environment }),
    ).resolves.toBeDefined()
  },
)

test('the agents run the image of the release', async () => {
  const { body } = await cluster.admin('GET', '/apis/apps/v1/namespaces/skyhook/daemonsets/skyhookd')
  expect(JSON.stringify(body)).toContain(`"image":"registry.example.com/infra/skyhookd@${digest}"`)
})
