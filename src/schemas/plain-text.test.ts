import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { controls, effectsOf, hostileTexts } from '../../test/kit/objects/hostile-texts.ts'
import {
  clip,
  clipStart,
  harmlessJson,
  openSequenceStart,
  plainExcerpt,
  plainLine,
  plainText,
  shownLines,
} from './plain-text.ts'

const anything = fc
  .array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom(...Object.values(controls))))
  .map((parts) => parts.join(''))

describe('plain text', () => {
  test.each([
    ['colors', '\u001B[31mred\u001B[0m', 'red'],
    ['a link with its text', '\u001B]8;;http://evil.test\u0007here\u001B]8;;\u001B\\', 'here'],
    ['the clipboard', 'a\u001B]52;c;QUFB\u0007b', 'ab'],
    ['a title without an end', 'a\u001B]0;title\nb', 'a]0;title\nb'],
    ['other characters after an escape', 'a\u001Bb', 'ab'],
    ['a character set', 'a\u001B(B\u001B[mb', 'ab'],
    ['line ends of all systems', 'a\r\nb\rc\nd', 'a\nb\nc\nd'],
    ['one line end of two with a control between them', 'a\r\u0000\nb', 'a\nb'],
    ['separators of Unicode', 'a\u2028b\u2029c', 'a b c'],
    ['tabs', 'a\tb', 'a\tb'],
    ['letters with marks, wide letters and emoji', 'ä\u0301 \u6F22 \u{1F600}', 'ä\u0301 \u6F22 \u{1F600}'],
  ])('%s: %j becomes %j', (_, text, expected) => {
    expect(plainText(text)).toBe(expected)
  })

  test('no text has an effect once it is clean, and cleaning it again changes nothing', () => {
    fc.assert(
      fc.property(anything, (text) => {
        const clean = plainText(text)
        expect(effectsOf(clean)).toEqual([])
        expect(plainText(clean)).toBe(clean)
      }),
    )
  })

  test('a line has no line ends', () => {
    expect(plainLine('a\r\n\n\tb')).toBe('a b')
  })

  test.each(Object.entries(hostileTexts))('an excerpt is short and without effect: %s', (_, text) => {
    const excerpt = plainExcerpt(text, 100)
    expect(effectsOf(excerpt)).toEqual([])
    expect(excerpt.length).toBeLessThanOrEqual(100)
  })

  test.each(Object.entries(hostileTexts))('a line of a view stays one, and short: %s', (_, text) => {
    const shown = shownLines(['before', `  ${text}`, 'after'])
    expect(effectsOf(shown)).toEqual([])
    expect(shown.split('\n')).toEqual(['before', expect.stringMatching(/^ {2}.{0,2046}$/u), 'after', ''])
  })

  test('a text is cut between characters', () => {
    expect(clip('ab\u{1F600}cd', 4)).toBe('ab\uFFFD…')
    expect(clip('abcd', 4)).toBe('abcd')
    expect(clipStart('ab\u{1F600}cd', 4)).toBe('…\uFFFDcd')
    expect(clipStart('abcd', 4)).toBe('abcd')
  })
})

test('a sequence that may continue is not complete', () => {
  for (const [text, start] of [
    ['a\u001B', 1],
    ['a\u001B[31', 1],
    ['a\u001B]0;title', 1],
    ['a\u001B]0;title\u001B', 1],
    ['a\u001B[31m', 6],
    ['a\u001Bb', 3],
    ['abc', 3],
  ] as const)
    expect(openSequenceStart(text)).toBe(start)
})

test('JSON stays the same document, and has no effect where it is printed', () => {
  fc.assert(
    fc.property(anything, (text) => {
      const json = harmlessJson(JSON.stringify({ [text]: text }, null, 2))
      expect(JSON.parse(json)).toEqual({ [text]: text })
      expect(effectsOf(json)).toEqual([])
    }),
  )
})
