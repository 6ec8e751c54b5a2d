import { appendFile, chmod, mkdir, readdir, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryHost, writeBelow } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { createMask } from './mask.ts'
import { claimLogFiles, packageLogDir, pruneLogs } from './log-files.ts'
import { failureTail, tailOf } from './output-reader.ts'

const config = { packageName: 'shellscript', packageVersion: '1.1.1', expectedConfigFiles: [], modes: {} }
const dir = packageLogDir({ copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }, 'demo', config)
const at = Date.UTC(2026, 10, 20, 10, 32, 9, 999)

let folder: string
let host: HostRoot

beforeEach(() => ({ folder, host } = temporaryHost()))

const put = (path: string, text = ''): void => writeBelow(folder, path, text)
const list = async (path: string): Promise<string[]> => (await readdir(join(folder, path))).sort()

describe('the files of an attempt', () => {
  test('log files are named after step and second', async () => {
    expect(await claimLogFiles(host, dir, 'sub/b.sh', at)).toEqual({
      stdout: '/var/log/skyhook/demo/shellscript/1.1.1/sub/b.sh-2026-11-20-103209.log',
      stderr: '/var/log/skyhook/demo/shellscript/1.1.1/sub/b.sh-2026-11-20-103209.log.err',
    })
    expect(await list(`${dir}/sub`)).toEqual(['b.sh-2026-11-20-103209.log', 'b.sh-2026-11-20-103209.log.err'])
    expect((await stat(join(folder, dir, 'sub/b.sh-2026-11-20-103209.log'))).mode & 0o777).toBe(0o644)
  })

  test('attempts in the same second get different log files', async () => {
    const claims = await Promise.all(Array.from({ length: 12 }, () => claimLogFiles(host, dir, 'a.sh', at)))
    expect(new Set(claims.map(({ stdout }) => stdout)).size).toBe(12)
    expect(await list(dir)).toContain('a.sh-2026-11-20-103209-11.log')
  })

  test('log files follow links of the host inside the host', async () => {
    await mkdir(join(folder, 'data/log'), { recursive: true })
    await mkdir(join(folder, 'var'))
    await symlink('/data/log', join(folder, 'var/log'))
    await claimLogFiles(host, dir, 'a.sh', at)
    expect(await list('data/log/skyhook/demo/shellscript/1.1.1')).toHaveLength(2)
  })
})

test('logs are not written where other users can lead systemd elsewhere', async () => {
  await mkdir(join(folder, dir), { recursive: true })
  await chmod(join(folder, '/var/log/skyhook/demo'), 0o777)
  await expect(claimLogFiles(host, dir, 'a.sh', at)).rejects.toThrow(
    /^other users of the host can change \/var\/log\/skyhook\/demo \(uid \d+, mode 0777\)/,
  )
})

describe('old logs', () => {
  const stamp = (second: number): string => `2026-11-20-1032${String(second).padStart(2, '0')}`

  test('pruning keeps the newest five logs of a step path, each with its error log', async () => {
    for (let second = 0; second < 8; second++) {
      put(`${dir}/a.sh-${stamp(second)}.log`)
      put(`${dir}/a.sh-${stamp(second)}.log.err`)
    }
    put(`${dir}/a.sh-${stamp(7)}-1.log`)
    put(`${dir}/a.sh-${stamp(7)}-10.log`)
    put(`${dir}/a.sh-${stamp(7)}-2.log`)
    await pruneLogs(host, dir, 'a.sh')
    expect(await list(dir)).toEqual(
      [
        `${stamp(6)}.log`,
        `${stamp(6)}.log.err`,
        `${stamp(7)}-1.log`,
        `${stamp(7)}-10.log`,
        `${stamp(7)}-2.log`,
        `${stamp(7)}.log`,
        `${stamp(7)}.log.err`,
      ]
        .map((name) => `a.sh-${name}`)
        .sort(),
    )
  })

  test('pruning removes error logs without a log and keeps files of other steps', async () => {
    const others = [
      'b.sh-2026-11-20-103200.log',
      'a.sh-notes.log',
      'a.sh',
      'a.sh-x-2026-11-20-103200.log.err',
      'a.sh-x-2026-11-20-103200.log',
    ]
    for (const name of [...others, `a.sh-${stamp(1)}.log.err`]) put(`${dir}/${name}`)
    await pruneLogs(host, dir, 'a.sh')
    expect(await list(dir)).toEqual(others.toSorted())
  })

  test('each package has five of its own, and those of nobody make way for them', async () => {
    await mkdir(join(folder, '/var/lib/skyhook/.agent'), { recursive: true })
    const claim = async (name: string, second: number) =>
      await claimLogFiles(host, dir, 'a.sh', at + second * 1000, { skyhook: 'demo', package: name })
    const first = await Promise.all([1, 2].map(async (second) => await claim('quiet', second)))
    for (let second = 10; second < 17; second++) put(`${dir}/a.sh-${stamp(second)}.log`)
    for (let second = 20; second < 28; second++) {
      await claim('noisy', second)
      await pruneLogs(host, dir, 'a.sh')
    }
    const logs = (await list(dir)).filter((name) => name.endsWith('.log'))
    expect(logs).toHaveLength(7)
    expect(first.every(({ stdout }) => logs.includes(stdout.slice(dir.length + 1)))).toBe(true)
  })

  test('pruning works in the folder of a nested step and where there are no logs', async () => {
    for (let second = 0; second < 7; second++) put(`${dir}/sub/*.sh-${stamp(second)}.log`)
    await pruneLogs(host, dir, 'sub/*.sh')
    expect(await list(`${dir}/sub`)).toHaveLength(5)
    await pruneLogs(host, '/var/log/none', 'a.sh')
  })
})

