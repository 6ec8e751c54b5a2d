import { expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { notesOf } from './field-notes.ts'

const definition = `
spec:
  versions:
    - schema:
        openAPIV3Schema:
          properties:
            wait:
              properties:
                limits:
                  # origin: skyhookd
                  # example: limits: [10m]
                  # edit: no work. Counts for steps
                  #   that start later
                  items:
                    # of each
                    # pattern: a duration
                    pattern: ^x$
                    # edit: of nothing
                    type: string
`

test('the first comments under a field are its notes, line by line or wrapped', () => {
  const notes = notesOf(parseDocument(definition))
  expect(notes.get('wait.limits')?.notes).toEqual({
    origin: 'skyhookd',
    example: 'limits: [10m]',
    edit: 'no work. Counts for steps that start later',
  })
  expect(notes.get('wait.limits[]')).toEqual({ notes: { pattern: 'a duration' }, pattern: '^x$' })
  expect(notes.get('wait')?.notes).toEqual({})
})
