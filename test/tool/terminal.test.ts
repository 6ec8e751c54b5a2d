/** The shipped tool as a person meets it: interrupts, terminals, colors, and the time that a pressed tab takes. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allCommands } from '../../src/cli/commands/all.ts'
import { tuningFile } from '../kit/tool/example-cluster.ts'
import { buildTool, type ToolProgram } from '../kit/tool/tool-program.ts'

let tool: ToolProgram
const folder = mkdtempSync(join(tmpdir(), 'terminal-'))
const environment = (): Record<string, string> => ({
  PATH: [dirname(tool.file), dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
  HOME: folder,
  TERM: 'xterm',
})

beforeAll(async () => {
  writeFileSync(join(folder, 'tuning.yaml'), tuningFile)
  tool = await buildTool()
}, 300_000)
afterAll(async () => {
  await tool.remove()
  rmSync(folder, { recursive: true })
})

/** `answers`: empty lists; else no answer ever comes. */
async function startServer(answers: boolean): Promise<AsyncDisposable & { url: string; asked: Promise<void> }> {
  const asked = Promise.withResolvers<void>()
  const server: Server = createServer((_, response) => {
    asked.resolve()
    if (!answers) return
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ metadata: { resourceVersion: '1', name: 'tuning', uid: 'u' }, items: [] }))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: asked.promise,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}

/** A command in a terminal of its own; `input` is typed when `isReady` says so. `script` is part of every Debian. */
async function inTerminal(
  line: string,
  isReady: (screen: string) => boolean,
  input: string,
  env = {},
): Promise<string> {
  const child = spawn('script', ['-qec', line, '/dev/null'], { env: { ...environment(), ...env } })
  let screen = ''
  let isTyped = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text
    if (isTyped || !isReady(screen)) return
    isTyped = true
    child.stdin.write(input)
  })
  await new Promise((resolve) => void child.on('close', resolve))
  return screen
}

const readable = (screen: string): string => screen.replaceAll('\u001b', 'ESC')

const quoted = (script: string): string => `bash -c '${script.replaceAll("'", `'\\''`)}'`

describe('Ctrl-C', () => {
  const waiting = allCommands.filter(({ isLocal, example }) => isLocal !== true && !example.includes('--client-only'))

  test.concurrent.each(waiting.map(({ name, example }) => [name, example] as const))(
    'ctrl-C ends %s at once with 130 while the API server is silent',
    async (_, example) => {
      await using server = await startServer(false)
      const { url, asked } = server
      const args = [...example.split(' ').slice(2), '--server', url, '-n', 'skyhook']
      const child = spawn(tool.file, args, { env: environment(), cwd: folder })
      let stderr = ''
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
      const ended = new Promise<number | null>((resolve) => void child.on('close', resolve))
      await Promise.race([asked, ended])
      child.kill('SIGINT')
      const code = await ended
      // what was done before is said, and nothing looks like a failure
      expect({ code, stderr: stderr.replace(/^interrupted: 0 of 1 done\n$/, '') }).toEqual({ code: 130, stderr: '' })
    },
  )

  test('ctrl-C at a screen that is watched ends with 130 and leaves the terminal as it was', async () => {
    await using server = await startServer(true)
    const { url } = server
    const call = `kubectl-skyhook status --watch -n skyhook --server ${url}`
    const line = `trap "" INT; cd ${folder}; stty -a >before; ${call}; echo "ended $?"; stty -a >after`
    const screen = await inTerminal(quoted(line), (text) => text.includes('\u001b[H\u001b[J'), '\u0003')
    expect(screen).toContain('ended 130')
    expect(readFileSync(join(folder, 'after'), 'utf8')).toBe(readFileSync(join(folder, 'before'), 'utf8'))
    // the cursor is visible, attributes are those of before, and the screen is not the alternate one
    expect(readable(screen)).not.toMatch(/ESC\[\?(25l|1049h)|ESC\[[1-9][0-9;]*m/)
  })
})

describe('Colors', () => {
  const calls = ['--help', 'status', 'pauze']

  test.each(calls)('%s writes nothing that a file could not take, and neither with NO_COLOR', async (call) => {
    await using server = await startServer(true)
    const { url } = server
    const line = `${call} -n skyhook --server ${url}`
    const { stdout, stderr } = await tool.run(line)
    expect(stdout + stderr).not.toContain('\u001b')
    const screen = await inTerminal(`kubectl-skyhook ${line}`, () => false, '', { NO_COLOR: '1' })
    expect(readable(screen)).not.toMatch(/ESC\[[0-9;]*m/)
    expect(screen.length).toBeGreaterThan(10)
  })
})

/** User and system time of the best of some runs, in ms: other work on the machine only adds. */
async function leastProcessorMs(command: string): Promise<number> {
  const times: number[] = []
  for (let run = 0; run < 7; run++) {
    const child = spawn('bash', ['-c', `TIMEFORMAT="%U %S"; time ${command} >/dev/null`], { env: environment() })
    let text = ''
    child.stderr.setEncoding('utf8').on('data', (data: string) => (text += data))
    await new Promise((resolve) => void child.on('close', resolve))
    const [user = NaN, system = NaN] = text.trim().split(' ').map(Number)
    times.push(1000 * (user + system))
  }
  return Math.min(...times)
}

test('a pressed tab takes at most 150 ms without the API, where Node alone takes 25', async () => {
  const nodeMs = await leastProcessorMs(`${process.execPath} -e 0`)
  const tabMs = await leastProcessorMs(`${join(dirname(tool.file), 'kubectl_complete-skyhook')} node ho`)
  expect(tabMs / nodeMs).toBeLessThanOrEqual(6)
}, 60_000)
