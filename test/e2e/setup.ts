/**
 * Global set-up of the tests on real parts. The end-to-end files of one worker share a sandbox, booted by the first one
 * that uses it (cluster.ts); this file names them, and removes them however the run ends. A killed run leaves sandboxes
 * behind, which the next run removes.
 *
 * `E2E_SANDBOX=name` uses that sandbox instead, boots it if necessary, and leaves it up: for work on a test.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    sandbox: string
  }
}

const repository = join(import.meta.dirname, '..', '..')
const ownName = `e2e-${process.pid}`

export function setup(project: TestProject): void {
  for (const name of leftBehind()) down(name)
  project.provide('sandbox', process.env['E2E_SANDBOX'] ?? ownName)
  process.once('exit', teardown) // Ctrl-C and failures inside the runner end without a teardown
}

export function teardown(): void {
  for (const name of sandboxes()) if (name === ownName || name.startsWith(`${ownName}-`)) down(name)
}

function down(name: string): void {
  spawnSync(join(repository, 'bin/sandbox'), ['down'], {
    env: { ...process.env, SANDBOX: name },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

const sandboxes = (): string[] => readdirSync(repository).flatMap((entry) => /^\.sandbox-(.+)$/.exec(entry)?.[1] ?? [])

/** Sandboxes of runs whose process has ended. */
function leftBehind(): string[] {
  return sandboxes().filter((name) => {
    const [, process] = /^e2e-(\d+)(-\w+)?$/.exec(name) ?? []
    return process !== undefined && !existsSync(`/proc/${process}`)
  })
}
