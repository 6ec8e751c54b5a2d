import { expect, test } from 'vitest'
import { proseOf } from './prose.ts'

/** What remains of a text, without what stands for the rest. */
const prose = (path: string, text: string): string[] =>
  proseOf(path, text)
    .split('\0')
    .map((part) => part.replaceAll(/\s+/g, ' ').trim())
    .filter((part) => part !== '')

test.each<[string, string, string[]]>([
  ['a comment of several lines', '/**\n * One\n * two.\n */\nconst a = 1', ['One two.']],
  ['comments below each other', 'f() // one\n// two\ng()', ['one two']],
  ['a comment without code', '// one `two` three', ['one', 'three']],
  ['a message in parts', "f('one ' +\n  'two', 'three four')", ['one two', 'three four']],
  ['a message around a value', 'f(`one ${a} two`)', ['one', 'two']],
  ['no name and no module', "import { a } from './a.ts'\nf('begin', { begun: 1 })", []],
])('the prose of a source is %s', (_, text, expected) => {
  expect(prose('src/a.ts', text)).toEqual(expected)
})

test.each<[string, string, string[]]>([
  ['text', '# Title\n\nOne\ntwo.', ['# Title One two.']],
  ['no code', 'One `two` three.\n\n```sh\nfour\n```\n', ['One', 'three.']],
  ['no title of a test', 'One “two three” four', ['One', 'four']],
  ['the text of a link', '[one](two-three)', ['[one']],
  ['nothing generated', 'One\n<!-- generated: a -->\ntwo <!-- end -->', ['One <!-- generated: a -->', '-->']],
  ['nothing after a marker without an end', 'One\n<!-- generated from a -->\ntwo', ['One <!-- generated from a -->']],
])('the prose of a page is %s', (_, text, expected) => {
  expect(prose('docs/a.md', text)).toEqual(expected)
})

test('comments of other files are joined over their lines', () => {
  expect(prose('chart/values.yaml', '# One\n# two.\na: 1')).toEqual(['One two. a: 1'])
})

test('the prose of a file is as long as the file, line by line', () => {
  const text = "/** One\n * two */\nf(`a b ${c}\n d`, 'e f')\n"
  const lengths = (one: string): number[] => one.split('\n').map((line) => line.length)
  expect(lengths(proseOf('src/a.ts', text))).toEqual(lengths(text))
})
