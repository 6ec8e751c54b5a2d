import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemRandom } from '../../daemon/platform/system-clock.ts'
import { createHostRoot, type HostRoot } from '../../host/fs/host-root.ts'
import { executableKind, missingInterpreter } from './interpreter.ts'

describe('what the kernel would do with a file', () => {
  test.each<[string, string, object]>([
    ['a shell script', '#!/bin/bash\necho', { kind: 'script', interpreter: '/bin/bash', argument: '' }],
    ['blanks and an argument', '#! /bin/sh  -e x \n', { kind: 'script', interpreter: '/bin/sh', argument: '-e x' }],
    ['a first line without end', '#!/bin/sh', { kind: 'script', interpreter: '/bin/sh', argument: '' }],
    ['an ELF file', '\u007fELF\u0002', { kind: 'elf' }],
  ])('the first bytes decide how the kernel executes a file: %s', (_, content, kind) => {
    expect(executableKind(Buffer.from(content, 'latin1'))).toEqual(kind)
  })

  test.each<[string, string, string]>([
    ['no shebang', 'echo hello', 'starts with neither #! nor an ELF header'],
    ['an empty file', '', 'is empty'],
    ['a byte order mark', '\u00ef\u00bb\u00bf#!/bin/sh\n', 'after a byte order mark'],
    ['Windows line ends', '#!/bin/bash\r\necho', 'Windows line endings'],
    ['a relative interpreter', '#!bash\n', 'interpreter "bash", which is not an absolute path'],
    ['no interpreter', '#!\n', 'interpreter ""'],
    ['an endless first line', `#!/${'x'.repeat(300)}`, 'longer than 256 bytes'],
  ])('the kernel cannot execute a file with these first bytes: %s', (_, content, why) => {
    const kind = executableKind(Buffer.from(content, 'latin1').subarray(0, 256))
    expect(kind.kind === 'not-executable' && kind.why).toContain(why)
  })
})

describe('whether the host has the interpreter', () => {
  let folder: string
  let host: HostRoot
  const put = async (path: string, mode: number): Promise<void> => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), '')
    await chmod(join(folder, path), mode)
  }
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'interpreter-'))
    host = createHostRoot(folder, systemRandom)
    await put('usr/bin/bash', 0o755)
    await put('usr/bin/env', 0o755)
    await put('usr/bin/notes', 0o644)
    await put('opt/bin/python3', 0o755)
    await mkdir(join(folder, 'usr/bin/folder'))
    await symlink('/usr/bin', join(folder, 'bin'))
  })
  afterAll(async () => {
    await rm(folder, { recursive: true })
  })

  test.each<[string, string | undefined]>([
    ['#!/bin/bash', undefined], // through the host's link, inside the host
    ['#!/bin/zsh', 'has the interpreter /bin/zsh, which is not on this host'],
    ['#!/usr/bin/notes', 'has the interpreter /usr/bin/notes, which is not on this host'],
    ['#!/usr/bin/folder', 'has the interpreter /usr/bin/folder'],
    ['#!/usr/bin/bash/x', 'has the interpreter /usr/bin/bash/x'],
    ['#!/usr/bin/env bash', undefined],
    ['#!/usr/bin/env python3', undefined],
    ['#!/usr/bin/env ruby', 'asks env for ruby, which is not on this host (PATH /usr/bin:/opt/bin)'],
    ['#!/usr/bin/env /opt/bin/python3', undefined],
    ['#!/usr/bin/env /opt/bin/python2', 'asks env for /opt/bin/python2, which is not on this host'],
    ['#!/usr/bin/env bash -e', 'asks env for a program called "bash -e"; several words need env -S'],
    ['#!/usr/bin/env -S bash -e', undefined],
    ['#!/usr/bin/env -S A=b ruby -w', 'asks env for ruby'],
    ['#!/usr/bin/env --split-string=ruby -w', 'asks env for ruby'],
    ['#!/usr/bin/env -i', undefined], // options that are not parsed
    ['#!/usr/bin/env -S -i bash', undefined],
    ['\u007fELF', undefined],
  ])('the interpreter is looked for on the host: %s', async (head, why) => {
    const missing = await missingInterpreter(host, executableKind(Buffer.from(head, 'latin1')), '/usr/bin:/opt/bin')
    if (why === undefined) expect(missing).toBeUndefined()
    else expect(missing).toContain(why)
  })
})
