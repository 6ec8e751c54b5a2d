import { describe, expect, test } from 'vitest'
import { builderOf } from '../../../test/kit/objects/plan-builder.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import type { PlanBuilder } from '../model/plan-builder.ts'
import { advancePackage } from './advance-package.ts'

const free = { mayStart: true, isDrained: false }
const gated = { mayStart: false, isDrained: false }
const a: PackageSpec = { version: '1.0.0', image: 'r/p' }
const progressOf = (builder: PlanBuilder): string | undefined => {
  const progress = builder.record.packages['a|1.0.0']?.progress
  return progress && `${progress.stage} ${progress.state}`
}

describe('advancing a package', () => {
  test('a package asks for its image first and starts nothing', () => {
    const builder = builderOf({ packages: { a } }, [], { preparations: new Map() })
    expect(advancePackage(builder, 'a', free)).toEqual({ state: 'preparing' })
    expect(builder.actions.map(({ key }) => key)).toEqual(['prepare/r/p:1.0.0'])
    expect(progressOf(builder)).toBeUndefined()
  })

  test('a prepared package is ready while nothing may start', () => {
    const builder = builderOf({ packages: { a } })
    expect(advancePackage(builder, 'a', gated)).toEqual({ state: 'ready', stage: 'apply', pendingInterrupt: false })
    expect([progressOf(builder), builder.actions]).toEqual([undefined, []])
  })

  test('a prepared package starts its first step', () => {
    const builder = builderOf({ packages: { a } })
    expect(advancePackage(builder, 'a', free)).toEqual({ state: 'running' })
    expect(builder.actions.map((action) => action.do)).toEqual(['startStep'])
    expect(progressOf(builder)).toBe('apply running')
  })

  test('a package with an interrupt waits for the drain', () => {
    const builder = builderOf({ packages: { a: { ...a, interrupt: { type: 'reboot' } } } })
    expect(advancePackage(builder, 'a', free)).toEqual({ state: 'drain' })
    expect(advancePackage(builder, 'a', { mayStart: true, isDrained: true })).toEqual({ state: 'running' })
  })

  test('a package waits for its dependency', () => {
    const builder = builderOf({ packages: { a: { ...a, dependsOn: { b: '1.0.0' } }, b: a } })
    expect(advancePackage(builder, 'a', free)).toEqual({ state: 'dependency' })
  })

  test('a package whose image cannot be prepared is blocked with the reason', () => {
    const failed = {
      state: 'failed',
      depth: 'layers',
      reason: 'ImagePull',
      message: 'no such image',
      code: 'not-found',
      retryAtMs: 5_000,
    } as const
    const builder = builderOf({ packages: { a } }, [], { preparations: new Map([['r/p:1.0.0', failed]]) })
    const message = 'package a: no such image'
    expect(advancePackage(builder, 'a', free)).toEqual({
      state: 'blocked',
      atPreparation: true,
      reason: 'ImagePull',
      message,
      code: 'not-found',
      package: `a|${a.version}`,
    })
    expect(builder.requeueAtMs).toBe(5_000)
  })
})
