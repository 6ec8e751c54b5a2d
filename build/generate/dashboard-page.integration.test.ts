import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dashboardPage, pageScript } from './dashboard-page.ts'

const originPattern = /(?:https?:)?\/\/[\w-]+\.\w[\w./]*/g
const markupPattern = /outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/
/** Names of preact for kinds of elements, which nothing fetches. */
const namespaces = ['1998/Math/MathML', '1999/xhtml', '2000/svg'].map((name) => `http://www.w3.org/${name}`)

test('the page of the dashboard names nothing of other origins', async () => {
  const { html, css, script } = await dashboardPage()
  for (const text of [html, css]) expect(text).not.toMatch(originPattern)
  expect(new Set(script.match(originPattern))).toEqual(new Set(namespaces))
  expect(html).not.toMatch(/\son\w+=|style=|<style|<script>/)
  expect(script).not.toMatch(markupPattern)
})

test('no source of the page makes markup of a text', async () => {
  const { inputs } = (await pageScript()).metafile
  const own = Object.keys(inputs).filter((path) => !path.startsWith('node_modules/preact/'))
  expect(own).toContain('src/cli/dashboard/page/main.ts')
  expect(own.filter((path) => !path.startsWith('src/'))).toEqual([])
  for (const path of own) {
    const text = readFileSync(join(import.meta.dirname, '..', '..', path), 'utf8')
    expect(text, path).not.toMatch(originPattern)
    // preact sets innerHTML only for dangerouslySetInnerHTML
    expect(text, path).not.toMatch(new RegExp(`innerHTML|dangerouslySet|${markupPattern.source}`))
  }
})
