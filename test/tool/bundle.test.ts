import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { bundleCli, readVersion } from '../../build/bundle.ts'

// Outside of the repository: nothing of node_modules can be found from there.
const folder = mkdtempSync(join(tmpdir(), 'cli-'))
const program = join(folder, 'kubectl-skyhook')
const environment = { PATH: [folder, dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter), HOME: folder }

beforeAll(async () => {
  await bundleCli(folder)
}, 300_000)

const run = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
  spawnSync(program, args, { encoding: 'utf8', env: { ...environment, ...more } })

/** Answers every GET with an empty list, and notes what came. */
async function startServer(): Promise<{ readonly url: string; readonly requests: string[] }> {
  const requests: string[] = []
  const server = createServer(({ method, url }, response) => {
    requests.push(`${method} ${url}`)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ metadata: { resourceVersion: '1', name: 'tuning', uid: 'u' }, items: [] }))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

/** Runs the program beside this process, which serves it. */
async function runBeside(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
) {
  const child = spawn(command, args, { env: { ...environment, ...env } })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (data: Buffer) => {
    const wasAsked = stdout.includes('[y/N]')
    stdout += data.toString()
    // a person answers when the question is there
    if (!wasAsked && stdout.includes('[y/N]')) child.stdin.write(input)
  })
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()))
  const code = await new Promise<number | null>((resolve) => void child.on('close', resolve))
  return { code, stdout, stderr }
}

test('the bundle runs alone and knows its version', () => {
  const { status, stdout } = run(['version', '--client-only', '-o', 'json'])
  expect(status).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ items: [{ version: readVersion() }] })
  expect(existsSync(join(folder, 'THIRD-PARTY-LICENSES'))).toBe(true)
})

test('the text of its license goes with every bundled package', () => {
  const notices = readFileSync(join(folder, 'THIRD-PARTY-LICENSES'), 'utf8')
  const texts = new Map(
    notices.split(/^(?=\S+ \d\S*\n-{72}\n)/m).map((notice) => {
      const [title = '', , ...lines] = notice.split('\n')
      return [title.split(' ')[0], lines.join('\n')] as const
    }),
  )
  expect(texts.size).toBeGreaterThan(30)
  expect([...texts].filter(([, text]) => text.length < 600 || /^License: /m.test(text)).map(([name]) => name)).toEqual(
    [],
  )
  expect(texts.get('@bomb.sh/tab')).toMatch(/Copyright \(c\) Bombshell Authors[^]*Permission is hereby granted/)
  expect(texts.get('preact')).toMatch(/Copyright \(c\) [^]*Permission is hereby granted/) // of the dashboard's page
  expect(texts.get('@bufbuild/protobuf')).toMatch(
    /Apache License[^]*Copyright 2008 Google Inc[^]*Redistributions in binary/,
  )
})

describe('compiled code', () => {
  const filesIn = (cache: string): readonly string[] =>
    existsSync(cache) ? readdirSync(cache, { recursive: true }).map(String) : []
  const newFolder = (): string => mkdtempSync(join(tmpdir(), 'cli-home-'))
  const versionWith = (env: Readonly<Record<string, string>>) => {
    const { status, stderr } = run(['version', '--client-only'], env)
    return { status, stderr }
  }
  const success = { status: 0, stderr: '' }

  test('what Node compiles is kept in the cache folder of whoever runs the tool', () => {
    const [home, cache] = [newFolder(), newFolder()]
    expect(versionWith({ HOME: home })).toEqual(success)
    expect(filesIn(join(home, '.cache/kubectl-skyhook')).length).toBeGreaterThan(1)
    expect(versionWith({ HOME: home, XDG_CACHE_HOME: cache })).toEqual(success)
    expect(filesIn(join(cache, 'kubectl-skyhook')).length).toBeGreaterThan(1)
  })

  test.skipIf(process.getuid?.() !== 0)('compiled code is not looked for where another user could write it', () => {
    const home = newFolder()
    chownSync(home, 65_534, 65_534)
    expect(versionWith({ HOME: home })).toEqual(success)
    expect(versionWith({ HOME: newFolder(), XDG_CACHE_HOME: home })).toEqual(success)
    expect(filesIn(home)).toEqual([])
  })

  test('the tool runs as ever without a home, or with a file in its place', () => {
    expect(versionWith({ HOME: '/nonexistent' })).toEqual(success)
    expect(versionWith({ HOME: '' })).toEqual(success)
    expect(versionWith({ HOME: newFolder(), XDG_CACHE_HOME: 'relative' })).toEqual(success)
    const home = newFolder()
    writeFileSync(join(home, '.cache'), 'not a folder')
    expect(versionWith({ HOME: home })).toEqual(success)
  })
})

test('the package has the schemas of what commands write, and everything that it states', () => {
  const { files } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { files: string[] }
  expect(files.filter((file) => !existsSync(join(folder, file)))).toEqual([])
  const schema = JSON.parse(readFileSync(join(folder, 'schemas', 'node-list.json'), 'utf8')) as object
  expect(schema).toMatchObject({ title: 'kubectl skyhook node list' })
})

