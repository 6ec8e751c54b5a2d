import { beforeEach, expect, test } from 'vitest'
import { createOwnWrites, type OwnWrites } from './own-writes.ts'

type Versioned = { metadata: { resourceVersion: string } }
const version = (resourceVersion: string): Versioned => ({ metadata: { resourceVersion } })
let own: OwnWrites<Versioned>
beforeEach(() => {
  own = createOwnWrites()
})

test('the own copy holds until the watch shows the last write', () => {
  expect(own.latest()).toBeUndefined()
  own.begin()(version('11'))
  own.begin()(version('12'))
  own.observed('11')
  expect(own.latest()).toEqual(version('12'))
  own.observed('12')
  expect(own.latest()).toBeUndefined()
})

test('or what somebody wrote over it', () => {
  own.begin()(version('11'))
  own.observed('13')
  expect(own.latest()).toBeUndefined()
})

test('a watch that is faster than the answer leaves nothing to hold', () => {
  const recordWritten = own.begin()
  own.observed('11')
  own.observed('12') // somebody else, meanwhile
  recordWritten(version('11'))
  expect(own.latest()).toBeUndefined()
})

test('the watch of an earlier write, seen during the next one, is no news', () => {
  own.begin()(version('11'))
  const recordWritten = own.begin()
  own.observed('11')
  recordWritten(version('12'))
  expect(own.latest()).toEqual(version('12'))
})
