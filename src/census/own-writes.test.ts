import { beforeEach, expect, test } from 'vitest'
import { createOwnWrites, type OwnWrites } from './own-writes.ts'

type Versioned = { metadata: { resourceVersion: string } }
const version = (resourceVersion: string): Versioned => ({ metadata: { resourceVersion } })
let own: OwnWrites<Versioned>
beforeEach(() => {
  own = createOwnWrites()
})

test('the own copy is used until the watch shows the last write', () => {
  expect(own.latest()).toBeUndefined()
  own.begin()(version('11'))
  own.begin()(version('12'))
  own.observed('11')
  expect(own.latest()).toEqual(version('12'))
  own.observed('12')
  expect(own.latest()).toBeUndefined()
})

test('the own copy is dropped once the watch shows a later write', () => {
  own.begin()(version('11'))
  own.observed('13')
  expect(own.latest()).toBeUndefined()
})

test('a write that the watch shows before the response is not kept', () => {
  const recordWritten = own.begin()
  own.observed('11')
  own.observed('12') // someone else, meanwhile
  recordWritten(version('11'))
  expect(own.latest()).toBeUndefined()
})

test('an earlier write that the watch shows during the next one changes nothing', () => {
  own.begin()(version('11'))
  const recordWritten = own.begin()
  own.observed('11')
  recordWritten(version('12'))
  expect(own.latest()).toEqual(version('12'))
})
