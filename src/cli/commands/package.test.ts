import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { runTool } from '../../../test/kit/tool/run-tool.ts'

let folder = ''

beforeEach(() => (folder = temporaryFolder()))

const init = async (name = 'my-tuning', ...more: string[]) =>
  await runTool(['package', 'init', name, join(folder, name), ...more])
const digestOf = async (source: string, ...more: string[]): Promise<string> => {
  const { code, stdout, stderr } = await runTool([
    'package',
    'build',
    source,
    '--file',
    join(folder, 'out.tar'),
    ...more,
  ])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return /sha256:[0-9a-f]{64}/.exec(stdout)?.[0] ?? stdout
}

describe('package init', () => {
  test('a new package and its Skyhook are valid as they are', async () => {
    expect(await init()).toMatchObject({ code: 0, stderr: '' })
    expect(await runTool(['validate', join(folder, 'my-tuning'), join(folder, 'my-tuning/skyhook.yaml')])).toEqual({
      code: 0,
      stdout: `${folder}/my-tuning: package is valid\n${folder}/my-tuning/skyhook.yaml: Skyhook my-tuning is valid\n`,
      stderr: '',
    })
  })

  test('a Skyhook that lacks what the new package expects is invalid beside it', async () => {
    await init()
    const skyhook = join(folder, 'my-tuning/skyhook.yaml')
    const text = readFileSync(skyhook, 'utf8')
    writeFileSync(skyhook, text.replace('greeting.txt', 'greetings.txt'))
    expect(await runTool(['validate', skyhook])).toMatchObject({ code: 0 })
    expect(await runTool(['validate', skyhook, join(folder, 'my-tuning')])).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(
        `error: ${skyhook}:17 /spec/packages/my-tuning/configMap: lacks greeting.txt`,
      ) as string,
    })
  })

  test('every file of a new package explains its purpose, or the README does', async () => {
    await init()
    const base = join(folder, 'my-tuning')
    const readme = readFileSync(join(base, 'README.md'), 'utf8')
    for (const name of readdirSync(join(base, 'skyhook_dir'))) {
      expect(readFileSync(join(base, 'skyhook_dir', name), 'utf8')).toMatch(/^(#!\/bin\/bash\n)?# \S/)
      expect(readme).toMatch(name.endsWith('_check.sh') ? /\*_check\.sh/ : new RegExp(name))
    }
    for (const name of ['config.json', 'skyhook.yaml']) expect(readme).toContain(`\`${name}\``)
  })

  test('a folder that is not empty is left alone, and a bad name or version refused', async () => {
    await init()
    writeFileSync(join(folder, 'my-tuning/config.json'), 'mine')
    expect(await init()).toMatchObject({ code: 4, stderr: expect.stringContaining('is not empty') as string })
    expect(readFileSync(join(folder, 'my-tuning/config.json'), 'utf8')).toBe('mine')
    expect(await init('My_Tuning')).toMatchObject({ code: 2 })
    expect(await init('other', '--version', '1.0')).toMatchObject({ code: 2 })
  })
})

describe('package build', () => {
  test('the same files give the same image in any checkout, and other files give another', async () => {
    await init()
    const base = join(folder, 'my-tuning')
    const digest = await digestOf(base)
    cpSync(base, join(folder, 'again'), { recursive: true })
    chmodSync(join(folder, 'again/config.json'), 0o600)
    mkdirSync(join(folder, 'again/.git'))
    writeFileSync(join(folder, 'again/.git/HEAD'), 'x')
    for (const name of ['Dockerfile', '.dockerignore']) writeFileSync(join(folder, 'again', name), 'for engines')
    expect(await digestOf(join(folder, 'again'))).toBe(digest)
    expect(await digestOf(join(folder, 'again'), '--arch', 'arm64,amd64')).toBe(digest)
    expect(await digestOf(base, '--arch', 'amd64')).not.toBe(digest)
    writeFileSync(join(folder, 'again/skyhook_dir/Dockerfile'), 'for the host')
    expect(await digestOf(join(folder, 'again'))).not.toBe(digest)
    writeFileSync(join(base, 'README.md'), 'changed')
    expect(await digestOf(base)).not.toBe(digest)
  })

  test('a built archive is a valid package', async () => {
    await init()
    await digestOf(join(folder, 'my-tuning'))
    expect(await runTool(['validate', join(folder, 'out.tar')])).toMatchObject({
      code: 0,
      stdout: `${folder}/out.tar: package is valid\n`,
    })
  })

  test('an invalid package is not built, and the findings explain why', async () => {
    await init()
    rmSync(join(folder, 'my-tuning/skyhook_dir/apply.sh'))
    const result = await runTool(['package', 'build', join(folder, 'my-tuning'), '--file', join(folder, 'out.tar')])
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('[step-file/missing]') as string })
    expect(readdirSync(folder)).not.toContain('out.tar')
  })

  test('an unknown architecture is a usage error', async () => {
    await init()
    expect(await runTool(['package', 'build', join(folder, 'my-tuning'), '--arch', 'x86'])).toMatchObject({ code: 2 })
  })
})

describe('package push', () => {
  test('a version that is not a valid tag needs one', async () => {
    await init('other', '--version', '1.0.0+b1')
    const call = ['package', 'push', join(folder, 'other'), 'registry.example.com/p']
    expect(await runTool(call)).toMatchObject({ code: 2, stderr: expect.stringContaining('containerSHA') as string })
  })
})
