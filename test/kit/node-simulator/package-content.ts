/** Contents of packages for tests of decisions. */
import type { Mode, PackageConfig, Step } from '../../../src/schemas/package-config.ts'

/** A step that runs every time, and succeeds with 0. */
export const plainStep = (path: string, change: Partial<Step> = {}): Step => ({
  name: path,
  path,
  arguments: [],
  returncodes: [0],
  onHost: true,
  env: {},
  idempotence: 'step',
  upgradeStep: false,
  ...change,
})

/** A package with the given steps, by default one step and one check in every mode. */
export function simplePackage(modes?: Partial<Record<Mode, readonly Step[]>>): PackageConfig {
  const every = (['apply', 'config', 'upgrade', 'uninstall', 'post-interrupt'] as const).flatMap((stage) => [
    [stage, [plainStep('run.sh')]] as const,
    [`${stage}-check`, [plainStep('run_check.sh')]] as const,
  ])
  return {
    packageName: 'pkg',
    packageVersion: '1.0.0',
    expectedConfigFiles: [],
    modes: modes ?? Object.fromEntries(every),
  }
}

export const guardedStep = (path: string): Step => plainStep(path, { idempotence: 'agent' })
