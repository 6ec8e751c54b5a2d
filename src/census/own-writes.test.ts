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
  own.seen('11')
  expect(own.latest()).toEqual(version('12'))
  own.seen('12')
  expect(own.latest()).toBeUndefined()
})

test('or what somebody wrote over it', () => {
  own.begin()(version('11'))
  own.seen('13')
  expect(own.latest()).toBeUndefined()
})

test('a watch that is faster than the answer leaves nothing to hold', () => {
  const wrote = own.begin()
  own.seen('11')
  own.seen('12') // somebody else, meanwhile
  wrote(version('11'))
  expect(own.latest()).toBeUndefined()
})

test('the watch of an earlier write, seen during the next one, is no news', () => {
  own.begin()(version('11'))
  const wrote = own.begin()
  own.seen('11')
  wrote(version('12'))
  expect(own.latest()).toEqual(version('12'))
})
