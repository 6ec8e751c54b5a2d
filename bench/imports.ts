/**
 * The cost of each library: its folder, its dependencies, and the memory that importing it adds to a bare Node.js
 * process (median of five, not bundled). docs/design/dependencies.md quotes it. Usage: node bench/imports.ts
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Memory, medianOf, parseRollup } from './memory.ts'

const modules = join(import.meta.dirname, '../node_modules')
const runs = 5

/** A library and what our code imports from it, or would import. */
const candidates = [
  { name: 'node:https', imports: ['node:https'] },
  { name: '@kubernetes/client-node', imports: ['@kubernetes/client-node'] },
  {
    name: 'dbus-next',
    imports: ['dbus-next/lib/dbus-buffer.js', 'dbus-next/lib/marshall-compat.js', 'dbus-next/lib/message-type.js'],
  },
  { name: 'pino', imports: ['pino'] },
  {
    name: '@prometheus-io/client',
    imports: ['counter', 'gauge', 'histogram', 'registry'].map((file) => `@prometheus-io/client/lib/${file}.js`),
  },
  { name: 'semver', imports: ['semver/functions/satisfies.js', 'semver/ranges/valid.js'] },
  { name: 'tar-stream', imports: ['tar-stream'] },
  { name: 'smol-toml', imports: ['smol-toml'] },
  { name: 'ajv', imports: ['ajv/dist/2020.js'] },
] as const

function measure(imports: readonly string[]): Memory & { readonly ms: number } {
  // plain JavaScript: stripping types would itself take some 20 MiB
  const program = `
    const { readFileSync } = process.getBuiltinModule('node:fs')
    const started = performance.now()
    for (const name of ${JSON.stringify(imports)}) await import(name)
    const ms = performance.now() - started
    console.log(JSON.stringify({ rollup: readFileSync('/proc/self/smaps_rollup', 'utf8'), ms }))`
  const samples = Array.from({ length: runs }, () => {
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: join(modules, '..'),
      encoding: 'utf8',
    })
    const { rollup, ms } = JSON.parse(output) as { rollup: string; ms: number }
    return { ...parseRollup(rollup), ms }
  })
  const of = (key: 'rssMiB' | 'privateMiB' | 'ms') => medianOf(samples.map((sample) => sample[key]))
  return { rssMiB: of('rssMiB'), privateMiB: of('privateMiB'), ms: of('ms') }
}

/** The folders of a package and of everything it needs, without optional ones. */
function closure(name: string, found = new Set<string>(), from = modules): Set<string> {
  const folder = existsSync(join(from, name)) ? join(from, name) : join(modules, name)
  if (found.has(folder) || !existsSync(folder)) return found
  found.add(folder)
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  ) as {
    dependencies?: Record<string, string>
    optionalDependencies?: Record<string, string>
  }
  for (const needed of Object.keys(dependencies))
    if (!(needed in optionalDependencies)) closure(needed, found, join(folder, 'node_modules'))
  return found
}

function bytesIn(folder: string): number {
  let bytes = 0
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === 'node_modules') continue // counted as packages of their own
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += bytesIn(path)
    else if (entry.isFile()) bytes += statSync(path).size
  }
  return bytes
}

const mb = (value: number): string => value.toFixed(1)
const bare = measure([])
console.log(`Node.js ${process.version}, bare: ${mb(bare.rssMiB)} MiB RSS, ${mb(bare.privateMiB)} MiB private\n`)
console.log('library                    version   folder MB   packages   all MB   +RSS MiB   +private MiB   import ms')
for (const { name, imports } of candidates) {
  const { rssMiB, privateMiB, ms } = measure(imports)
  const folders = name.startsWith('node:') ? [] : [...closure(name)]
  const own = folders[0]
  const version =
    own === undefined
      ? ''
      : (JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')) as { version: string }).version
  const all = folders.reduce((sum, folder) => sum + bytesIn(folder), 0)
  console.log(
    [
      name.padEnd(26),
      version.padEnd(8),
      mb(own === undefined ? 0 : bytesIn(own) / 1e6).padStart(10),
      String(folders.length).padStart(10),
      mb(all / 1e6).padStart(8),
      mb(rssMiB - bare.rssMiB).padStart(10),
      mb(privateMiB - bare.privateMiB).padStart(14),
      ms.toFixed(0).padStart(11),
    ].join(' '),
  )
}
