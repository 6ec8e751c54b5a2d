import { expect, test } from 'vitest'
import { dashboardPage } from './dashboard-page.ts'

test('the page of the dashboard names nothing of other origins', async () => {
  const { html, css, script } = await dashboardPage()
  for (const text of [html, css, script]) expect(text).not.toMatch(/(?:https?:)?\/\/[\w-]+\.\w/)
  expect(html).not.toMatch(/\son\w+=|style=|<style|<script>/)
  expect(script).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/)
})
