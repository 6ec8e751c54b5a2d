/**
 * The shell of a person: carries out a line as explain prints it. `kubectl skyhook` is the tool itself, `kubectl` asks
 * the simulated API server, and what has to be run on the host asks the simulated host.
 */
import type { KubeTransport, Method } from '../../../src/kube/transport.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import { isNotFound } from '../../../src/kube/errors.ts'
import type { FleetScene } from '../../kit/fleet/fleet-scene.ts'
import { commandLine } from '../../kit/tool/command-line.ts'
import type { Outside, Shown } from './outside.ts'

/** What a person types into the editor that `kubectl edit` opens: a merge patch. */
export type Edit = object

export type Shell = {
  /** @throws for a line that nobody has taught it */
  run(line: string, edit?: Edit): Promise<Shown>
  /** The same for a call of the tool. */
  tool(line: string): Promise<string>
}

export function openShell(scene: FleetScene, outside: Outside): Shell {
  const client = outside.withObjects(scene.transport)
  const ofTool = commandLine({ client, clock: scene.simulation.clock })

  async function one(words: readonly string[], edit: Edit | undefined): Promise<Shown> {
    const [program, verb = '', ...rest] = words
    if (program !== 'kubectl') throw new Error(`nobody has taught this shell to run ${words.join(' ')}`)
    if (verb !== 'skyhook') return await kubectl(client, words.slice(1), edit)
    const found = rest[0] === 'validate' ? outside.image(rest[1] ?? '') : undefined
    if (found !== undefined) return { status: 1, output: found }
    const { code, stdout, stderr } = await ofTool.run(rest.join(' '), { answer: 'y' })
    return { status: code, output: `${stdout}${stderr}` }
  }

  /** The tool may wait for the virtual time. */
  async function awaited<T>(work: Promise<T>): Promise<T> {
    const running = { isOver: false }
    const over = (): void => void (running.isOver = true)
    work.then(over, over)
    for (let looks = 0; !running.isOver && looks < 600; looks++) await scene.simulation.clock.advance(100)
    if (!running.isOver) throw new Error('the command does not end within a minute')
    return await work
  }

  return {
    async run(line, edit) {
      const [, onHost] = /^(.*) # on the host$/.exec(line) ?? []
      if (onHost !== undefined) return outside.onHost(onHost)
      let shown: Shown = { status: 0, output: '' }
      for (const part of line.split(' && ')) {
        const [command = '', ...filters] = part.split(' | ')
        const next = await awaited(one(wordsOf(command), edit))
        const output = filters.reduce(filtered, next.output)
        shown = { status: next.status, output: `${shown.output}${output}` }
        if (shown.status !== 0) return shown
      }
      return shown
    },
    async tool(line) {
      const { code, stdout, stderr } = await awaited(ofTool.run(line))
      if (code !== 0) throw new Error(`${line}: ${code} ${stderr}`)
      return stdout
    },
  }
}

/** As a shell splits a line: quotes keep words together. Throws for a variable, which a person would have to fill in. */
function wordsOf(line: string): readonly string[] {
  const words: string[] = []
  for (const [word] of line.trim().matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)) {
    if (/(?:^|[^'])\$/.test(word.replaceAll(/'[^']*'/g, ''))) throw new Error(`the line has a variable: ${line}`)
    words.push(word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => single ?? double ?? ''))
  }
  return words
}

/** Only `grep -A`. */
function filtered(text: string, filter: string): string {
  const [, after = '', pattern = ''] = /^grep -A(\d+) (\S+)$/.exec(filter) ?? []
  if (pattern === '') throw new Error(`nobody has taught this shell to filter by ${filter}`)
  const lines = text.split('\n')
  return lines
    .filter((_, at) => lines.slice(Math.max(0, at - Number(after)), at + 1).some((line) => line.includes(pattern)))
    .join('\n')
}

type Kind = { readonly folder: string; readonly isNamespaced: boolean }

const kinds: Readonly<Record<string, Kind>> = {
  node: { folder: '/api/v1/nodes', isNamespaced: false },
  namespace: { folder: '/api/v1/namespaces', isNamespaced: false },
  pod: { folder: '/api/v1/pods', isNamespaced: true },
  event: { folder: '/api/v1/events', isNamespaced: true },
  secret: { folder: '/api/v1/secrets', isNamespaced: true },
  configmap: { folder: '/api/v1/configmaps', isNamespaced: true },
  lease: { folder: '/apis/coordination.k8s.io/v1/leases', isNamespaced: true },
  poddisruptionbudget: { folder: '/apis/policy/v1/poddisruptionbudgets', isNamespaced: true },
  daemonset: { folder: '/apis/apps/v1/daemonsets', isNamespaced: true },
  skyhook: { folder: '/apis/skyhook.nvidia.com/v1alpha1/skyhooks', isNamespaced: false },
  deploymentpolicy: { folder: '/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies', isNamespaced: false },
  validatingwebhookconfiguration: {
    folder: '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    isNamespaced: false,
  },
  mutatingwebhookconfiguration: {
    folder: '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
    isNamespaced: false,
  },
  validatingadmissionpolicy: {
    folder: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
    isNamespaced: false,
  },
}

