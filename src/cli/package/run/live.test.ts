import { describe, expect, test } from 'vitest'
import { plainStep } from '../../../../test/kit/node-simulator/package-content.ts'
import type { Mode, PackageConfig, Step } from '../../../schemas/package-config.ts'
import { lifeOf, nameOf } from './life.ts'
import { type ActReport, live, type LifeHost } from './live.ts'
import type { Snapshot } from './remains.ts'

const step = (path: string, idempotence: Step['idempotence'] = 'step'): Step => plainStep(path, { idempotence })
const config = (modes: PackageConfig['modes']): PackageConfig => ({
  packageName: 'p',
  packageVersion: '1.0.0',
  expectedConfigFiles: [],
  modes,
})
const whole = config({
  apply: [step('a')],
  'apply-check': [step('a_check')],
  config: [step('c')],
  'config-check': [step('c_check')],
  upgrade: [step('u')],
  'upgrade-check': [step('u_check')],
  'post-interrupt': [step('p')],
  'post-interrupt-check': [step('p_check')],
  uninstall: [step('x')],
  'uninstall-check': [step('x_check')],
})
const repeatedActs = (stage: string) => [`${stage}, killed in the middle`, stage, `${stage}, again`]
const stageActs = (stage: string) => [`${stage}-check before ${stage}`, ...repeatedActs(stage)]

describe('the acts', () => {
  test('a package without interrupt goes through apply, config, upgrade and uninstall', () => {
    expect(lifeOf(whole).map(nameOf)).toEqual([
      ...stageActs('apply'),
      ...stageActs('config'),
      ...repeatedActs('upgrade'),
      ...stageActs('uninstall'),
      'what is left behind',
    ])
  })

  test('an upgrade starts with the previous version, and an interrupt leads to post-interrupt', () => {
    expect(lifeOf(whole, { previous: whole, interrupt: { type: 'reboot' } }).map(nameOf)).toEqual([
      'apply of the previous version',
      'config of the previous version',
      ...stageActs('upgrade'),
      ...repeatedActs('config'),
      'interrupt reboot, killed in the middle',
      'interrupt reboot',
      ...repeatedActs('post-interrupt'),
      'interrupt reboot, again',
      'upgrade-check after the interrupt',
      'config-check after the interrupt',
      'post-interrupt-check after the interrupt',
      ...stageActs('uninstall'),
      'what is left behind',
    ])
  })

  test('the check of a config that is new in an upgrade must fail before it', () => {
    const { config: _, 'config-check': __, ...without } = whole.modes
    expect(lifeOf(whole, { previous: config(without) }).map(nameOf)).toContain('config-check before config')
  })

  test('a stage that is only a check is run twice, and nothing is killed', () => {
    const { 'apply-check': check = [] } = whole.modes
    const acts = lifeOf(config({ 'apply-check': check })).map(nameOf)
    expect(acts).toEqual(['apply-check before apply', 'apply', 'apply, again'])
  })

  test('stages without steps are left out, and remains are not searched without an uninstall', () => {
    const { apply = [], 'apply-check': check = [] } = whole.modes
    expect(lifeOf(config({ apply, 'apply-check': check })).map(nameOf)).toEqual(stageActs('apply'))
  })
})

type Faults = {
  readonly forgets?: boolean
  readonly failsAgain?: boolean
  readonly weakCheck?: boolean
  /** An interrupt undoes the work of config. */
  readonly losesConfig?: boolean
  readonly failsInterrupt?: boolean
}

/** A package whose work is a set of words; a check passes when its word is there, that of uninstall when none is. */
function hostOf(current: PackageConfig, faults: Faults = {}) {
  const work = new Set<string>()
  const calls: string[] = []
  const counts = new Map<string, number>()
  const host: LifeHost = {
    configs: { current },
    runMode(_version, mode, skipped) {
      calls.push(`${mode}${skipped.size > 0 ? ` without ${[...skipped].join()}` : ''}`)
      const end = (isOk: boolean) => Promise.resolve({ isOk, output: `${mode} said so`, succeeded: [0] })
      const isCheck = mode.endsWith('-check')
      const stage = mode.replace('-check', '')
      if (isCheck && faults.weakCheck) return end(true)
      if (isCheck) return end(stage === 'uninstall' ? !work.has('apply') : work.has(stage))
      counts.set(mode, (counts.get(mode) ?? 0) + 1)
      if (faults.failsAgain && counts.get(mode) === 2) return end(false)
      if (mode === 'uninstall') work.clear()
      else work.add(mode)
      return end(true)
    },
    killMode(_version, mode: Mode) {
      calls.push(`kill ${mode}`)
      const isKilled = mode !== 'config'
      return Promise.resolve({ isKilled, succeeded: isKilled ? [] : [0] })
    },
    interrupt({ type }, run) {
      calls.push(`${type} ${run}`)
      if (faults.losesConfig && run === 'again') work.delete('config')
      return Promise.resolve(faults.failsInterrupt ? 'the host did not come back' : undefined)
    },
    snapshot: () => Promise.resolve(snapshot(faults.forgets === true && calls.length > 0 ? ['/etc/forgotten'] : [])),
  }
  return { host, calls }
}
const snapshot = (files: readonly string[]): Snapshot => ({
  files: Object.fromEntries(files.map((path) => [path, 'f 644 0:0 x'])),
  settings: {},
  units: [],
})

