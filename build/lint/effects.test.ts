import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const repository = join(import.meta.dirname, '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'skyhookd-lint-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Lints a file of that path and content with this project's rules. */
function lint(path: string, text: string): string {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  const { stdout } = spawnSync('oxlint', ['-c', join(repository, '.oxlintrc.json'), file], { encoding: 'utf8' })
  return stdout
}

describe('an effect without a failpoint', () => {
  test.each([
    [
      'an fsync',
      "import { open } from 'node:fs/promises'\nexport const f = async () => await (await open('/x')).sync()\n",
    ],
    ['an imported fsync', "import { fsyncSync } from 'node:fs'\nexport const f = () => fsyncSync(3)\n"],
    [
      'a write that flushes',
      "import { writeFileSync } from 'node:fs'\nexport const f = () => writeFileSync('/x', '', { flush: true })\n",
    ],
    [
      'an API transport of its own',
      "import { createKubeTransport } from '../kube/transport.ts'\nexport const t = createKubeTransport({} as never)\n",
    ],
    [
      'a bus connection of its own',
      "import { connectSystemBus } from '../host/dbus/connection.ts'\nexport const b = connectSystemBus({ socketPath: '' })\n",
    ],
    ['a program', "import { execFile } from 'node:child_process'\nexport const f = () => execFile('/bin/true')\n"],
    [
      'an HTTP request',
      "import { request } from 'node:https'\nexport const f = () => request('https://example.com')\n",
    ],
  ])('is refused: %s', (_, text) => {
    expect(lint('src/daemon/new.ts', text)).toContain('makes an effect without a failpoint')
  })

  test('is allowed in its home, and in tests', () => {
    const fsync = "import { fsyncSync } from 'node:fs'\nexport const f = () => fsyncSync(3)\n"
    expect(lint('src/host/fs/fsync.ts', fsync)).not.toContain('without a failpoint')
    expect(lint('src/host/other.test.ts', fsync)).not.toContain('without a failpoint')
    expect(lint('src/host/other.ts', fsync)).toContain('without a failpoint')
  })
})
