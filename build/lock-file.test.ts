import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

type LockedPackage = { readonly resolved?: string; readonly optionalDependencies?: Readonly<Record<string, string>> }

const lock = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package-lock.json'), 'utf8')) as {
  readonly packages: Readonly<Record<string, LockedPackage>>
}

test('the lock file has the optional packages of all platforms, without which npm ci refuses it', () => {
  const missing = Object.entries(lock.packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !(`node_modules/${name}` in lock.packages || `${path}/node_modules/${name}` in lock.packages),
    ),
  )
  expect(missing).toEqual([])
})

test('the lock file names no registry', () => {
  const resolved = Object.entries(lock.packages).filter(([, locked]) => locked.resolved !== undefined)
  expect(resolved).toEqual([])
})
