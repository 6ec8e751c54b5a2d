import { open } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { withFile } from './errors.ts'

test('an error of a full disk names the file once, which node:fs leaves out', async () => {
  const file = await open('/dev/full', 'w')
  const error = (await file.write('x').catch((failure: unknown) => failure)) as Error
  await file.close()
  expect(error.message).toBe('ENOSPC: no space left on device, write')
  const named = withFile(withFile(error, '/var/lib/skyhook/x'), '/var/lib')
  expect(named).toMatchObject({ message: "ENOSPC: no space left on device, write '/var/lib/skyhook/x'" })
})
