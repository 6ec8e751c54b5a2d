import { expect, test } from 'vitest'
import { createOwnWrites } from './own-writes.ts'

const version = (resourceVersion: string) => ({ metadata: { resourceVersion } })

test('the own copy holds until the watch shows the last write, or anything after it', () => {
  const own = createOwnWrites<ReturnType<typeof version>>()
  expect(own.latest()).toBeUndefined()
  own.wrote(version('11'))
  own.wrote(version('12'))
  own.seen('11')
  expect(own.latest()).toEqual(version('12'))
  own.seen('12')
  expect(own.latest()).toBeUndefined()
  own.wrote(version('20'))
  own.seen('21') // somebody else wrote over it
  expect(own.latest()).toBeUndefined()
})