describe('a life', () => {
  test('a package that does and undoes its work passes, and stages that could not be killed are reported', async () => {
    const { host, calls } = hostOf(whole)
    const reports: ActReport[] = []
    const report = await live(lifeOf(whole, { interrupt: { type: 'noop' } }), host, (act) => reports.push(act))
    expect(report).toMatchObject({ isOk: true, leftBehind: [] })
    expect(reports).toEqual(report.acts)
    expect(reports.filter(({ outcome }) => outcome !== 'passed')).toEqual([
      { name: 'config, killed in the middle', outcome: 'not-killed', detail: 'it ended before it could be killed' },
    ])
    expect(calls.slice(0, 6)).toEqual(['apply-check', 'kill apply', 'apply', 'apply-check', 'apply', 'apply-check'])
    expect(calls.filter((call) => call.startsWith('noop'))).toEqual(['noop killed', 'noop first', 'noop again'])
  })

  test('a stage that cannot run twice fails the life there, with its output', async () => {
    const { host, calls } = hostOf(whole, { failsAgain: true })
    const report = await live(lifeOf(whole), host, () => undefined)
    expect(report.isOk).toBe(false)
    expect(report.acts.at(-1)).toEqual({ name: 'apply, again', outcome: 'failed', detail: 'apply said so' })
    expect(calls).not.toContain('config')
  })

  test('work that does not outlast the interrupt is a warning, and an interrupt that fails ends the life', async () => {
    const acts = lifeOf(whole, { interrupt: { type: 'reboot' } })
    const lost = await live(acts, hostOf(whole, { losesConfig: true }).host, () => undefined)
    expect(lost.isOk).toBe(true)
    expect(lost.acts.filter(({ outcome }) => outcome === 'warning')).toEqual([
      {
        name: 'config-check after the interrupt',
        outcome: 'warning',
        detail: 'config-check fails: the work of config does not outlast the interrupt\nconfig-check said so',
      },
    ])
    const failed = await live(acts, hostOf(whole, { failsInterrupt: true }).host, () => undefined)
    expect(failed.acts.at(-1)).toEqual({
      name: 'interrupt reboot, killed in the middle',
      outcome: 'failed',
      detail: 'the host did not come back',
    })
  })

  test('a check that passes without the work is a warning', async () => {
    const report = await live(lifeOf(whole), hostOf(whole, { weakCheck: true }).host, () => undefined)
    expect(report.acts[0]).toMatchObject({ outcome: 'warning', name: 'apply-check before apply' })
    expect(report.isOk).toBe(true)
  })

  test('what the uninstall leaves behind fails the life and is listed', async () => {
    const report = await live(lifeOf(whole), hostOf(whole, { forgets: true }).host, () => undefined)
    expect(report).toMatchObject({
      isOk: false,
      leftBehind: [{ kind: 'file', name: '/etc/forgotten', change: 'added' }],
    })
  })

  test('what the uninstall may leave behind is listed separately, and fails nothing', async () => {
    const acts = lifeOf(whole, { ignored: ['/etc/*'] })
    expect(await live(acts, hostOf(whole, { forgets: true }).host, () => undefined)).toMatchObject({
      isOk: true,
      leftBehind: [],
      ignored: [{ kind: 'file', name: '/etc/forgotten', change: 'added' }],
    })
  })

  test('a step that the agent runs once is not run again', async () => {
    const once = config({ ...whole.modes, apply: [step('a', 'agent')], uninstall: [step('x', 'agent')] })
    const { host, calls } = hostOf(once)
    await live(lifeOf(once), host, () => undefined)
    expect(calls.filter((call) => call.startsWith('apply') && !call.includes('check'))).toEqual([
      'apply',
      'apply without 0',
    ])
    expect(calls.filter((call) => call.startsWith('uninstall without'))).toEqual([])
  })

  test('a step that the agent runs once and that ended before it could be killed is not run again', async () => {
    const once = config({ config: whole.modes.config ?? [], apply: [step('a', 'agent')] })
    const { host, calls } = hostOf(once)
    const escaping = { ...host, killMode: () => Promise.resolve({ isKilled: false, succeeded: [0] }) }
    await live(lifeOf(once), escaping, () => undefined)
    expect(calls.filter((call) => call.startsWith('apply') && !call.includes('check'))).toEqual([
      'apply without 0',
      'apply without 0',
    ])
  })
})