test('the bundle has the page of the dashboard in it, and ctrl-C ends that', async () => {
  const { url } = await startServer()
  const child = spawn(program, ['dashboard', '-n', 'skyhook', '--server', url], { env: environment })
  const ended = new Promise<number | null>((resolve) => void child.on('close', resolve))
  const link = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (data: Buffer) => resolve(data.toString().trim()))
    child.once('close', () => reject(new Error('it ended early')))
  })
  const page = await (await fetch(link)).text()
  expect(page).toContain('<title>Skyhook dashboard</title>')
  child.kill('SIGINT')
  expect(await ended).toBe(0)
})

test('the bundle connects by a kubeconfig with a plugin, without the parts of the library that are left out', async () => {
  const { url, requests } = await startServer()
  const login = join(folder, 'login')
  writeFileSync(login, '#!/bin/sh\necho \'{"kind":"ExecCredential","status":{"token":"x"}}\'\n')
  chmodSync(login, 0o755)
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(
    kubeconfig,
    `current-context: a
clusters: [{name: a, cluster: {server: '${url}'}}]
users: [{name: a, user: {exec: {command: ./login, interactiveMode: Never}}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
`,
  )
  const { code, stdout, stderr } = await runBeside(program, ['node', 'status', '-o', 'json'], {
    KUBECONFIG: kubeconfig,
  })
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '[]\n', stderr: '' })
  expect(requests).toEqual(['GET /api/v1/nodes?limit=50'])
})

test('a wrong call ends with 2 and no cluster with 2, each with what to do', () => {
  expect(run(['pauze'])).toMatchObject({ status: 2, stderr: expect.stringContaining('Did you mean pause?') })
  expect(run(['node', 'status'])).toMatchObject({ status: 2, stderr: expect.stringContaining('--kubeconfig') })
})

test('a server that is not there ends with 1 and names the address', () => {
  const { status, stderr } = run(['node', 'status', '--server', 'http://127.0.0.1:9'])
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('127.0.0.1:9') })
})

test('kubectl completes by the program beside it', () => {
  const { stdout, status } = spawnSync(join(folder, 'kubectl_complete-skyhook'), ['node', 'ho'], {
    encoding: 'utf8',
    env: environment,
  })
  expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/^hold\t.*\n:4\n$/) })
})

describe('Completion', () => {
  // What the package bash-completion has, as far as the script asks for it.
  const helper = `_get_comp_words_by_ref() {
  cur="\${COMP_WORDS[COMP_CWORD]}" words=("\${COMP_WORDS[@]}") cword=$COMP_CWORD
}`

  test('the completion of bash can be sourced twice and suggests commands', () => {
    const script = `set -e; ${helper}
source <(kubectl-skyhook completion bash); source <(kubectl-skyhook completion bash)
COMP_WORDS=(kubectl-skyhook node un) COMP_CWORD=2
complete -p kubectl-skyhook >/dev/null
__kubectl_skyhook_complete 2>/dev/null || true
printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr, status } = spawnSync('bash', ['-c', script], { encoding: 'utf8', env: environment })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'unignore\n', stderr: '' })
  })

  test.each(['zsh', 'fish'])('the completion of %s asks this program', (shell) => {
    const { stdout, status } = run(['completion', shell])
    expect(status).toBe(0)
    expect(stdout).toContain('kubectl-skyhook complete -- ')
  })
})

/** In a terminal of its own, as a person would: `script` is part of every Debian. */
const inTerminal = async (line: string, input: string) =>
  await runBeside('script', ['-qec', line, '/dev/null'], { TERM: 'xterm' }, input)

test('a person is asked in a terminal, and the answer decides', async () => {
  const { url, requests } = await startServer()
  const line = `kubectl-skyhook pause tuning --server ${url}`
  expect(await inTerminal(line, 'n\n')).toMatchObject({ code: 4, stdout: expect.stringContaining('[y/N]') })
  expect(requests).toEqual([])
  expect(await inTerminal(line, 'y\n')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('skyhook/tuning paused'),
  })
  expect(requests.map((request) => request.split(' ')[0])).toEqual(['GET', 'PATCH'])
})

test('ctrl-C at a question changes nothing, ends with 130 and leaves the terminal as it was', async () => {
  const { url, requests } = await startServer()
  const call = `kubectl-skyhook pause tuning --server ${url}`
  const line = `stty -a >before; ${call}; echo "ended $?"; stty -a >after`
  const script = `trap '' INT; cd ${folder}; ${line}`
  const { stdout } = await inTerminal(`bash -c '${script.replaceAll("'", `'\\''`)}'`, '\u0003')
  expect(stdout).toContain('ended 130')
  expect(requests).toEqual([])
  expect(readFileSync(join(folder, 'after'), 'utf8')).toBe(readFileSync(join(folder, 'before'), 'utf8'))
})
