import fc from 'fast-check'
import type { PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import type { StartStep } from '../../src/stages/model/plan.ts'
import type { FaultyNode } from './faulty-node.ts'
import { skyhookSpec, type Features } from './scenario.ts'

/**
 * Specs that fail for as long as they stay: what a step runs with says whether it fails, so only a correction that
 * reaches it helps. A key `fails` of the configMap and a variable FAILS name the mode that fails, the image r/broken
 * fails in all modes but uninstall, and the service `typo` does not restart.
 */
const modes = [
  'apply',
  'apply-check',
  'config',
  'config-check',
  'upgrade',
  'upgrade-check',
  'uninstall',
  'uninstall-check',
  'post-interrupt',
  'post-interrupt-check',
] as const

type Failure = {
  readonly by: 'config' | 'env' | 'image' | 'interrupt' | 'key interrupt' | 'nothing'
  readonly mode: string
}

const failure: fc.Arbitrary<Failure> = fc.record({
  by: fc.constantFrom('config', 'config', 'config', 'env', 'image', 'interrupt', 'key interrupt', 'nothing'),
  mode: fc.constantFrom(...modes),
})

const typo = { type: 'service', services: ['typo'] } as const
const cron = { type: 'service', services: ['cron'] } as const

function withFailure(spec: PackageSpec, { by, mode }: Failure): PackageSpec {
  switch (by) {
    case 'config':
      return { ...spec, configMap: { ...spec.configMap, fails: mode } }
    case 'env':
      return { ...spec, env: [{ name: 'FAILS', value: mode }] }
    case 'image':
      return { ...spec, image: 'r/broken' }
    case 'interrupt':
      return { ...spec, interrupt: typo }
    case 'key interrupt':
      return { ...spec, configInterrupts: { '*': typo } }
    case 'nothing':
      return spec
  }
}

const mapPackages = (spec: SkyhookSpec, change: (name: string, spec: PackageSpec) => PackageSpec): SkyhookSpec => ({
  ...spec,
  packages: Object.fromEntries(Object.entries(spec.packages ?? {}).map(([name, one]) => [name, change(name, one)])),
})

export const failingSpec = (features?: Features): fc.Arbitrary<SkyhookSpec> =>
  fc
    .record({ spec: skyhookSpec(features), failures: fc.array(failure, { minLength: 3, maxLength: 3 }) })
    .map(({ spec, failures }) => {
      const failureOf = (name: string): Failure => failures['abc'.indexOf(name)] ?? { by: 'nothing', mode: '' }
      return mapPackages(spec, (name, one) => withFailure(one, failureOf(name)))
    })

/** The same packages and versions, without what fails. */
export const repaired = (spec: SkyhookSpec): SkyhookSpec =>
  mapPackages(spec, (_, { configMap = {}, env, interrupt, configInterrupts, image, ...same }) => {
    const { fails: _fails, ...kept } = configMap
    return {
      ...same,
      image: image === 'r/broken' ? 'r/pkg' : image,
      configMap: kept,
      ...(env && !env.some(({ name }) => name === 'FAILS') && { env }),
      ...(interrupt && { interrupt: interrupt === typo ? cron : interrupt }),
      ...(configInterrupts && { configInterrupts: configInterrupts['*'] === typo ? { '*': cron } : configInterrupts }),
    }
  })

/** A spec of which every step succeeds; `correction` is a value that no package was configured with before. */
export const corrected = (spec: SkyhookSpec, correction: string): SkyhookSpec =>
  mapPackages(spec, (_, one) => ({ ...one, configMap: { ...one.configMap, correction } }))

/** From now on steps fail by what they run with. */
export function failBySpec(node: FaultyNode): void {
  node.failingServices.add('typo')
  node.exitCodeOf = ({ spec, record, stage, attempt }: StartStep) => {
    const isFailing =
      spec.configMap?.['fails'] === attempt.mode ||
      spec.env?.some(({ name, value }) => name === 'FAILS' && value === attempt.mode) === true ||
      (record.image === 'r/broken' && stage !== 'uninstall')
    return isFailing ? 1 : undefined
  }
}
