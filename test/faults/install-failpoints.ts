/** Makes the agents of a sandbox obey the campaign's commands; the product has nothing of that but the failpoints. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { commandsFile } from '../kit/cluster/agent-process.ts'

const hostRoot = '/host' // where the chart mounts the host's root in the agent's container
const preloadName = 'failpoint-preload.cjs'
const installTimeoutMs = 180_000

/**
 * Puts the program that reads the commands beside them on every host and rolls out agents that load it. Both lie in the
 * kubelet's folder, which no power cut takes.
 */
export async function installFailpoints(box: Sandbox): Promise<void> {
  const hosts = join(box.folder, 'hosts')
  for (const host of readdirSync(hosts)) await bundlePreload(join(hosts, host, 'kubelet', preloadName))
  const environment = [
    `SKYHOOKD_FAILPOINT_ORDERS=${hostRoot}${commandsFile}`,
    `NODE_OPTIONS=--require=${hostRoot}/var/lib/kubelet/${preloadName}`,
  ]
  const daemonSet = 'daemonset/skyhookd'
  await box.kubectl(['-n', 'skyhook', 'set', 'env', '--field-manager=helm', daemonSet, ...environment])
  await box.kubectl(['-n', 'skyhook', 'rollout', 'status', daemonSet, `--timeout=${installTimeoutMs / 1000}s`])
}

/** Writes the program as one file without imports. */
export async function bundlePreload(file: string): Promise<void> {
  await build({
    entryPoints: [join(import.meta.dirname, 'failpoint-preload.ts')],
    outfile: file,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
    logLevel: 'warning',
  })
}
