/**
 * Unit tests know no real time, and do not measure the process that many of them share: their outcome depends on what
 * they say, never on how busy the machine is, or on when memory is collected. Holds every
 * file of vitest's projects `unit`, `model` and `search` to that, and every helper that such a file imports, directly
 * or through others. Product code takes its clock and its connections as parameters (build/lint/seams.ts), so it is not
 * searched.
 */
import { join, matchesGlob } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'
import { integrationTests, modelTests, searchTests, unitTests } from '../test/projects.ts'
import type { Repository } from './repository.ts'

type Found = { readonly line: number; readonly name: string; readonly why: string; readonly instead: string }
type Module = { readonly found: readonly Found[]; readonly imports: readonly string[] }
type Rule = { readonly why: string; readonly instead: string }

const time: Rule = { why: 'knows real time', instead: 'take createVirtualClock of test/kit/virtual-clock.ts' }
const waiting: Rule = {
  why: 'waits in real time',
  instead: 'advance createVirtualClock of test/kit/virtual-clock.ts until it is so',
}
const processes: Rule = { why: 'starts processes', instead: 'call what the process would run' }
const sockets: Rule = {
  why: 'opens sockets',
  instead: 'take the simulated API server (test/kit/api-server) or host (test/kit/host)',
}
const measuring: Rule = {
  why: 'measures the process that many tests share',
  instead: 'judge a text of the kernel, or measure a process of its own',
}

const names = new Map([
  ['systemClock', time],
  ['setTimeout', time],
  ['setInterval', time],
  ['waitFor', waiting],
  ['waitUntil', waiting],
])
const members = new Map([
  ['Date.now', time],
  ['performance.now', time],
  ['AbortSignal.timeout', time],
  ['expect.poll', waiting],
  ['process.memoryUsage', measuring],
  ['process.cpuUsage', measuring],
  ['process.resourceUsage', measuring],
  ['process.hrtime', time],
])
const modules = new Map([
  ['timers', time],
  ['timers/promises', time],
  ['perf_hooks', time],
  ['child_process', processes],
  ['cluster', processes],
  ['worker_threads', processes],
  ['http', sockets],
  ['http2', sockets],
  ['https', sockets],
  ['net', sockets],
  ['tls', sockets],
  ['dgram', sockets],
])

/** Files of the kernel about the process that reads them. */
const ownMeasures = /^\/proc\/self\/(?:smaps|stat|io$|sched)/
/** What modules of sockets have beside sockets. */
const isConstant = (name: string | null | undefined): boolean => name === 'rootCertificates'
const matches = (path: string, globs: readonly string[]): boolean => globs.some((glob) => matchesGlob(path, glob))
const isUnitTest = (path: string): boolean =>
  matches(path, [...unitTests.include, ...modelTests, ...searchTests]) && !matches(path, integrationTests)
const isProduct = (path: string): boolean => path.startsWith('src/') && !path.endsWith('.test.ts')

/** Each use of real time, of a process, its measures or a socket, as `file:line: what`, with the imports that lead to it. */
export function unitTestProblems(repository: Repository): string[] {
  const known = new Set(repository.paths)
  const chains = new Map<string, readonly string[]>()
  for (const path of repository.paths) if (isUnitTest(path)) chains.set(path, [path])
  const problems: string[] = []
  for (const [path, chain] of chains) {
    const { found, imports } = read(path, repository.read(path))
    const via = chain.length > 1 ? ` (${chain.join(' > ')})` : ''
    const integrationTest = (chain[0] as string).replace(/\.test\.ts$/, '.integration.test.ts')
    for (const { line, name, why, instead } of found)
      problems.push(
        `${path}:${line}: ${name} ${why}, which a unit test may not${via}: ${instead}, ` +
          `or move the test to ${integrationTest}`,
      )
    // those that are added here come later in the same loop, each by a shortest chain
    for (const one of imports)
      if (known.has(one) && one.endsWith('.ts') && !isProduct(one) && !chains.has(one)) chains.set(one, [...chain, one])
  }
  return problems
}

function read(path: string, text: string): Module {
  const { program, module, errors } = parseSync(path, text)
  if (errors[0]) throw new Error(`cannot parse ${path}: ${errors[0].message}`)
  const found: Found[] = []
  const imports: string[] = []
  const add = (rule: Rule | undefined, name: string, at: number): void => {
    const line = text.slice(0, at).split('\n').length
    // an import names the same thing twice: there and here
    if (rule && !found.some((one) => one.line === line && one.name === name)) found.push({ line, name, ...rule })
  }
  const addImport = (from: string, at: number): void => {
    if (from.startsWith('.')) imports.push(join(path, '..', from))
    else add(modules.get(from.replace(/^node:/, '')), from, at)
  }
  for (const { moduleRequest, entries, start } of module.staticImports)
    if (entries.length === 0 || entries.some(({ isType, importName: { name } }) => !isType && !isConstant(name)))
      addImport(moduleRequest.value, start)
  for (const { entries, start } of module.staticExports)
    for (const { moduleRequest, isType } of entries) if (moduleRequest && !isType) addImport(moduleRequest.value, start)
  new Visitor({
    ImportExpression({ source, start }) {
      if (source.type === 'Literal' && typeof source.value === 'string') addImport(source.value, start)
    },
    Literal({ value, start }) {
      if (typeof value === 'string' && ownMeasures.test(value)) add(measuring, value, start)
    },
    Identifier({ name, start }) {
      add(names.get(name), name, start)
    },
    MemberExpression({ object, property, start }) {
      if (object.type !== 'Identifier') return
      const name = `${object.name}.${property.type === 'Identifier' ? property.name : ''}`
      add(members.get(name), name, start)
    },
  }).visit(program)
  return { found, imports }
}
