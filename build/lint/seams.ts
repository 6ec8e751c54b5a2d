/**
 * Lint rule: time, timers, chance, files, processes and connections enter the agent through one `Platform`
 * (src/daemon/platform/platform.ts), so that whole agents run beside each other on virtual time. Everything in `src` that
 * could reach for one of them by itself is refused outside of its home.
 */
import { type Context, eachImport, importedName, type Node, nameOf, productPath } from './syntax.ts'

/** Programs of their own: the agent, the census in its child process, and what unpacks an image. */
const programs = ['src/daemon/main.ts', 'src/census/main.ts', 'src/packages/store/unpack-child.ts']
const platform = 'src/daemon/platform/'
/** Writes images at build time, not in the agent. */
const writer = 'src/packages/oci/write/'

type Seam = { readonly what: string; readonly homes: readonly string[]; readonly notYet?: readonly string[] }

/** Where each of them may be used: files, or folders that end in a slash. */
const seams = {
  clock: { what: 'the clock', homes: [platform, writer], notYet: ['src/'] },
  timer: { what: 'a timer', homes: [platform], notYet: ['src/'] },
  chance: { what: 'chance', homes: [platform], notYet: ['src/'] },
  files: {
    what: 'the file system',
    homes: [platform, 'src/host/fs/', 'src/packages/store/unpack', writer, ...programs],
    notYet: ['src/'],
  },
  process: { what: 'the process', homes: [platform, ...programs], notYet: ['src/'] },
  child: { what: 'another process', homes: [platform, 'src/packages/store/unpack-child.ts'], notYet: ['src/'] },
  network: {
    what: 'the network',
    homes: [
      platform,
      writer,
      'src/kube/exchange.ts',
      'src/kube/transport.ts',
      'src/host/dbus/connection.ts',
      'src/host/single-agent.ts',
      'src/packages/oci/read/http.ts',
      'src/daemon/telemetry/http.ts',
      'src/daemon/telemetry/probe.ts',
    ],
    notYet: ['src/'],
  },
} as const satisfies Record<string, Seam>
type SeamName = keyof typeof seams

const modules: readonly { readonly from: RegExp; readonly names: RegExp; readonly seam: SeamName }[] = [
  { from: /^(node:)?timers(\/promises)?$/, names: /./, seam: 'timer' },
  { from: /^(node:)?crypto$/, names: /^(random.*|\*|default)$/, seam: 'chance' },
  { from: /^(node:)?fs(\/promises)?$/, names: /./, seam: 'files' },
  { from: /^(node:)?process$/, names: /./, seam: 'process' },
  { from: /^(node:)?perf_hooks$/, names: /./, seam: 'clock' },
  { from: /^(node:)?child_process$/, names: /./, seam: 'child' },
  {
    from: /^(node:)?(net|tls|https?|dgram|http2)$/,
    names: /^(?!is[A-Z]|isIP|checkServerIdentity|rootCert)/,
    seam: 'network',
  },
]
const globals: readonly { readonly name: RegExp; readonly seam: SeamName }[] = [
  { name: /^performance$/, seam: 'clock' },
  { name: /^(setTimeout|setInterval|setImmediate)$/, seam: 'timer' },
  { name: /^crypto$/, seam: 'chance' },
  { name: /^process$/, seam: 'process' },
  { name: /^fetch$/, seam: 'network' },
]
const members: Readonly<Record<string, SeamName>> = {
  'Date.now': 'clock',
  'AbortSignal.timeout': 'timer',
  'Math.random': 'chance',
}

const used = {
  create(context: Context) {
    const file = productPath(context.filename)
    if (!file) return {}
    const refuse = (node: Node, name: string, seam: SeamName): void => {
      const { what, homes, notYet } = seams[seam]
      if ([...homes, ...notYet].some((home) => file.startsWith(home))) return
      context.report({ node, message: `${name} reaches for ${what}: take it as a parameter (build/lint/seams.ts)` })
    }
    return {
      ...eachImport((node, from) => {
        if (node['importKind'] === 'type') return
        for (const specifier of (node['specifiers'] ?? [{ type: '*', importKind: 'value' }]) as Node[]) {
          const name = importedName(specifier)
          const found = modules.find((one) => one.from.test(from) && one.names.test(name))
          if (found && specifier['importKind'] !== 'type') refuse(node, `${name} of ${from}`, found.seam)
        }
      }),
      Identifier(node: Node) {
        const parent = node['parent'] as Node | undefined
        const isMember = parent?.type === 'MemberExpression' && parent['property'] === node && !parent['computed']
        const isKey = parent?.['key'] === node && !parent['computed'] && parent['shorthand'] !== true
        const isType = /^TS/.test(parent?.type ?? '') && parent?.type !== 'TSNonNullExpression'
        const found = globals.find(({ name }) => name.test(nameOf(node)))
        if (found && !isMember && !isKey && !isType) refuse(node, nameOf(node), found.seam)
      },
      MemberExpression(node: Node) {
        const name = `${nameOf(node['object'])}.${nameOf(node['property'])}`
        const seam = Object.hasOwn(members, name) ? members[name] : undefined
        if (seam) refuse(node, name, seam)
      },
      NewExpression(node: Node) {
        const isNow = nameOf(node['callee']) === 'Date' && (node['arguments'] as Node[]).length === 0
        if (isNow) refuse(node, 'new Date()', 'clock')
      },
    }
  },
}

// oxlint-disable-next-line import/no-default-export -- the form of a plugin
export default { meta: { name: 'seams' }, rules: { used } }
