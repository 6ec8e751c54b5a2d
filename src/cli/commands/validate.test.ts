import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { runTool } from '../../../test/kit/tool/run-tool.ts'

const fixtures = join(import.meta.dirname, '../../../test/fixtures/packages')
let folder = ''

beforeEach(() => (folder = temporaryFolder()))

const skyhook = (spec: string): string =>
  `apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata: {name: demo}\nspec:\n${spec}\n`
function put(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

describe('a file', () => {
  test('a Skyhook with an error is refused with file, line, place, value, rule and remedy', async () => {
    const file = put(
      'a.yaml',
      `# first\n---\n${skyhook('  priority: 0\n  packages:\n    tuning: {version: 1.1, image: i}')}`,
    )
    expect(await runTool(['validate', file])).toEqual({
      code: 1,
      stdout: [
        `error: ${file}:7 /spec/priority = 0: must be at least 1 [schema/minimum]`,
        '    to fix it: write 1 or more',
        `error: ${file}:9 /spec/packages/tuning/version = 1.1: must be a string, got number [schema/type]`,
        '    to fix it: put the value in quotes, so that YAML does not read it as something else',
        `${file}: Skyhook demo is invalid (2 errors, 0 warnings)`,
        '',
      ].join('\n'),
      stderr: '',
    })
  })

  test('several objects and a List in one file are checked one by one', async () => {
    const item = skyhook('  pause: true').trim().replaceAll('\n', '\n  ')
    const list = `---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n- ${item}\n`
    const { code, stdout } = await runTool([
      'validate',
      '-o',
      'json',
      put('a.yaml', `${skyhook('  priority: 1')}${list}`),
    ])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      examined: [
        { kind: 'Skyhook demo', errors: 0 },
        { kind: 'Skyhook demo', errors: 1 },
      ],
      items: [{ pointer: '/items/1/spec/pause', rule: 'schema/unknown-field', line: 16 }],
    })
  })

  test('warnings alone are not a failure', async () => {
    const file = put('a.yaml', skyhook('  interruptionBudget: {count: 0}'))
    expect(await runTool(['validate', '-o', 'github', file])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^::warning file=.*,line=5,title=budget::\/spec\/interruptionBudget: is 0/,
      ) as string,
    })
  })

  test('a file without an object of ours is a warning, and one that is not YAML an error', async () => {
    expect(await runTool(['validate', put('a.yaml', 'kind: Pod\n')])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('[nothing-validated]') as string,
    })
    expect(await runTool(['validate', put('b.yaml', 'a: [1\n')])).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('[yaml-syntax]') as string,
    })
  })

  test('standard input is a file', async () => {
    expect(await runTool(['validate', '-'], { stdin: skyhook('  priority: 0') })).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('error: stdin:5 /spec/priority') as string,
    })
  })
})

describe('a folder', () => {
  test('a package is checked by the loader of the agent, with lines', async () => {
    const { code, stdout } = await runTool(['validate', '-o', 'json', join(fixtures, 'missing-step')])
    expect(code).toBe(1)
    const report = JSON.parse(stdout) as { items: { line: number; rule: string }[] }
    expect(report.items[0]).toMatchObject({ rule: 'step-file/missing', line: expect.any(Number) as number })
    expect(report.items[0]?.line).toBeGreaterThan(1)
  })

  test('a folder of packages and files is checked as a whole', async () => {
    mkdirSync(join(folder, 'packages'))
    cpSync(join(fixtures, 'shellscript'), join(folder, 'packages/shellscript'), { recursive: true })
    cpSync(join(fixtures, 'missing-step'), join(folder, 'packages/missing-step'), { recursive: true })
    put('skyhook.yaml', skyhook('  priority: 1'))
    put('pod.yaml', 'kind: Pod\n')
    const { code, stdout } = await runTool(['validate', folder])
    expect(code).toBe(1)
    const verdicts = stdout.split('\n').filter((line) => /: (package|Skyhook demo) is /.test(line))
    expect(verdicts.map((line) => line.slice(folder.length + 1))).toEqual([
      'packages/missing-step: package is invalid (1 error, 0 warnings)',
      'packages/shellscript: package is valid',
      'skyhook.yaml: Skyhook demo is valid',
    ])
  })

  test('the templates of a Helm chart are one finding, beside what is plain YAML among them', async () => {
    mkdirSync(join(folder, 'templates'))
    put('Chart.yaml', 'apiVersion: v2\nname: chart\nversion: 0.1.0\n')
    put('templates/a.yaml', '{{- if .Values.a }}\na: 1\n{{- end }}\n')
    put('templates/b.yaml', '{{- if .Values.b }}\nb: 1\n{{- end }}\n')
    put('templates/c.yaml', skyhook('  priority: 1'))
    const { code, stdout } = await runTool(['validate', folder])
    expect(code).toBe(1)
    expect(stdout.match(/\[yaml-template\]/g)).toHaveLength(1)
    expect(stdout).toContain('helm template NAME CHART | kubectl skyhook validate -')
    expect(stdout).toContain('templates/c.yaml: Skyhook demo is valid')
  })

  test('a missing path, and a folder without an object of ours, are not found', async () => {
    expect(await runTool(['validate', join(folder, 'gone.yaml')])).toMatchObject({ code: 3, stdout: '' })
    expect(await runTool(['validate', folder])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('neither packages nor Skyhooks') as string,
    })
  })
})
