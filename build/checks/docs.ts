import { parse } from 'yaml'
import { nameResolver, type Repository } from './repository.ts'

type Schema = {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

/** Fields and variables of Kubernetes and of the Skyhook operator that pages speak of. */
const foreign =
  /^(spec\.(unschedulable|taints|sequencing|nodeName)|status\.(hostIP|podIP)|metrics\.(addServiceAccountBinding|serviceAccountName(space)?)|SKYHOOK_AGENT_BUFFER_LIMIT|SKYHOOK_NODE_ORDER)\b/

/** Each command, file or field that a page names and that does not exist, as `page:line: what`. */
export function wrongNames(repository: Repository): string[] {
  const checks = [
    linksOf(repository),
    filesOf(repository),
    commandsOf(repository),
    fieldsOf(repository),
    keysOf(repository),
  ]
  return repository.paths
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) => {
      const lines = repository.read(path).split('\n')
      return lines.flatMap((line, index) =>
        [...new Set(checks.flatMap((check) => check(line, path)))].map((problem) => `${path}:${index + 1}: ${problem}`),
      )
    })
}

type Check = (line: string, page: string) => string[]

const all = (pattern: RegExp, line: string): string[] => [...line.matchAll(pattern)].map(([, found = '']) => found)

/** What stands between backticks. */
const codeOf = (line: string): string[] => all(/`([^`]+)`/g, line)

/** Links inside of the repository, with their anchors. */
function linksOf(repository: Repository): Check {
  const exists = nameResolver(repository)
  const anchorsOf = (page: string): string[] =>
    all(/^#+ (.*)$/gm, repository.read(page)).map((title) =>
      title
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    )
  return (line, page) =>
    all(/\]\(([^)\s]+)\)/g, line)
      .filter((target) => !/^https?:/.test(target))
      .flatMap((target) => {
        const [file = '', anchor] = target.split('#')
        const path = file === '' ? page : pathFrom(page, file)
        if (!exists(path, '')) return [`the link ${target} leads nowhere`]
        return anchor === undefined || anchorsOf(path).includes(anchor) ? [] : [`${path} has no heading #${anchor}`]
      })
}

/** A relative path, as one from the root. */
function pathFrom(page: string, file: string): string {
  return new URL(file, `file:///${page}`).pathname.slice(1).replace(/\/$/, '')
}

function filesOf(repository: Repository): Check {
  const exists = nameResolver(repository)
  const rooted = /(?<![\w$/@.*-])((?:src|test|build|bench|demo|docs|chart|crds|packages|bin)\/[\w./-]*\w)(?![\w*<{$-])/g
  const source = /(?<![\w$/@.*<>{}~-])((?:[\w.-]+\/)*[\w-][\w.-]*\.(?:ts|md))(?![\w*])/g
  return (line, page) => {
    const text = line.replaceAll(/\]\([^)]*\)|https?:\/\/\S+|[\w.-]+\.[a-z]{2,}(:\d+)?\/\S+/g, '')
    return [...new Set([...all(rooted, text), ...all(source, text)])]
      .filter((name) => !exists(name, page))
      .map((name) => `${name} does not exist`)
  }
}

