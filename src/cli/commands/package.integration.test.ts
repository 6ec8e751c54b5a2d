import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { type FakeLogin, type FakeRegistry, startFakeRegistry } from '../../../test/kit/registry/fake-registry.ts'
import { runTool } from '../../../test/kit/tool/run-tool.ts'

let folder = ''
let registry: FakeRegistry | undefined

beforeEach(async () => {
  folder = temporaryFolder()
  expect(await runTool(['package', 'init', 'my-tuning', join(folder, 'my-tuning')])).toMatchObject({ code: 0 })
})
afterEach(async () => {
  await registry?.close()
  registry = undefined
})

test('the stages of a new package do, check and undo their work', async () => {
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
  for (const script of ['apply.sh', 'apply.sh', 'apply_check.sh']) expect([script, run(script)]).toEqual([script, true])
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

describe('package push', () => {
  const login: FakeLogin = { kind: 'bearer', username: 'lab', password: 'secret' }
  const dockerConfig = (document: object): Record<string, string> => {
    writeFileSync(join(folder, 'config.json'), JSON.stringify(document))
    return { DOCKER_CONFIG: folder }
  }

  async function builtDigest(): Promise<string | undefined> {
    const call = ['package', 'build', join(folder, 'my-tuning'), '--file', join(folder, 'out.tar')]
    return /sha256:[0-9a-f]{64}/.exec((await runTool(call)).stdout)?.[0]
  }

  test('a push logs in with what docker stored, and prints the reference with its digest', async () => {
    registry = await startFakeRegistry({ login })
    const auth = Buffer.from('lab:secret').toString('base64')
    const environment = dockerConfig({ auths: { [registry.host]: { auth } } })
    const place = `${registry.host}/team/my-tuning`
    const pushed = await runTool(['package', 'push', join(folder, 'my-tuning'), place, '--plain-http'], { environment })
    expect(pushed).toEqual({ code: 0, stdout: expect.any(String) as string, stderr: '' })
    expect(pushed.stdout).toBe(`${place}:1.0.0@${await builtDigest()}\n`)
  })

  test('a push without a login fails and prints the remedy', async () => {
    registry = await startFakeRegistry({ login })
    const call = ['package', 'push', join(folder, 'my-tuning'), `${registry.host}/p`, '--plain-http']
    const refused = await runTool(call, { environment: { DOCKER_CONFIG: join(folder, 'none') } })
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('docker login') as string })
  })
})
