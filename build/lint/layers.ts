/**
 * Lint rules: which folder of `src` may import which, and which files are pure. One table says what is allowed. What it
 * does not name is refused, also a folder without a row.
 */
import { dirname, join } from 'node:path'
import { type Context, eachImport, importedName, type Node, nameOf, productPath } from './syntax.ts'

const schemas = ['src/schemas/**']
const packages = [
  'src/packages',
  'src/packages/install',
  'src/packages/operator-compat',
  'src/packages/step',
  'src/packages/store',
  'src/packages/validate',
  'src/packages/oci',
  'src/packages/oci/provider',
  'src/packages/oci/read', // not oci/write: the agent never writes images
]
const belowDaemon = [
  ...schemas,
  'src/stages/**',
  'src/kube',
  'src/lease/**',
  'src/host/**',
  ...packages,
  'src/census/**',
]

const belowCli = [
  ...schemas,
  'src/stages/**',
  'src/kube',
  'src/lease/**',
  'src/host/**',
  ...packages,
  'src/packages/oci/write',
]

/**
 * Folder or file → the folders that it may import, beside its own. `x` is the folder x alone, `x/**` is x with all that
 * is in it. The narrowest row that fits a file counts.
 */
export const layers: Readonly<Record<string, readonly string[]>> = {
  'src/schemas/**': schemas,

  ...staircase('src/stages', ['model', 'drain', 'interrupt', 'package', 'publish', 'skyhook', '.'], schemas),

  'src/kube': schemas,

  'src/lease': [...schemas, 'src/kube'],
  'src/lease/rule.ts': schemas,
  'src/lease/names.ts': schemas,
  'src/lease/waiting.ts': schemas,
  'src/lease/policy': [...schemas, 'src/lease'],
  'src/lease/budget': [...schemas, 'src/lease', 'src/lease/policy', 'src/stages/model'],

  ...staircase('src/host', ['fs', 'dbus', 'systemd', 'step', 'kubelet', 'preflight', '.'], schemas),

  'src/packages': schemas,
  ...rows('src/packages', [...schemas, 'src/host/**'], {
    install: ['.'],
    'operator-compat': ['.', 'install'],
    step: ['.', 'install'],
    oci: [],
    'oci/read': ['oci'],
    'oci/write': ['oci', 'oci/read'],
    'oci/provider': ['oci', 'oci/read', 'store'],
    store: ['.', 'oci', 'oci/read'],
    validate: ['.', 'oci', 'oci/read', 'step', 'store'],
  }),

  ...rows('src/census', [...schemas, 'src/stages/**', 'src/kube', 'src/lease/**'], {
    model: [],
    ledger: ['model'],
    write: ['model'],
    status: ['model'],
    reconcile: ['model', 'ledger', 'write', 'status'],
    '.': ['**'],
  }),

  ...rows('src/daemon', belowDaemon, {
    settings: [],
    telemetry: ['settings'],
    failures: [],
    platform: ['settings', 'telemetry'],
    state: ['settings', 'telemetry', 'platform', 'failures'],
    slots: ['settings', 'telemetry', 'platform', 'state'],
    'executors/steps': ['settings', 'telemetry', 'platform', 'failures', 'state'],
    executors: ['settings', 'telemetry', 'platform', 'failures', 'state', 'slots', 'executors/steps'],
    census: ['settings', 'telemetry', 'platform', 'state'],
    '.': ['**'],
  }),

  // The tool for people, beside the agent: none imports the other.
  ...rows('src/cli', belowCli, {
    'base/framework': [],
    'base/connection': ['base/framework'],
    'base/output': ['base/framework'],
    'base/registry': ['base/framework'],

    'fleet/fleet-view': [],
    'fleet/objects': ['base/framework', 'base/connection', 'base/output', 'fleet/fleet-view'],
    'fleet/agent-log': ['base/framework', 'base/connection', 'base/output', 'fleet/fleet-view', 'fleet/objects'],

    'reason/explain': ['base/output', 'fleet/fleet-view'],
    'reason/status': ['base/output', 'fleet/fleet-view', 'reason/explain'],
    'reason/plan': ['base/output', 'fleet/fleet-view', 'reason/explain'],
    'reason/dry-run': [
      'base/framework',
      'base/output',
      'fleet/fleet-view',
      'reason/explain',
      'reason/plan',
      'validate',
      'validate/generated',
    ],

    validate: ['base/framework', 'base/registry', 'validate/generated'],
    package: ['base/framework', 'base/registry'],
    'package/run': ['base/framework', 'base/output'],
    doctor: ['base/output', 'fleet/fleet-view', 'reason/explain'],
    'doctor/takeover': ['doctor'],
    'doctor/read': ['base/framework', 'fleet/fleet-view', 'doctor', 'doctor/takeover', 'validate/generated'],
    bundle: ['base/framework', 'fleet/fleet-view'],
    dashboard: [
      'base/framework',
      'fleet/fleet-view',
      'fleet/objects',
      'fleet/agent-log',
      'reason/explain',
      'reason/status',
      'reason/dry-run',
      'dashboard/generated',
    ],
    // what runs in the browser: of the tool's modules only those without Node's
    'dashboard/page': ['base/output', 'dashboard'],
    commands: ['**'],
    '.': ['**'],
  }),
}

