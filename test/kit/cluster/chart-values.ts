/** The agents with other values of the chart, for the tests of one file. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readVersion } from '../../../build/bundle.ts'
import { startedAgents } from './agents.ts'
import type { Cluster } from './cluster.ts'

const run = promisify(execFile)
const { SKYHOOKD_RELEASE: release } = process.env
/** What the sandbox was installed from. */
export const installedChart =
  release === undefined ? join(import.meta.dirname, '../../../chart') : join(release, `skyhookd-${readVersion()}.tgz`)

/** Sets values such as `drain.allowDelete=true` and waits until every agent was replaced. */
export async function setChartValues({ sandbox, history }: Cluster, ...values: readonly string[]): Promise<void> {
  const old = startedAgents(history.now)
  const set = values.flatMap((value) => ['--set', value])
  const upgrade = ['upgrade', 'skyhookd', installedChart, '--namespace', 'skyhook', '--reuse-values', ...set]
  await run('helm', upgrade, { env: { ...process.env, ...sandbox.env() } })
  await history.eventually('every agent was replaced', (view) => {
    const agents = startedAgents(view)
    return [...old].every(([node, uid]) => agents.has(node) && agents.get(node) !== uid)
  })
}