function commandsOf(repository: Repository): Check {
  const targets = new Set(all(/^([a-z-]+):/gm, repository.read('Makefile')))
  const [, cases = ''] = repository.read('bin/sandbox').split('case $command in')
  const verbs = new Set(all(/^ {2}([\w| -]+)\)/gm, cases).flatMap((names) => names.split(/\s*\|\s*/)))
  const projects = new Set(all(/name: '(\w+)'/g, repository.read('vitest.config.ts')))
  const unknown = (known: ReadonlySet<string>, names: readonly string[], what: string): string[] =>
    names.filter((name) => !known.has(name)).map((name) => `there is no ${what} ${name}`)
  return (line) => {
    const code = [...codeOf(line), ...(/^\s*[\w$./=-]/.test(line) && !/[.,]$/.test(line) ? [line] : [])].join('\n')
    return [
      ...unknown(targets, all(/(?:^|`|sudo )make ([a-z][a-z-]+)/gm, code), 'make target'),
      ...unknown(verbs, all(/bin\/sandbox ([a-z-]+)/g, code), 'command of bin/sandbox'),
      ...unknown(projects, all(/--project (\w+)/g, code), 'project of vitest'),
    ]
  }
}

/** Fields of our resources (`spec.…`, or a path that starts with a field which has fields) and values of the chart. */
function fieldsOf(repository: Repository): Check {
  const schemas = repository.paths
    .filter((path) => /^crds\/.*\.yaml$/.test(path))
    .map((path) => parse(repository.read(path)) as { spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } })
    .flatMap(({ spec }) => spec.versions.map(({ schema }) => schema.openAPIV3Schema))
  const top = schemas.flatMap(({ properties }) => Object.entries(properties ?? {}))
  const inner = schemas.flatMap((schema) => fieldsBelow(schema)).filter(([, { properties }]) => properties)
  const values = parse(repository.read('chart/values.yaml')) as Record<string, unknown>
  return (line) => {
    const code = codeOf(line).flatMap((text) => all(/^([a-z]\w*(?:\.[a-z]\w*)+)(?=$|[\s:=])/gi, text))
    const wrong = code.filter((path) => {
      if (foreign.test(path) || /\.(sh|conf|json|yaml|tar|crt|key)$/.test(path)) return false
      const [first = '', ...rest] = path.split('.')
      const fields = (/^(spec|status)$/.test(first) ? top : inner).filter(([name]) => name === first)
      if (fields.length === 0 && !(first in values)) return false
      return !fields.some(([, schema]) => hasField(schema, rest)) && !hasValue(values, path)
    })
    const unset = all(/--set ([\w.]+)=/g, line).filter((path) => !hasValue(values, path))
    return [...wrong, ...unset].map((path) => `there is no field ${path}`)
  }
}

function fieldsBelow(schema: Schema): [string, Schema][] {
  const next = Object.entries(schema.properties ?? {})
  const others = [schema.items, schema.additionalProperties].filter((one) => typeof one === 'object')
  return [...next, ...[...next.map(([, one]) => one), ...others].flatMap((one) => fieldsBelow(one))]
}

function hasField(schema: Schema, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined || schema['x-kubernetes-preserve-unknown-fields']) return true
  const next = schema.properties?.[first] ?? schema.additionalProperties
  if (next === true) return true
  if (typeof next === 'object') return hasField(next, rest)
  return schema.items ? hasField(schema.items, [first, ...rest]) : !schema.properties
}

function hasValue(values: unknown, path: string): boolean {
  return (
    path.split('.').reduce<{ value: unknown } | undefined>(
      (found, part) => {
        const value = found?.value
        if (typeof value !== 'object' || value === null || !(part in value)) return undefined
        return { value: (value as Record<string, unknown>)[part] }
      },
      { value: values },
    ) !== undefined
  )
}

/** Annotations, labels and conditions, metrics, and environment variables that start with our names. */
function keysOf(repository: Repository): Check {
  const product = repository.paths
    .filter((path) => /^(src|chart|crds|packages|test)\/.*\.(ts|yaml|sh|tpl)$/.test(path) && !path.endsWith('.test.ts'))
    .map((path) => repository.read(path))
    .join('\n')
  const isKnown = (name: string): boolean => product.includes(name)
  return (line) => [
    ...all(/skyhook\.nvidia\.com\/(\w*[a-z][\w-]*)(?![\w/-])/g, line)
      .map((key) => key.replace(/_.*$/, '_').replace(/-$/, '')) // kubectl's sign of a removal
      .filter((key) => !isKnown(`skyhook.nvidia.com/${key}`) && !isKnown(`}/${key}`))
      .map((key) => `no key skyhook.nvidia.com/${key} is used`),
    ...all(/\b(skyhookd_[a-z_]*[a-z])/g, line)
      .map((name) => name.replace(/_(bucket|sum|count)$/, ''))
      .filter((name) => !isKnown(name))
      .map((name) => `there is no metric ${name}`),
    ...all(/\b((?:SKYHOOKD?|STEP)_[A-Z_]*[A-Z])\b/g, line)
      .filter((name) => !isKnown(name) && !foreign.test(name))
      .map((name) => `no variable ${name} is read or set`),
  ]
}