/** Without clock, chance, effects or Node's modules, hashing aside. */
const pure =
  /^src\/(schemas|stages)\/|^src\/lease\/(rule|names|waiting|wait-state|outlook)\.ts$|^src\/lease\/(policy|budget)\/|^src\/cli\/(reason\/(explain|plan)|doctor(?!\/read))\/|^src\/cli\/bundle\/redact\.ts$|^src\/host\/preflight\/(facts|findings)\.ts$/
const impureGlobals = /^(setTimeout|setInterval|setImmediate|queueMicrotask|process|performance|fetch|crypto)$/

/** Each folder may import those before it. */
function staircase(parent: string, folders: readonly string[], below: readonly string[]): Record<string, string[]> {
  const lower = (index: number): readonly string[] => folders.slice(0, index)
  return rows(parent, below, Object.fromEntries(folders.map((folder, index) => [folder, lower(index)])))
}

function rows(
  parent: string,
  below: readonly string[],
  allowed: Readonly<Record<string, readonly string[]>>,
): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(allowed).map(([folder, others]) => [
      join(parent, folder),
      [...below, ...others.map((other) => join(parent, other))],
    ]),
  )
}

/** The row that governs a file of `src`. */
export function rowOf(file: string): string | undefined {
  const folders = [dirname(file)]
  while (folders.at(-1)?.includes('/')) folders.push(dirname(folders.at(-1) ?? ''))
  return [file, dirname(file), ...folders.map((folder) => `${folder}/**`)].find((row) => row in layers)
}

function isAllowed(row: string, file: string, target: string): boolean {
  const folder = dirname(target)
  if (folder === dirname(file) && row !== file) return true
  return (layers[row] ?? []).some((one) =>
    one.endsWith('/**') ? `${folder}/`.startsWith(one.slice(0, -2)) : one === folder,
  )
}

const allowed = {
  create(context: Context) {
    const file = productPath(context.filename)
    if (!file) return {}
    const row = rowOf(file)
    return eachImport((node, from) => {
      if (!from.startsWith('.')) return
      const target = join(dirname(file), from)
      if (row && isAllowed(row, file, target)) return
      const message = row
        ? `${row} may not import ${dirname(target)} (the table is in build/lint/layers.ts)`
        : `${dirname(file)} has no row in the table of build/lint/layers.ts`
      context.report({ node, message })
    })
  },
}

/** What a pure module may import of `node:crypto`. */
const pureCrypto: ReadonlySet<string> = new Set(['createHash', 'hash'])

const isPure = {
  create(context: Context) {
    const file = productPath(context.filename)
    if (!file || !pure.test(file)) return {}
    const refuse = (node: Node, what: string): void =>
      context.report({ node, message: `${what} in a pure module: take what it gives as a parameter` })
    return {
      ...eachImport((node, from) => {
        if (!from.startsWith('node:')) return
        const names = ((node['specifiers'] as Node[] | undefined) ?? [{ type: 'all' }]).map(importedName)
        if (from !== 'node:crypto' || names.some((name) => !pureCrypto.has(name))) refuse(node, from)
      }),
      Identifier(node: Node) {
        const parent = node['parent'] as Node | undefined
        const isMember = parent?.type === 'MemberExpression' && parent['property'] === node && !parent['computed']
        const isKey = parent?.['key'] === node && !parent['computed'] && parent['shorthand'] !== true
        if (impureGlobals.test(nameOf(node)) && !isMember && !isKey) refuse(node, nameOf(node))
      },
      MemberExpression(node: Node) {
        const text = `${nameOf(node['object'])}.${nameOf(node['property'])}`
        if (text === 'Date.now' || text === 'Math.random' || text === 'AbortSignal.timeout') refuse(node, text)
      },
      NewExpression(node: Node) {
        if (nameOf(node['callee']) === 'Date' && (node['arguments'] as Node[]).length === 0) refuse(node, 'new Date()')
      },
    }
  },
}

// oxlint-disable-next-line import/no-default-export -- the form of a plugin
export default { meta: { name: 'layers' }, rules: { allowed, pure: isPure } }
