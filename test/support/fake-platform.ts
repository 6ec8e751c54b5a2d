import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { CensusProcess } from '../../src/daemon/platform/census-process.ts'
import type { Platform } from '../../src/daemon/platform/platform.ts'
import type { HealthChecks, MetricsRegistry } from '../../src/daemon/telemetry/http.ts'
import { createBusConnection } from '../../src/host/dbus/reconnecting.ts'
import { createHostRoot, type HostRoot } from '../../src/host/fs/host-root.ts'
import { claimSingleAgent } from '../../src/host/single-agent.ts'
import { createKubeTransport } from '../../src/kube/transport.ts'
import type { Clock, Random } from '../../src/schemas/clock.ts'
import { settingsOf } from './sample-settings.ts'
import { startFakeSystemd } from './fake-systemd.ts'
import { staticCredentials } from './static-credentials.ts'

export type LogLine = {
  /** By the clock of the platform. */
  readonly atMs: number
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

const step = {
  name: 'uninstall',
  path: 'uninstall.sh',
  arguments: [],
  returncodes: [0],
  on_host: true,
  idempotence: false,
  upgrade_step: false,
}
/** Every package of the fake image store: nothing to run but at its uninstall. */
const fakePackage = {
  schema_version: 'v1',
  package_name: 'fake',
  package_version: '1.0.0',
  expected_config_files: [],
  modes: { uninstall: [step], 'uninstall-check': [step] },
}
const fakeDigest = `sha256:${'a'.repeat(64)}` as const

/**
 * What one agent takes from outside, made up: a host in a temporary folder with a fake systemd, an image store that has
 * every image, and the given API server, time and chance.
 */
export async function startFakePlatform(options: {
  readonly nodeName: string
  readonly apiUrl: string
  readonly clock: Clock
  readonly random: Random
  /** What stands between the agent and the files of its host. */
  readonly aroundRoot?: (root: HostRoot) => HostRoot
  /** `config.json` of every package; by default one whose only steps are those of its uninstall. */
  readonly packageConfig?: { readonly modes: Readonly<Record<string, readonly { readonly path: string }[]>> }
  /** Files of every image beside `config.json` and the scripts. */
  readonly imageFiles?: readonly string[]
}) {
  const { nodeName, apiUrl, clock, random, aroundRoot = (root) => root, packageConfig = fakePackage } = options
  const { imageFiles = [] } = options
  const folder = mkdtempSync(join(tmpdir(), 'fake-host-'))
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text, { mode: 0o755 })
  }
  write('/proc/sys/kernel/random/boot_id', `${random.hex(4)}-0000-4000-8000-${random.hex(6)}\n`)
  write('/bin/sh', '')
  const systemd = await startFakeSystemd()
  const root = aroundRoot(createHostRoot(folder, random))
  const lines: LogLine[] = []
  const logAt =
    (level: LogLine['level']) =>
    (fields: object, message: string): void =>
      void lines.push({ atMs: clock.wallMs(), level, message, fields: { ...fields } })
  let stop: (signalName: string) => void = () => undefined
  let health: HealthChecks | undefined
  let registry: MetricsRegistry | undefined

  const platform: Platform = {
    clock,
    random,
    log: { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') },
    processId: 1,
    root,
    connectBus: () => createBusConnection({ clock, random, socketPath: systemd.bus.socketPath }),
    connectApi: (onRequest) =>
      createKubeTransport({ credentials: staticCredentials({ server: apiUrl }), version: nodeName, clock, onRequest }),
    openImageStore: (path) => ({
      async ensureImage(_, { onResolved }) {
        onResolved?.(fakeDigest)
        const image = join(folder, path, fakeDigest.replace('sha256:', ''))
        mkdirSync(join(image, 'skyhook_dir'), { recursive: true })
        for (const path of scriptsOf(packageConfig))
          writeFileSync(join(image, 'skyhook_dir', path), '#!/bin/sh\n', { mode: 0o755 })
        for (const path of imageFiles) write(join(image.slice(folder.length), path), 'of the image\n')
        writeFileSync(join(image, 'config.json'), JSON.stringify(packageConfig))
        return { digest: fakeDigest, path: image, isNew: true }
      },
      async checkImage(_, { onResolved }) {
        onResolved?.(fakeDigest)
        return { digest: fakeDigest, isStored: existsSync(join(folder, path, fakeDigest.replace('sha256:', ''))) }
      },
      isPresent: async (digest) => existsSync(join(folder, path, digest.replace('sha256:', ''))),
      collect: async () => [],
    }),
    startCensus: () => startFakeCensus(),
    claimHost: (claim) => claimSingleAgent({ root, clock, random, ...claim }),
    serveHealth(checks) {
      health = checks
      return () => (health = undefined)
    },
    serveMetrics(served) {
      registry = served
      return () => (registry = undefined)
    },
    onTermination: (callback) => (stop = callback),
    saveMemory: () => undefined,
  }
  return {
    platform,
    settings: settingsOf(nodeName, folder),
    /** Where the host's `/` is. */
    folder,
    systemd,
    lines,
    messages: () => lines.map(({ message }) => message),
    terminate: () => stop('SIGTERM'),
    /** Undefined while the agent serves none. */
    health: () => health,
    metrics: async () => await registry?.metrics(),
    async [Symbol.asyncDispose]() {
      await systemd[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const scriptsOf = ({
  modes = {},
}: {
  readonly modes?: Readonly<Record<string, readonly { path: string }[]>>
}): string[] => Object.values(modes).flatMap((steps) => steps.map(({ path }) => path))

export type FakePlatform = Awaited<ReturnType<typeof startFakePlatform>>

/** A census that counts nothing and ends when it is asked to. */
function startFakeCensus(): CensusProcess {
  const exit = Promise.withResolvers<string>()
  return {
    pid: undefined,
    output: { [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: await exit.promise }) }) },
    exited: exit.promise,
    send: () => undefined,
    closeInput: () => exit.resolve('it ended with code 0'),
    kill: () => exit.resolve('it was ended by SIGKILL'),
  }
}
