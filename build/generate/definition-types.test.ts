import { expect, test } from 'vitest'
import type { Schema } from '../../src/cli/validate/structural.ts'
import { typeOf } from './definition-types.ts'

test.each<[string, Schema, string]>([
  ['a flag', { type: 'boolean' }, 'boolean'],
  ['a number that may be null', { type: 'integer', nullable: true }, 'number | null'],
  ['a quantity', { 'x-kubernetes-int-or-string': true }, 'number | string'],
  ['one of some words', { type: 'string', enum: ['a', ''] }, '"a" | ""'],
  ['a list of them', { type: 'array', items: { type: 'string', enum: ['a', 'b'] } }, 'readonly ("a" | "b")[]'],
  ['a map', { type: 'object', additionalProperties: { type: 'string' } }, 'Readonly<Record<string, string>>'],
  [
    'an object',
    {
      type: 'object',
      required: ['a'],
      properties: { a: { type: 'string', description: 'A.' }, b: { type: 'string' } },
    },
    '{\n/** A. */\nreadonly a: string\nreadonly b?: string\n}',
  ],
])('%s of a definition has its type', (_, schema, type) => {
  expect(typeOf(schema, 'spec.x')).toBe(type)
})

test.each<[string, Schema]>([
  ['a type', {}],
  ['items', { type: 'array' }],
  ['properties', { type: 'object' }],
])('a field without %s is refused by name', (_, schema) => {
  expect(() => typeOf(schema, 'spec.x')).toThrow('spec.x')
})