function kindOf(word: string): Kind {
  const found = kinds[word] ?? kinds[word.replace(/ies$/, 'y')] ?? kinds[word.replace(/s$/, '')]
  if (found === undefined) throw new Error(`kubectl: the server does not have a resource type "${word}"`)
  return found
}

const withValue: ReadonlySet<string> = new Set(['-n', '-o', '-l', '--type', '-p', '--field-selector'])
const alone: ReadonlySet<string> = new Set(['--overwrite', '--previous', '-w', '-A', '--show-labels'])

type Parsed = { readonly words: readonly string[]; readonly flags: ReadonlyMap<string, string> }

function parsed(words: readonly string[]): Parsed {
  const flags = new Map<string, string>()
  const rest: string[] = []
  for (let at = 0; at < words.length; at++) {
    const [name = '', ...value] = (words[at] ?? '').split('=')
    if (!name.startsWith('-')) rest.push(words[at] ?? '')
    else if (withValue.has(name)) flags.set(name, value.length > 0 ? value.join('=') : (words[++at] ?? ''))
    else if (alone.has(name)) flags.set(name, 'true')
    else throw new Error(`nobody has taught kubectl the flag ${name}`)
  }
  return { words: rest, flags }
}

async function kubectl(client: KubeTransport, args: readonly string[], edit: Edit | undefined): Promise<Shown> {
  const { words, flags } = parsed(args)
  const [verb = '', types = '', name, ...changes] = words
  const namespace = flags.get('-n')
  const folderOf = ({ folder, isNamespaced }: Kind): string =>
    isNamespaced && namespace !== undefined ? folder.replace(/\/([^/]+)$/, `/namespaces/${namespace}/$1`) : folder
  const path = (): string => {
    const kind = kindOf(types)
    if (name === undefined) throw new Error(`kubectl ${verb}: no name`)
    if (kind.isNamespaced && namespace === undefined) throw new Error(`kubectl ${verb} ${types}: namespace default`)
    return `${folderOf(kind)}/${name}`
  }
  const patch = async (body: object): Promise<Shown> => {
    await client.json('PATCH', path(), { contentType: 'application/merge-patch+json', body })
    return { status: 0, output: `${types}/${name} changed\n` }
  }
  const read = async (method: Method, at: string, query: Readonly<Record<string, string>> = {}): Promise<Shown> => {
    try {
      return { status: 0, output: `${JSON.stringify(await client.json(method, at, { query }), undefined, 1)}\n` }
    } catch (error) {
      if (!isNotFound(error)) throw error
      return { status: 1, output: `Error from server (NotFound): ${types} ${name}\n` }
    }
  }

  switch (verb) {
    case 'patch':
      return await patch(JSON.parse(flags.get('-p') ?? '') as object)
    case 'label':
      return await patch({ metadata: { labels: pairs(changes) } })
    case 'annotate':
      return await patch({ metadata: { annotations: pairs(changes) } })
    case 'edit':
      if (edit === undefined) throw new Error(`the editor is open for ${types} ${name}, and nobody types`)
      return await patch(edit)
    case 'delete':
      return await read('DELETE', path())
    case 'logs':
      return await logs(client, `/api/v1/namespaces/${namespace}/pods/${types}/log`, flags)
    case 'describe':
    case 'get': {
      const selector = flags.get('-l')
      const fields = flags.get('--field-selector')
      const query = {
        ...(selector !== undefined && { labelSelector: selector }),
        ...(fields !== undefined && { fieldSelector: fields }),
      }
      let output = verb === 'describe' && types === 'node' ? await taintsOf(client, path()) : ''
      for (const type of types.split(',')) {
        const shown = await read('GET', name === undefined ? folderOf(kindOf(type)) : path(), query)
        if (shown.status !== 0) return shown
        output += shown.output
      }
      return { status: 0, output }
    }
    default:
      throw new Error(`nobody has taught kubectl to ${verb}`)
  }
}

/** Its lines in what `kubectl describe node` shows. */
async function taintsOf(client: KubeTransport, path: string): Promise<string> {
  const { spec } = await client.json<KubernetesNode>('GET', path)
  const taints = (spec?.taints ?? []).map(({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`)
  return `Taints: ${taints.join('\n        ') || '<none>'}\n`
}

async function logs(client: KubeTransport, path: string, flags: ReadonlyMap<string, string>): Promise<Shown> {
  const query = flags.has('--previous') ? { previous: 'true' } : {}
  let output = ''
  for await (const chunk of await client.stream(path, { query })) output += String(chunk)
  return { status: 0, output }
}

/** `a=b` sets, and `a-` removes. */
const pairs = (changes: readonly string[]): Readonly<Record<string, string | null>> =>
  Object.fromEntries(
    changes.map((change) => {
      const at = change.indexOf('=')
      return at < 0 ? [change.replace(/-$/, ''), null] : [change.slice(0, at), change.slice(at + 1)]
    }),
  )
