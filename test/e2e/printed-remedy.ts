/** Carries out what `kubectl skyhook explain` prints, as a person at a shell does. */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import type { Cause } from '../../src/cli/reason/explain/finding.ts'
import type { Cluster, NodeName } from '../kit/cluster/cluster.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import { buildTool, type ToolProgram } from '../kit/tool/tool-program.ts'
import { type Finished, finished } from '../sandbox/sandbox.ts'
import { explainedWithinMs, type ExplainScene } from './explain-scene.ts'

export type Remedy = {
  /** Words of what is printed that name the deed. Absent: the command is the deed. */
  readonly says?: string
  /** The deed, where the command is `kubectl edit`: a script of sed. */
  readonly edit?: string
  /** The deed, where the command only looks. */
  readonly deed?: () => Promise<unknown>
  /** Of the command: those that look at what is broken may say so. */
  readonly status?: number
  /** What the command has to show. */
  readonly shows?: RegExp
}

type Printed = {
  /** Runs a command as it is printed, and gives what it asks for. Throws unless it ends as expected. */
  readonly run: (node: NodeName, command: string, remedy?: Omit<Remedy, 'says' | 'deed'>) => Promise<string>
  /** Runs the command that explain prints of this cause, does what its words say, awaits the node's completion. */
  readonly mend: (scene: ExplainScene, cause: Cause, remedy: Remedy) => Promise<void>
}

/** A shell with the cluster's kubectl, the tool as its plugin, and the login of the registry. For the whole file. */
export function usePrintedRemedies(cluster: Cluster): Printed {
  let program: ToolProgram | undefined
  const folder = (): string => dirname(program?.file ?? '')
  beforeAll(async () => {
    program = await buildTool()
    const { REGISTRY = '', REGISTRY_USER = '', REGISTRY_PASSWORD = '' } = cluster.sandbox.env()
    const auth = Buffer.from(`${REGISTRY_USER}:${REGISTRY_PASSWORD}`).toString('base64')
    await writeFile(join(folder(), 'config.json'), JSON.stringify({ auths: { [REGISTRY]: { auth } } }))
  })
  afterAll(async () => await program?.remove())

  const run: Printed['run'] = async (node, line, { edit, status = 0, shows = /^/ } = {}) => {
    const [, onHost] = /^(.*) # on the host$/.exec(line) ?? []
    const { PATH = '', ...env } = cluster.sandbox.env()
    const ofPerson = { ...env, PATH: `${folder()}:${PATH}`, DOCKER_CONFIG: folder() }
    const inShell = edit === undefined ? ofPerson : { ...ofPerson, KUBE_EDITOR: `sed -i '${edit}'` }
    const shell = async (text: string): Promise<Finished> =>
      onHost === undefined
        ? await finished('sh', ['-c', text], { env: inShell })
        : await cluster.sandbox.run(['exec', node, '--', 'sh', '-c', onHost])
    const asked = await shell(line)
    const [, answer] = answers.find(([words]) => `${asked.stdout}${asked.stderr}`.includes(words)) ?? []
    const ended = answer === undefined ? asked : await shell(`${line} ${answer}`)
    expect({ line, ...ended }).toMatchObject({ line, status })
    expect(ended.stdout).toMatch(shows)
    return ended.stdout
  }

  return {
    run,
    async mend({ name, node, explained }, cause, { says = '', deed, ...remedy }) {
      const command = await vi.waitFor(async () => {
        const { verdict } = await explained()
        expect(verdict?.cause).toBe(cause)
        expect(`${verdict?.message}. ${verdict?.unblock}`).toContain(says)
        return verdict?.command ?? ''
      }, explainedWithinMs)
      await run(node, command, remedy)
      await deed?.()
      await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), mendedWithinMs)
    },
  }
}

/** What the tool says in place of doing it, and what a person then adds. */
const answers = [
  ['add --yes', '--yes'],
  ['with --ca', '--ca "$REGISTRY_CA"'],
] as const

/** A reboot, and the longest pause between two attempts of a test. */
const mendedWithinMs = 90_000

/** What is undone as a remedy, or else at the end of the test. */
export function once(undo: () => Promise<unknown>): () => Promise<void> {
  let undone: Promise<unknown> | undefined
  return async () => void (await (undone ??= undo()))
}
