import { expect, test } from 'vitest'
import { effectsOf, hostileTexts } from '../../../test/kit/objects/hostile-texts.ts'
import { markdown, plainText } from './text-form.ts'

test.each([
  ['markup', '**a** `b` [c](d) ![e](f) <g> ~~h~~', '\\*\\*a\\*\\* \\`b\\` \\[c\\](d) !\\[e\\](f) \\<g\\> \\~\\~h\\~\\~'],
  ['a mention', 'by @team, of registry/a@sha256:0', 'by \\@<!-- -->team, of registry/a\\@<!-- -->sha256:0'],
  ['the number of an issue', 'see #1 and a/b#2', 'see \\#<!-- -->1 and a/b\\#<!-- -->2'],
  ['a character by its name', '&lt;b&gt; &#64;team', '\\&lt;b\\&gt; \\&\\#<!-- -->64;team'],
])('in a pull request %s is text', (_, text, expected) => {
  expect(markdown.list([text])).toBe(`- ${expected}\n\n`)
})

test.each(Object.entries(hostileTexts))('a plan has a line for each, and none with an effect: %s', (_, text) => {
  for (const form of [plainText, markdown]) {
    const written = form.heading(text) + form.list([text]) + form.group(text, [text, ` ${text}`])
    expect(effectsOf(written)).toEqual([])
    expect(written.split('\n').filter((line) => line !== '')).toHaveLength(5)
  }
})
