import { rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import { onFailpoint } from '../../../test/kit/on-failpoint.ts'
import { failpoint } from './failpoint.ts'

test('each fsync passes a failpoint named by what became durable', async () => {
  const { folder, host: root } = temporaryHost()
  await root.mkdirp('/var/lib/skyhook/.agent')
  await root.mkdirp('/var/lib/skyhook/s/flags')
  const names: string[] = []
  const stopListening = onFailpoint((name) => void names.push(name))
  await root.writeFileDurable('/var/lib/skyhook/.agent/journal.json', '{}', 0o600)
  await root.writeFileDurable('/var/lib/skyhook/s/flags/START', '', 0o644)
  await root.writeFile('/var/lib/skyhook/s/flags/START', '', 0o644) // not durable, so no failpoint
  stopListening()
  failpoint('nobody hears this')
  rmSync(folder, { recursive: true })
  expect(names).toEqual(['fsync:journal', 'fsync:agent/', 'fsync:flags', 'fsync:flags/'])
})
