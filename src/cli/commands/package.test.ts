import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FakeLogin, type FakeRegistry, startFakeRegistry } from '../../../test/support/fake-registry.ts'
import { runTool } from '../../../test/support/run-tool.ts'

let folder = ''
let registry: FakeRegistry | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tool-package-'))
})
afterEach(async () => {
  await registry?.close()
  registry = undefined
  rmSync(folder, { recursive: true })
})

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
  test('a new package is valid as it is, and so is its Skyhook', async () => {
    expect(await init()).toMatchObject({ code: 0, stderr: '' })
    expect(await runTool(['validate', join(folder, 'my-tuning'), join(folder, 'my-tuning/skyhook.yaml')])).toEqual({
      code: 0,
      stdout: `${folder}/my-tuning: package is valid\n${folder}/my-tuning/skyhook.yaml: Skyhook my-tuning is valid\n`,
      stderr: '',
    })
  })

  test('every file of a new package says what it is for, or the README does', async () => {
    await init()
    const base = join(folder, 'my-tuning')
    const readme = readFileSync(join(base, 'README.md'), 'utf8')
    for (const name of readdirSync(join(base, 'skyhook_dir'))) {
      expect(readFileSync(join(base, 'skyhook_dir', name), 'utf8')).toMatch(/^(#!\/bin\/bash\n)?# \S/)
      expect(readme).toMatch(name.endsWith('_check.sh') ? /\*_check\.sh/ : new RegExp(name))
    }
    for (const name of ['config.json', 'skyhook.yaml']) expect(readme).toContain(`\`${name}\``)
  })

  test('the stages of a new package do, check and undo their work', async () => {
    await init()
    const base = join(folder, 'my-tuning')
    const common = join(base, 'skyhook_dir/common.sh')
    writeFileSync(common, readFileSync(common, 'utf8').replace('folder=/etc/', `folder=${folder}/etc/`))
    mkdirSync(join(base, 'configmaps'))
    writeFileSync(join(base, 'configmaps/greeting.txt'), 'hello\n')
    const run = (script: string, ...parameters: string[]): boolean => {
      try {
        execFileSync(join(base, 'skyhook_dir', script), parameters, {
          env: { PATH: process.env.PATH, SKYHOOK_DIR: base },
          stdio: 'pipe',
        })
        return true
      } catch {
        return false
      }
    }
    expect(run('apply_check.sh')).toBe(false)
    for (const script of ['apply.sh', 'apply.sh', 'apply_check.sh'])
      expect([script, run(script)]).toEqual([script, true])
    expect(run('config_check.sh')).toBe(false)
    for (const script of ['config.sh', 'config_check.sh', 'post_interrupt.sh', 'post_interrupt_check.sh'])
      expect([script, run(script)]).toEqual([script, true])
    expect(run('upgrade.sh', '1.0.0', '1.1.0')).toBe(true)
    expect(run('upgrade_check.sh')).toBe(true)
    expect(run('uninstall_check.sh')).toBe(false)
    for (const script of ['uninstall.sh', 'uninstall.sh', 'uninstall_check.sh'])
      expect([script, run(script)]).toEqual([script, true])
    expect(readdirSync(join(folder, 'etc'))).toEqual([])
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
  test('the same files give the same image, whatever the checkout, and other files another', async () => {
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

  test('an invalid package is not built, and the findings say why', async () => {
    await init()
    rmSync(join(folder, 'my-tuning/skyhook_dir/apply.sh'))
    const result = await runTool(['package', 'build', join(folder, 'my-tuning'), '--file', join(folder, 'out.tar')])
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('[step-file/missing]') as string })
    expect(readdirSync(folder)).not.toContain('out.tar')
  })

  test('an architecture that nobody has is a wrong call', async () => {
    await init()
    expect(await runTool(['package', 'build', join(folder, 'my-tuning'), '--arch', 'x86'])).toMatchObject({ code: 2 })
  })
})

describe('package push', () => {
  const login: FakeLogin = { kind: 'bearer', username: 'lab', password: 'secret' }
  const dockerConfig = (document: object): Record<string, string> => {
    writeFileSync(join(folder, 'config.json'), JSON.stringify(document))
    return { DOCKER_CONFIG: folder }
  }

  test('a push logs in with what docker stored, and prints the reference with its digest', async () => {
    registry = await startFakeRegistry({ login })
    await init()
    const auth = Buffer.from('lab:secret').toString('base64')
    const environment = dockerConfig({ auths: { [registry.host]: { auth } } })
    const place = `${registry.host}/team/my-tuning`
    const pushed = await runTool(['package', 'push', join(folder, 'my-tuning'), place, '--plain-http'], { environment })
    expect(pushed).toEqual({ code: 0, stdout: expect.any(String) as string, stderr: '' })
    expect(pushed.stdout).toBe(`${place}:1.0.0@${await digestOf(join(folder, 'my-tuning'))}\n`)
  })

  test('a push without a login fails and says what to do', async () => {
    registry = await startFakeRegistry({ login })
    await init()
    const call = ['package', 'push', join(folder, 'my-tuning'), `${registry.host}/p`, '--plain-http']
    const refused = await runTool(call, { environment: { DOCKER_CONFIG: join(folder, 'none') } })
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('docker login') as string })
  })

  test('a version that is no tag needs one', async () => {
    await init('other', '--version', '1.0.0+b1')
    const call = ['package', 'push', join(folder, 'other'), 'registry.example.com/p']
    expect(await runTool(call)).toMatchObject({ code: 2, stderr: expect.stringContaining('containerSHA') as string })
  })
})
