import { expect, test } from 'vitest'
import { effectsOf, hostileTexts } from '../../../../test/kit/objects/hostile-texts.ts'
import { markdown, terminal } from './plan-text.ts'

test.each([
  [
    'markup',
    '**a** `b` [c](d) ![e](f) <g> ~~h~~',
    '\\*\\*a\\*\\* \\`b\\` \\[c\\](d) !\\[e\\](f) \\<g\\> \\~\\~h\\~\\~',
  ],
  ['a mention', 'by @team, of registry/a@sha256:0', 'by \\@<!-- -->team, of registry/a\\@<!-- -->sha256:0'],
  ['the number of an issue', 'see #1 and a/b#2', 'see \\#<!-- -->1 and a/b\\#<!-- -->2'],
  ['a character by its name', '&lt;b&gt; &#64;team', '\\&lt;b\\&gt; \\&\\#<!-- -->64;team'],
])('%s is text in a pull request', (_, text, expected) => {
  expect(markdown.list([text])).toBe(`- ${expected}\n\n`)
})

test.each(Object.entries(hostileTexts))('a plan has a line for each, and none with an effect: %s', (_, text) => {
  for (const form of [terminal, markdown]) {
    const line = `x ${text}`
    const written = form.heading(line) + form.list([line]) + form.group(line, [line, ` ${line}`])
    expect(effectsOf(written)).toEqual([])
    expect(written.split('\n').filter((one) => one !== '')).toHaveLength(5)
  }
})
