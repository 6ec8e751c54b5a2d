/**
 * Runs stages of a package folder on a host as the daemon does: copy dir, configMap, environment, executability, one
 * unit per step, its observed end. It omits what the daemon adds around that (slots, flags, history, retries).
 */
import { randomUUID } from 'node:crypto'
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { createHostRoot } from '../../src/host/fs/host-root.ts'
import { forgetStepUnit } from '../../src/host/step/start.ts'
import { loadPackage, missingConfigFiles, stepPaths, whyNotExecutable } from '../../src/packages/step/load-package.ts'
import { ensureCopyDir } from '../../src/packages/install/copy-dir.ts'
import { composeStep } from '../../src/packages/step/environment.ts'
import { copyDir, type HostFolders, type PackageInstance, scriptsDir, stateDir } from '../../src/packages/layout.ts'
import { claimLogFiles, packageLogDir } from '../../src/packages/step/log-files.ts'
import { stepUnitRequest } from '../../src/packages/step/unit-request.ts'
import { isCheck, type Mode } from '../../src/schemas/package-config.ts'
import type { SystemdHost, TestAgent } from '../kit/cluster/systemd-host.ts'

const packagesFolder = join(import.meta.dirname, '../../packages')
const folders: HostFolders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }

export type ModeResult = {
  readonly ok: boolean
  /** Standard output and error of all its steps. */
  readonly output: string
}

export type PackageRunner = {
  /** Host path of the Skyhook's folder: SKYHOOK_ROOT_DIR. */
  readonly stateDir: string
  /** Changes the configMap: a new generation, thus a new copy dir. */
  configure(configMap: Readonly<Record<string, string>>): void
  /** Runs one mode. A mode without steps succeeds. */
  mode(mode: Mode): Promise<ModeResult>
  /** Runs the modes one after another and returns their output; throws with the output of the first that fails. */
  modes(...modes: readonly Mode[]): Promise<string>
}

export type PackageRunnerOptions = {
  readonly host: SystemdHost
  readonly agent: TestAgent
  /** Folder below packages/. */
  readonly folder: string
  /** Name in the Skyhook; defaults to the folder's. */
  readonly name?: string
  readonly configMap?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
}

/** Copies the folder to the host, as unpacking the image does, and loads it as the daemon does. */
export async function preparePackage({
  host,
  agent,
  folder,
  name = folder,
  configMap = {},
  env = {},
}: PackageRunnerOptions): Promise<PackageRunner> {
  const { root } = host
  const store = `/var/lib/skyhook/.agent/test-store/${folder}`
  await root.mkdirp(store)
  await cp(join(packagesFolder, folder), await root.resolve(store), { recursive: true })
  // here, not on the host: that is visible only through /proc/PID/root, a link that realpath cannot follow
  const loaded = await loadPackage(createHostRoot('/', systemRandom), join(packagesFolder, folder))
  if (loaded.outcome === 'invalid') throw new Error(loaded.message)
  const { config } = loaded
  const skyhookUid = randomUUID()
  let generation = 0
  let keys = configMap

  async function mode(mode: Mode): Promise<ModeResult> {
    const instance: PackageInstance = { skyhook: 'host', skyhookUid, generation, name, version: config.packageVersion }
    const dir = copyDir(folders, instance)
    const ensured = await ensureCopyDir({
      nowMs: Date.now(),
      host: root,
      store,
      digest: 'sha256:test',
      copyDir: dir,
      stepPaths: stepPaths(config).keys(),
      configMap: keys,
      nodeMetadata: { labels: '{}', annotations: '{}', packages: '{}' },
    })
    if (ensured.outcome === 'invalid') throw new Error(ensured.problems.join('; '))
    const missing = await missingConfigFiles(root, dir, config, mode)
    if (missing.length > 0) throw new Error(`the configMap lacks ${missing.join(', ')}`)

    let ok = true
    let output = ''
    for (const [index, step] of (config.modes[mode] ?? []).entries()) {
      const composed = composeStep({
        config,
        mode,
        step,
        instance,
        folders,
        variables: Object.entries(env).map(([name, value]) => ({ name, value })),
        previousVersion: 'unknown',
      })
      if (composed.outcome === 'missing') throw new Error(`the environment lacks ${composed.variables.join(', ')}`)
      const unusable = await whyNotExecutable(
        root,
        `${scriptsDir(dir)}/${step.path}`,
        composed.environment['PATH'] ?? '',
      )
      if (unusable !== undefined) throw new Error(unusable)
      const logs = await claimLogFiles(root, packageLogDir(folders, instance.skyhook, config), step.path, Date.now())
      const id = randomUUID()
      const attempt = { id, unit: `skyhookd-${name}-${mode}-${index}-${id.slice(0, 8)}.service`, mode }
      const request = stepUnitRequest({
        attempt,
        instance,
        step,
        composed,
        copyDir: dir,
        logs,
        properties: {},
        stopTimeoutMs: 30_000,
        isSelinuxEnforcing: false,
      })
      const end = await agent.run(request)
      const passed =
        end.state === 'ended' && end.result.outcome === 'exited' && step.returncodes.includes(end.result.code)
      const texts = await Promise.all(
        [logs.stdout, logs.stderr].map(async (path) => (await root.readFile(path)).toString()),
      )
      output += texts.join('') + (passed ? '' : `\n${mode} ${step.path}: ${JSON.stringify(end)}\n`)
      await forgetStepUnit(agent.stepHost, attempt)
      ok &&= passed
      if (!passed && !isCheck(mode)) break
    }
    return { ok, output }
  }

  return {
    stateDir: stateDir(folders, 'host'),
    configure(configMap) {
      keys = configMap
      generation += 1
    },
    mode,
    async modes(...modes) {
      let output = ''
      for (const each of modes) {
        const result = await mode(each)
        if (!result.ok) throw new Error(`${each} failed:\n${result.output}`)
        output += result.output
      }
      return output
    },
  }
}

/** Text of a file of the host; undefined if it does not exist. */
export async function hostFile({ root }: SystemdHost, path: string): Promise<string | undefined> {
  return (await root.stat(path)) === undefined ? undefined : await readFile(await root.resolve(path), 'utf8')
}
