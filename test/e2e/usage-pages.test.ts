/**
 * Every command of getting-started.md, operations.md and security.md, as it is printed, on real nodes and their hosts.
 * `replacements` has the exceptions.
 */
import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Block, blocksOf, replaced } from '../kit/pages/page-commands.ts'
import { buildTool, type ToolProgram } from '../kit/tool/tool-program.ts'
import { nodeNames, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { isCompleteOn, isCordoned } from '../kit/cluster/node-availability.ts'
import { manifest, publishedState, shellscript } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const root = join(import.meta.dirname, '..', '..')
const name = uniqueName('runbook')
let folder: string
let program: ToolProgram

/** What is not run as it is printed, by page: the text, and what is run instead. */
const replacements: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  'getting-started.md': [
    ['make cli\n', ''], // test/tool builds and starts it
    ['. .sandbox/env\n', ''], // of another sandbox, whose variables are set
    ['bin/sandbox down\n', 'true\n'], // at the end of all files
    ['make release VERSION=0.1.0 PUSH=registry.example.com/infra\n', 'true\n'], // test/release
    ['helm install skyhookd skyhookd-0.1.0.tgz -n skyhook --create-namespace\n', ''], // test/cluster
  ],
  'operations.md': [
    ['SKYHOOK=tuning NODE=worker-1 PACKAGE=sysctl ', `SKYHOOK=${name} NODE=node-1 PACKAGE=work `],
    ['kubectl delete node "$NODE"', 'kubectl delete node "$NODE" --dry-run=server'], // it would not come back by itself
  ],
  'security.md': [['NODE=worker-1 ', 'NODE=node-1 ']],
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'usage-pages-'))
  program = await buildTool()
  // the folder of a release, as far as these pages use it
  await cp(join(root, 'samples'), join(folder, 'samples'), { recursive: true })
  const variable = join(folder, 'samples', 'registry.yaml')
  await writeFile(variable, replaced(await readFile(variable, 'utf8'), 'registry.example.com', cluster.registry))
  // and of a checkout
  for (const entry of ['bin', 'packages', 'node_modules']) await symlink(join(root, entry), join(folder, entry))
})
afterAll(async () => {
  await program.remove()
  await rm(folder, { recursive: true })
})

type Ended = { readonly code: number | null; readonly output: string }

/** In a shell that ends with the first failure. Commands of a host run there. */
async function run({ place }: Pick<Block, 'place'>, script: string): Promise<Ended> {
  const shell = ['bash', '-euo', 'pipefail', '-c', script] as const
  const [command, ...argv] =
    place === 'host' ? ([join(root, 'bin/sandbox'), 'exec', 'node-1', '--', ...shell] as const) : shell
  const { PATH: kubernetes = '', ...environment } = cluster.sandbox.env()
  const path = [dirname(program.file), dirname(process.execPath), kubernetes].join(':')
  const env = { ...process.env, ...environment, PATH: path, SANDBOX: cluster.sandbox.name }
  return await new Promise((resolve, reject) => {
    const child = spawn(command, argv, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

/** The blocks of a page with its replacements made, each with its title. */
function casesOf(page: string, ofSections: (section: string) => boolean = () => true): (readonly [string, Block])[] {
  const pairs = replacements[page] ?? []
  const scripts = blocksOf(page)
  for (const [text] of pairs)
    if (!scripts.some(({ script }) => script.includes(text))) throw new Error(`${page} no longer says: ${text}`)
  return scripts
    .filter(({ section }) => ofSections(section))
    .map((block) => {
      const script = pairs.reduce((rest, [text, by]) => rest.replace(text, by), block.script)
      return [`${block.section} (line ${block.line}, ${block.place})`, { ...block, script }] as const
    })
}

describe('getting-started.md', () => {
  const cases = casesOf('getting-started.md')

  test.each(cases)('the commands end well: %s', async (_, block) => {
    const { code, output } = await run(block, block.script)
    expect(code, output).toBe(0)
  })

  test('the sample has left nothing on the nodes', async () => {
    await cluster.history.never('two nodes at once', (view) => slotsOf(view, 'demo').length > 1 && 'two slots')
    // a Skyhook is gone before its last agent has cleaned the Node
    await cluster.history.eventually('no node shows the sample', ({ nodes }) =>
      nodeNames.every((node) => publishedState(nodes.get(node), 'demo').status === undefined),
    )
  })
})

describe('operations.md', () => {
  const [[, names] = [], ...cases] = casesOf('operations.md')
  if (names === undefined) throw new Error('operations.md sets no names')
  /** On the host, names that come from the cluster are not needed. */
  const prelude = ({ place }: Block): string => (place === 'host' ? (names.script.split('\n')[0] ?? '') : names.script)

  beforeAll(async () => {
    const work = shellscript(cluster.registry, { apply: 'echo broken; exit 3' })
    await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages: { work } }), 'node-1')
    await cluster.history.eventually(
      'the step fails',
      ({ nodes }) => publishedState(nodes.get('node-1'), name).reason?.reason === 'StepFailed',
    )
  })

  test.each(cases)('the commands end well beside a failing node: %s', async (_, block) => {
    const { code, output } = await run(block, `${prelude(block)}\n${block.script}`)
    expect(code, output).toBe(0)
  })

  test('the node completes once its package is corrected, whatever the commands have done', async () => {
    await cluster.edit(name, { packages: { work: { configMap: { 'apply.sh': 'true' } } } })
    await cluster.history.eventually(
      'it is complete, in service and without a slot',
      (view) =>
        isCompleteOn(view, name, ['node-1']) &&
        slotsOf(view, name).length === 0 &&
        !isCordoned(view.nodes.get('node-1')),
      60_000,
    )
  })
})

describe('security.md', () => {
  test.each(casesOf('security.md').filter(([, { place }]) => place === 'cluster'))(
    'the commands end well: %s',
    async (_, block) => {
      const { code, output } = await run(block, block.script)
      expect(code, output).toBe(0)
    },
  )
})
