import { expect, test } from 'vitest'
import { lintFiles } from '../../test/kit/pages/lint-files.ts'

const samples: Readonly<Record<string, string>> = {
  'an fsync': "import { open } from 'node:fs/promises'\nexport const f = async () => await (await open('/x')).sync()\n",
  'an imported fsync': "import { fsyncSync } from 'node:fs'\nexport const f = () => fsyncSync(3)\n",
  'a write that flushes':
    "import { writeFileSync } from 'node:fs'\nexport const f = () => writeFileSync('/x', '', { flush: true })\n",
  'an API transport of its own':
    "import { createKubeTransport } from '../kube/transport.ts'\nexport const t = createKubeTransport({} as never)\n",
  'a bus connection of its own':
    "import { connectSystemBus } from '../host/dbus/connection.ts'\nexport const b = connectSystemBus({} as never)\n",
  'a program': "import { execFile } from 'node:child_process'\nexport const f = () => execFile('/bin/true')\n",
  'an HTTP request': "import { request } from 'node:https'\nexport const f = () => request('https://example.com')\n",
}

const effects = (found: readonly string[] | undefined): number =>
  (found ?? []).filter((one) => one.includes('makes an effect without a failpoint')).length

test('each effect without a failpoint is refused', () => {
  const found = lintFiles(
    Object.fromEntries(Object.values(samples).map((text, index) => [`src/daemon/new${index}.ts`, text])),
  )
  for (const [index, what] of Object.keys(samples).entries())
    expect(effects(found[`src/daemon/new${index}.ts`]), what).toBeGreaterThan(0)
})

test('an effect is allowed in its home and in tests', () => {
  const fsync = "import { fsyncSync } from 'node:fs'\nexport const f = () => fsyncSync(3)\n"
  const files = ['src/host/fs/fsync.ts', 'src/host/other.test.ts', 'src/host/other.ts']
  const found = lintFiles(Object.fromEntries(files.map((file) => [file, fsync])))
  expect(files.map((file) => effects(found[file]))).toEqual([0, 0, 1])
})