describe('the end of a log', () => {
  const path = '/log'
  test.each<[string, string, string]>([
    ['nothing', '', ''],
    ['fewer lines than asked', 'a\nb\n', 'a\nb'],
    ['the last lines, blank ones left out', '1\n2\n3\n\n4\n5\n6  \n\n', '2\n3\n4\n5\n6'],
    ['no newline at the end', 'a\nb', 'a\nb'],
    ['colours and bells', '\u001b[31mred\u001b[0m\u0007\r\n', 'red'],
  ])('the tail of a log has the last lines without control characters: %s', async (_, content, expected) => {
    put(path, content)
    expect(await tailOf(host, path, [])).toBe(expected)
  })

  test('the tail of binary output is text', async () => {
    await writeFile(join(folder, path), Buffer.from([0x61, 0xff, 0x62]))
    expect(await tailOf(host, path, [])).toBe('a\ufffdb')
  })

  test('a missing log has an empty tail', async () => {
    expect(await tailOf(host, '/none', [])).toBe('')
  })

  test('an endless line is cut at a character', async () => {
    put(path, `${'é'.repeat(50_000)}€`)
    const tail = await tailOf(host, path, [], { lines: 5, characters: 100 })
    expect(tail).toBe(`…${'é'.repeat(98)}€`)
    put(path, '\u{1F600}'.repeat(500))
    const halved = await tailOf(host, path, [], { lines: 5, characters: 100 })
    expect(halved).toBe(`…\uFFFD${'\u{1F600}'.repeat(49)}`)
  })

  test('only the end of a large log is read', async () => {
    put(path)
    await truncate(join(folder, path), 2 ** 40) // a sparse file, larger than the memory of any process
    await appendFile(join(folder, path), `\n${'x'.repeat(1023)}\n`)
    expect((await tailOf(host, path, [])).length).toBe(600)
  })

  test('a failure is quoted from standard error, or from standard output when that is empty', async () => {
    const logs = { stdout: '/o', stderr: '/e' }
    put('/o', 'out\n')
    put('/e', '\n')
    expect(await failureTail(host, logs, [])).toBe('out')
    put('/e', 'err\n')
    expect(await failureTail(host, logs, [])).toBe('err')
  })

  test('a secret is masked even where the cut goes through it', async () => {
    const secret = 'correct-horse-battery-staple'
    put(path, `${'x'.repeat(300)}${secret}${'y'.repeat(80)}`)
    for (let characters = 60; characters < 140; characters++) {
      const tail = await tailOf(host, path, [secret], { lines: 1, characters })
      expect(tail).not.toMatch(/stapl|horse|correct|batt/)
    }
  })
})

describe('masking', () => {
  test.each([
    ['token s3cret, s3cret!', ['s3cret'], 'token ***, ***!'],
    ['abcdef abcd', ['abcd', 'abcdef'], '*** ***'],
    ['line-one\nline-two', ['line-one\nline-two\n'], '***'],
    ['only line-two is here', ['line-one\r\nline-two\r\n'], 'only *** is here'],
    ['$& (a.c+) [x]', ['(a.c+)'], '$& *** [x]'],
    ['1 on true', ['1', 'on', ''], '1 on true'],
    ['nothing', [], 'nothing'],
  ])('masking turns %j with the secrets %j into %j', (text, secrets, masked) => {
    expect(createMask(secrets).mask(text)).toBe(masked)
  })
})
