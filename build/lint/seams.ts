/**
 * Lint rule: time, timers, chance, files, processes and connections enter the agent through one `Platform`
 * (src/daemon/platform/platform.ts), so that whole agents run beside each other on virtual time. What could reach for
 * one of them by itself is refused outside of its home.
 */
import { type Context, eachImport, importedName, type Node, nameOf, productPath } from './syntax.ts'

/** The real surroundings, and the programs that make them: the agent, its census, what unpacks an image. */
const homes = [
  'src/daemon/platform/',
  'src/daemon/main.ts',
  'src/daemon/census/process.ts',
  'src/packages/store/unpack-child.ts',
  'src/packages/oci/write/', // at build time, not in the agent
  'src/cli/compile-cache.ts', // runs before the tool, and decides where Node keeps it
  'src/cli/main.ts', // the machine of the tool for people
  'src/cli/base/connection/exec-plugin.ts', // a kubeconfig's credential plugin
  'src/cli/dashboard/page/', // a program of its own, in a browser
]

type Seam = { readonly what: string; readonly homes: readonly string[] }

/** Where else each of them may be used: files, or folders that end in a slash. */
const seams: Readonly<Record<string, Seam>> = {
  clock: { what: 'the clock', homes: [] },
  timer: { what: 'a timer', homes: [] },
  chance: { what: 'chance', homes: [] },
  files: {
    what: 'the file system',
    homes: [
      'src/host/fs/',
      'src/host/dbus/connection.ts', // which of two sockets is there
      'src/packages/store/unpack.ts', // in a process of their own, below a folder that they are given
      'src/packages/store/unpack-download.ts',
      'src/packages/validate/archive.ts', // of the command `validate`, below a folder that it is given
      'src/daemon/settings/settings-files.ts', // read before there is a platform
    ],
  },
  process: {
    what: 'the process',
    homes: [
      'src/packages/oci/manifest.ts', // the architecture
      'src/host/dbus/connection.ts', // the uid, with which it authenticates
      'src/host/fs/trust.ts', // the uid, whose links it follows
    ],
  },
  child: { what: 'another process', homes: ['src/cli/base/registry/programs.ts', 'src/cli/package/run/supervisor.ts'] },
  network: {
    what: 'the network',
    homes: [
      'src/kube/exchange.ts',
      'src/kube/transport.ts',
      'src/host/dbus/connection.ts',
      'src/host/single-agent.ts',
      'src/packages/oci/read/http.ts',
      'src/daemon/telemetry/http.ts',
      'src/cli/dashboard/server.ts', // of one browser, on loopback
    ],
  },
}

const modules: readonly { readonly from: RegExp; readonly names: RegExp; readonly seam: string }[] = [
  { from: /^(node:)?timers(\/promises)?$/, names: /./, seam: 'timer' },
  { from: /^(node:)?crypto$/, names: /^(random.*|\*|default)$/, seam: 'chance' },
  { from: /^(node:)?fs(\/promises)?$/, names: /./, seam: 'files' },
  { from: /^(node:)?process$/, names: /./, seam: 'process' },
  { from: /^(node:)?perf_hooks$/, names: /./, seam: 'clock' },
  { from: /^(node:)?child_process$/, names: /./, seam: 'child' },
  {
    from: /^(node:)?(net|tls|https?|dgram|http2)$/,
    names: /^(?!is[A-Z]|createSecureContext$|rootCertificates$)/,
    seam: 'network',
  },
]
const globals: readonly { readonly name: RegExp; readonly seam: string }[] = [
  { name: /^performance$/, seam: 'clock' },
  { name: /^(setTimeout|setInterval|setImmediate)$/, seam: 'timer' },
  { name: /^process$/, seam: 'process' },
]
const members: Readonly<Record<string, string>> = {
  'Date.now': 'clock',
  'AbortSignal.timeout': 'timer',
  'Math.random': 'chance',
}

const used = {
  create(context: Context) {
    const file = productPath(context.filename)
    if (!file) return {}
    const refuse = (node: Node, name: string, seam: string): void => {
      const { what, homes: own } = seams[seam] as Seam
      if ([...homes, ...own].some((home) => file.startsWith(home))) return
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
        const isType = parent?.type.startsWith('TS') && parent?.type !== 'TSNonNullExpression'
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
