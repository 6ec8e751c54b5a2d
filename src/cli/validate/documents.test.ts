import { describe, expect, test } from 'vitest'
import { readDocuments } from './documents.ts'

describe('documents', () => {
  const text = ['# first', 'a:', '  b: [1, 2]', '  c/d: x', '---', '- e', '- f: {g: 1}', ''].join('\n')

  test('every document of a file is read, with the lines of its places', () => {
    const { documents, problems } = readDocuments(text)
    expect(problems).toEqual([])
    expect(documents.map(({ value }) => value)).toEqual([{ a: { b: [1, 2], 'c/d': 'x' } }, ['e', { f: { g: 1 } }]])
    const [first, second] = documents
    expect(['', '/a', '/a/b/1', '/a/c~1d', '/a/missing/x'].map((pointer) => first?.lineOf(pointer))).toEqual([
      2, 2, 3, 4, 2,
    ])
    expect(['', '/0', '/1/f/g', '/7'].map((pointer) => second?.lineOf(pointer))).toEqual([6, 6, 7, 6])
  })

  test('JSON is read with lines as well', () => {
    expect(readDocuments('{\n  "a": {\n    "b": 1\n  }\n}').documents[0]?.lineOf('/a/b')).toBe(3)
  })

  test('values are those that kubectl reads', () => {
    const [document] = readDocuments('a: yes\nb: 2024-05-10\nc: 1:30\nd: 0x10\ne: 1.10\nf: ~\n<<: {g: 1}').documents
    expect(document?.value).toEqual({ a: true, b: '2024-05-10', c: '1:30', d: 16, e: 1.1, f: null, g: 1 })
  })

  test('what is not YAML is a problem with its line, and the other documents are still read', () => {
    const { documents, problems } = readDocuments('a: 1\n---\nb: [1\nc: 2\n---\nd: 3\n')
    expect(documents.map(({ value }) => value)).toEqual([{ a: 1 }, { d: 3 }])
    expect(problems[0]).toMatchObject({ severity: 'error', line: 4, rule: 'yaml-syntax' })
  })

  test('empty documents and an empty file are not a problem', () => {
    expect(readDocuments('')).toEqual({ documents: [], problems: [] })
    expect(readDocuments('---\n# nothing\n---\n')).toEqual({ documents: [], problems: [] })
  })

  test('a key that occurs twice is a problem with its own remedy', () => {
    expect(readDocuments('a: 1\na: 2\n').problems).toMatchObject([
      { line: 2, remedy: 'remove one of the two: tools that take such a file take only one of them' },
    ])
  })

  const template = [
    '{{- if .Values.enabled }}',
    'kind: Skyhook',
    'metadata:',
    '  name: {{ .Values.name }}',
    '{{- end }}',
  ]
  test.each([
    ['with a template on its first line', template, 1],
    [
      'with a template in the middle',
      ['kind: Skyhook', 'metadata:', '  {{- include "labels" . | nindent 2 }}', 'spec: {}'],
      3,
    ],
    ['with a template in a value', ['kind: Skyhook', 'metadata: {name: a}', 'spec: {{ .Values.spec }}-x', 'a: b'], 3],
  ])('a file %s has one problem, and not one for each line after it', (_, lines, line) => {
    const { problems } = readDocuments(`${lines.join('\n')}\n`)
    expect(problems).toMatchObject([{ line, rule: 'yaml-template', remedy: expect.stringMatching('^render it first') }])
  })

  test('a syntax error beside a template within a text is reported as a syntax error', () => {
    const { problems } = readDocuments('a: |\n  {{ range . }}\nb: [1\nc: 2\n')
    expect(problems[0]).toMatchObject({ rule: 'yaml-syntax' })
  })
})
