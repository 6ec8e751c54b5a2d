import { describe, expect, test } from 'vitest'
import { hostFile, type PackageRunner, preparePackage } from './package-runner.ts'
import { useHost } from '../kit/cluster/systemd-host.ts'

const { host, agent } = useHost()

const shellscript = async (name: string, configMap: Record<string, string>, env = {}): Promise<PackageRunner> =>
  await preparePackage({ host, agent, folder: 'shellscript', name, configMap, env })

const stages = ['apply', 'config', 'post-interrupt', 'uninstall'] as const

test('shellscript runs the script of each stage and check, which see the env and the other keys', async () => {
  const key = (mode: string) => `${mode.replace('-', '_')}.sh`
  const script = 'echo "$1: $WORD $(cat "$SKYHOOK_DIR/configmaps/data.txt")" >>/tmp/journal'
  const modes = stages.flatMap((stage) => [stage, `${stage}-check`] as const)
  const scripts = Object.fromEntries(modes.map((mode) => [key(mode.replace('-check', '_check')), script]))
  const steps = await shellscript('all', { ...scripts, 'data.txt': 'data\n' }, { WORD: 'two words' })
  await steps.modes(...modes)
  expect((await hostFile(host, '/tmp/journal'))?.trim().split('\n')).toEqual(
    modes.map((mode) => `${mode.replaceAll('-', '_')}: two words data`),
  )
})

describe('the outcome of a stage', () => {
  test.each([
    ['by exit', 'exit 3; true', false],
    ['by its last command', 'true; false', false],
    ['by its own set -e', 'set -e; false; true', false],
    ['although it uses an unset variable', 'echo "$NOWHERE"', true],
    ['with a success', 'false; exit 0', true],
  ])('a script decides its stage %s', async (_, script, ok) => {
    const steps = await shellscript('decides', { 'apply.sh': script })
    expect(await steps.mode('apply')).toMatchObject({ ok })
  })

  test('a stage without a script has nothing to do', async () => {
    const steps = await shellscript('empty', {})
    expect(await steps.modes('apply', 'apply-check', 'config', 'config-check')).toContain(
      'the configMap has no config.sh, nothing to do',
    )
  })
})

describe('an uninstall', () => {
  const configMap = {
    'apply.sh': 'echo installed >/opt/thing',
    'uninstall.sh':
      'rm "$(dirname "${BASH_SOURCE[0]}")/../nothing" 2>/dev/null; rm /opt/thing; cat "$(dirname ' +
      '"${BASH_SOURCE[0]}")/words.txt"',
    'uninstall_check.sh': 'test ! -e /opt/thing',
    'words.txt': 'goodbye\n',
  }

  test('an uninstall without a configMap still runs and is checked', async () => {
    const steps = await shellscript('bare', configMap)
    await steps.modes('apply', 'apply-check')
    steps.configure({})
    expect(await steps.mode('uninstall-check')).toMatchObject({ ok: false }) // /opt/thing is still there
    expect(await steps.modes('uninstall', 'uninstall-check')).toContain('goodbye')
    expect(await hostFile(host, '/opt/thing')).toBeUndefined()
    expect(await host.root.stat(`${steps.stateDir}/kept/bare`)).toBeUndefined()
    expect(await steps.modes('uninstall', 'uninstall-check')).toContain('nothing to do')
  })

  test('an uninstall runs the scripts of the last configuration, not of the first', async () => {
    const steps = await shellscript('later', configMap)
    await steps.modes('apply')
    steps.configure({ 'uninstall.sh': 'echo the later one' })
    await steps.modes('config')
    steps.configure({})
    expect(await steps.modes('uninstall')).toContain('the later one')
  })

  test('a failed uninstall keeps the scripts for the next attempt', async () => {
    const steps = await shellscript('again', { ...configMap, 'uninstall.sh': 'exit 1' })
    await steps.modes('apply')
    steps.configure({})
    expect(await steps.mode('uninstall')).toMatchObject({ ok: false })
    expect(await steps.mode('uninstall-check')).toMatchObject({ ok: false })
    expect(await steps.mode('uninstall')).toMatchObject({ ok: false })
  })
})
