import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { createHostRoot } from '../../src/host/fs/host-root.ts'
import { observeStepUnit } from '../../src/host/step/observe.ts'
import { forgetStepUnit, startStepUnit } from '../../src/host/step/start.ts'
import { command, flag, text } from '../../src/host/systemd/unit-properties.ts'
import { systemdValueProblem } from '../../src/schemas/environment-variable.ts'
import { slowness } from '../kit/machine-speed.ts'
import { hasBus } from '../sandbox/host-os.ts'
import { shell, stepRequest, useHost } from '../kit/cluster/systemd-host.ts'

const { host, agent } = useHost()
beforeAll(async () => await host.root.mkdirp('/var/log/steps'))

const output = async (id: string, stream = 'out') =>
  (await host.root.readFile(`/var/log/steps/${id}.${stream}`)).toString()

describe('a step that ends', () => {
  test.each([0, 1, 3, 199])('a step that exits with code %i records its code and output', async (code) => {
    const step = shell(`echo out; echo err >&2; exit ${code}`)
    const end = await agent.run(step)
    expect(end).toMatchObject({ state: 'ended', source: 'file', result: { outcome: 'exited', code } })
    expect(end).not.toHaveProperty('isHostStopping')
    expect(await output(step.id)).toBe('out\n')
    expect(await output(step.id, 'err')).toBe('err\n')
  })

  test.each([9, 15, 11])('a step killed by signal %i from outside records the signal', async (signal) => {
    const step = shell('sleep 60')
    await agent.start(step)
    await expect.poll(async () => (await agent.units.readSnapshot(step.unit)).subState).toBe('start')
    await host.exec('systemctl', 'kill', '--kill-who=main', `--signal=${signal}`, step.unit)
    expect(await agent.awaitEnd(step)).toMatchObject({
      source: 'file',
      result: { outcome: 'killed', signal: { 9: 'SIGKILL', 15: 'SIGTERM', 11: 'SIGSEGV' }[signal] },
    })
  })

  test('a step that runs out of time gets TERM, together with its children', async () => {
    const step = shell('sleep 61 & sleep 62', { timeoutMs: 200 })
    expect(await agent.run(step)).toMatchObject({ source: 'file', result: { outcome: 'timeout' } })
    expect(await host.exec('sh', '-c', 'pgrep -f "sleep 6[12]" || true')).toBe('')
  })

  test('a step that runs out of time and ignores TERM gets KILL', async () => {
    const step = shell('trap "" TERM; while :; do sleep 0.1; done', { timeoutMs: 100, stopTimeoutMs: 1 })
    expect(await agent.run(step)).toMatchObject({ source: 'file', result: { outcome: 'timeout' } })
  })

  test('a stopped step ends with TERM or by its own exit', async () => {
    const plain = shell('sleep 60')
    const tidy = shell('trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done')
    await agent.start(plain)
    await agent.start(tidy)
    await expect.poll(() => output(tidy.id)).toBe('ready\n')
    expect(await Promise.all([plain, tidy].map(({ unit }) => agent.units.stop(unit)))).toEqual([true, true])
    expect(await agent.awaitEnd(plain)).toMatchObject({
      source: 'file',
      result: { outcome: 'killed', signal: 'SIGTERM' },
    })
    expect(await agent.awaitEnd(tidy)).toMatchObject({ source: 'file', result: { outcome: 'exited', code: 0 } })
  })

  test('ten concurrent steps each record their own end', async () => {
    const steps = Array.from({ length: 10 }, (_, code) => shell(`exit ${code}`))
    const ends = await Promise.all(steps.map((step) => agent.run(step)))
    expect(ends.map((end) => end.state === 'ended' && end.result)).toEqual(
      steps.map((_, code) => ({ outcome: 'exited', code })),
    )
  })
})

describe('a step that cannot start', () => {
  test.each([
    ['is missing', undefined, 0],
    ['is not executable', '#!/bin/sh\n', 0o644],
    ['has no interpreter line', 'echo hello\n', 0o755],
    ['has an interpreter that is missing', '#!/no/such/shell\n', 0o755],
  ])('a step cannot start when its file %s', async (_, content, mode) => {
    const path = `/opt/step-${mode}-${content?.length}`
    if (content !== undefined) await host.root.writeFile(path, content, mode)
    expect(await agent.run(stepRequest([path]))).toMatchObject({
      result: { outcome: 'failed-to-start', detail: expect.stringMatching('^203/EXEC') as string },
      source: 'file',
    })
  })

  test('a step cannot start when its file is a folder', async () => {
    expect(await agent.run(stepRequest(['/etc']))).toMatchObject({
      result: { outcome: 'failed-to-start', detail: expect.stringMatching('^203/EXEC') as string },
    })
  })

  // The recorder has the same fault, so there is no record and the unit itself tells the end.
  test.each([
    ['working directory', { workingDirectory: '/missing' }, '^200/CHDIR'],
    ['log folder', { stdoutFile: '/missing/log' }, '^209/STDOUT'],
  ])('a step cannot start when its %s is missing', async (_, change, detail) => {
    expect(await agent.run(shell('true', change))).toMatchObject({
      result: { outcome: 'failed-to-start', detail: expect.stringMatching(detail) as string },
      source: 'unit',
    })
  })

  test('a step cannot start when its environment file is gone', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'elsewhere-'))
    const step = shell('true')
    // writes its files where the host does not see them
    await startStepUnit({ units: agent.units, root: createHostRoot(elsewhere, systemRandom) }, step)
    rmSync(elsewhere, { recursive: true })
    expect(await agent.awaitEnd(step)).toMatchObject({
      result: { outcome: 'failed-to-start', detail: expect.stringMatching('^resources') as string },
      source: 'unit',
    })
  })

  test.runIf(hasBus)('forgotten steps leave no trace, and the host is not degraded', async () => {
    const list = ['systemctl', 'list-units', '--all', '--plain', '--no-legend', 'skyhookd-test-*']
    const listUnits = async (): Promise<string[]> => (await host.exec(...list)).match(/^\S+/gm) ?? []
    const units = await listUnits()
    expect(units.length).toBeGreaterThan(5)
    for (const unit of units)
      await forgetStepUnit(agent.stepHost, { id: unit.slice('skyhookd-test-'.length, -'.service'.length), unit })
    expect(await listUnits()).toEqual([])
    expect(await host.root.readdir('/run/skyhook')).toEqual([])
    expect((await host.exec('systemctl', 'is-system-running')).trim()).toBe('running')
  })
})

describe('the input of a step', () => {
  const text = fc
    .string({ unit: 'grapheme', maxLength: 30 })
    .filter((text) => !/[\0\p{Noncharacter_Code_Point}]|\p{Surrogate}/u.test(text))
  const special = fc.string({
    unit: fc.constantFrom(
      ...'$"\'\\`;%{}*?#~ \n\t\r=!&|<>()[]'.split(''),
      '\u0001',
      'ä',
      '😀',
      '$X',
      '${Y}',
      '%n',
      '$$',
    ),
  })
  const nasty = [
    '',
    ' ',
    '$',
    '$$',
    '$HOME',
    '${HOME}',
    '%h',
    '%%',
    '\\',
    '\\n',
    "'",
    '"',
    '`id`',
    '$(id)',
    ';',
    '; rm',
    '\n',
    'a\nb\n',
    '\r\n',
    '#',
    '~',
    '*',
    '-n',
    '--',
    '\u{1F600}',
    '\u0001\u007f',
  ]

  test('a step gets its arguments byte for byte', async () => {
    const args = [...nasty, ...fc.sample(special, 150), ...fc.sample(text, 150)]
    const step = stepRequest(['/usr/bin/printf', '%s\\0', ...args])
    expect(await agent.run(step)).toMatchObject({ result: { outcome: 'exited', code: 0 } })
    expect((await output(step.id)).split('\0').slice(0, -1)).toEqual(args)
  })

  test('a step gets its variables byte for byte, and none of the agent’s', async () => {
    const version = await agent.units.version()
    const texts = [...nasty, ...fc.sample(special, 150), ...fc.sample(text, 150), 'x'.repeat(100_000)]
    const values = texts.filter((value) => systemdValueProblem(value, version) === undefined)
    const environment = Object.fromEntries(values.map((value, index) => [`V_${index}`, value]))
    const step = stepRequest(['/usr/bin/env', '-0'], { environment })
    expect(await agent.run(step)).toMatchObject({ source: 'file', result: { outcome: 'exited', code: 0 } })
    const lines = (await output(step.id)).split('\0').slice(0, -1)
    const {
      LANG: _,
      INVOCATION_ID: __,
      SYSTEMD_EXEC_PID: ___,
      USER: ____, // set by systemd 257, not by 252
      ...received
    } = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
    expect(received).toEqual({
      ...environment,
      HOME: '/root',
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    })
  })

  test('a step is refused a variable that this systemd would drop', async (context) => {
    const value = 'a line of Windows\r\n'
    context.skip(systemdValueProblem(value, await agent.units.version()) === undefined, 'systemd takes it since 248')
    const step = shell('true', { environment: { PEM: value } })
    expect(await startStepUnit(agent.stepHost, step)).toMatchObject({ started: false, error: { kind: 'invalid' } })
  })

  test('a step with as many variables as the kernel accepts, and its own PATH and HOME, still leaves a record', async () => {
    const environment = {
      ...Object.fromEntries(Array.from({ length: 14 }, (_, index) => [`BIG_${index}`, 'x'.repeat(100_000)])),
      PATH: '/nowhere',
      HOME: '/tmp',
      LANG: 'C',
    }
    const step = stepRequest(['/bin/sh', '-c', 'echo "$PATH $HOME ${#BIG_13}"'], { environment })
    expect(await agent.run(step)).toMatchObject({ source: 'file', result: { outcome: 'exited', code: 0 } })
    expect(await output(step.id)).toBe('/nowhere /tmp 100000\n')
  })

  test('variables of a step are in a file that only root reads, never among the unit’s properties', async () => {
    const step = shell('sleep 60', { environment: { TOKEN: 'hunter2' } })
    await agent.start(step)
    expect((await host.root.stat(`/run/skyhook/${step.id}.env`))?.mode).toBe(0o100600)
    expect(await host.exec('systemctl', 'show', step.unit)).not.toContain('hunter2')
    await agent.units.stop(step.unit)
    await agent.awaitEnd(step)
    await forgetStepUnit(agent.stepHost, step)
    expect(await host.root.stat(`/run/skyhook/${step.id}.env`)).toBeUndefined()
  })

  test('a folder with brackets in its name is not taken as a pattern', async () => {
    await host.root.mkdirp('/run/g1')
    const step = shell('echo "$A"', { environment: { A: 'from the folder with brackets' } })
    await host.root.writeFile(`/run/g1/${step.id}.env`, 'A="from the folder that the pattern matches"\n', 0o600)
    const bracketed = { ...agent.stepHost, runFolder: '/run/g[1]' }
    expect(await startStepUnit(bracketed, step)).toMatchObject({ started: true })
    await agent.awaitEnd(step)
    expect(await output(step.id)).toBe('from the folder with brackets\n')
  })

  test('a step gets its limits as properties of its unit', async () => {
    const properties = { MemoryMax: 64 * 2 ** 20, MemoryLow: 2 ** 20, CPUQuotaPerSecUSec: 500_000, CPUWeight: 50 }
    const step = shell('sleep 60', { properties, timeoutMs: 30_000, stopTimeoutMs: 7_000 })
    await agent.start(step)
    const names = [...Object.keys(properties), 'TimeoutStartUSec', 'TimeoutStopUSec', 'KillMode', 'CollectMode']
    const shown = await host.exec('systemctl', 'show', step.unit, ...names.map((name) => `--property=${name}`))
    expect(shown.trim().split('\n').toSorted()).toEqual(
      [
        'CPUQuotaPerSecUSec=500ms',
        'CPUWeight=50',
        'CollectMode=inactive',
        'KillMode=mixed',
        'MemoryLow=1048576',
        'MemoryMax=67108864',
        'TimeoutStartUSec=30s',
        'TimeoutStopUSec=7s',
      ].toSorted(),
    )
    await agent.units.stop(step.unit)
    await agent.awaitEnd(step)
  })

  test('a step that exceeds its memory limit is killed', async () => {
    const step = shell('exec grep -a x /dev/zero', { properties: { MemoryMax: 16 * 2 ** 20 } })
    expect(await agent.run(step)).toMatchObject({ result: { outcome: 'killed', signal: 'SIGKILL' } })
  })

  test.each(['workingDirectory', 'stdoutFile', 'stderrFile'])(
    'a step with a line break in its %s is refused, for it would write into the unit file',
    async (name) => {
      const step = shell('true', { [name]: '/tmp\nExecStartPre=/bin/touch /tmp/injected' })
      expect(await startStepUnit(agent.stepHost, step)).toMatchObject({ started: false, error: { kind: 'invalid' } })
      expect((await agent.units.readState(step.unit)).loadState).toBe('not-found')
    },
  )
})

describe('a step that is started again', () => {
  test('a running step that is started again is found and runs once', async () => {
    const step = shell('echo ran; sleep 0.3')
    expect(await startStepUnit(agent.stepHost, step)).toEqual({ started: true, found: false })
    expect(await startStepUnit(agent.stepHost, step)).toEqual({ started: true, found: true })
    expect(await agent.awaitEnd(step)).toMatchObject({ result: { outcome: 'exited', code: 0 } })
    expect(await output(step.id)).toBe('ran\n')
  })

  test('a failed step that is started again is found ended', async () => {
    const step = shell('echo ran; exit 3')
    await agent.run(step)
    expect(await startStepUnit(agent.stepHost, step)).toEqual({ started: true, found: true })
    expect(await agent.awaitEnd(step)).toMatchObject({ result: { outcome: 'exited', code: 3 } })
    expect(await output(step.id)).toBe('ran\n')
  })
})

describe('a step without a record', () => {
  test('the unit reports the end of a step that could not record it on a full disk', async () => {
    const results = '/var/lib/skyhook/.agent/results'
    await host.exec('mount', '-t', 'tmpfs', '-o', 'size=4k', 'full', results)
    await host.exec('sh', '-c', `head -c 4096 /dev/zero >${results}/ballast`)
    const [good, bad] = [shell('true'), shell('exit 4')]
    const seen = { source: 'unit', result: { outcome: 'exited', code: 0 } }
    expect(await agent.run(good)).toMatchObject(hasBus ? seen : { state: 'absent' }) // without references it is gone
    expect(await agent.run(bad)).toMatchObject({ source: 'unit', result: { outcome: 'exited', code: 4 } })
    await host.exec('umount', results)
    await forgetStepUnit(agent.stepHost, good)
    // which is not the success that a missing unit reports
    expect(await observeStepUnit(agent.stepHost, good)).toEqual({ state: 'absent' })
  })
})

describe('systemd', () => {
  const oneshot = [text('Type', 'oneshot'), command('ExecStart', ['/bin/true']), flag('AddRef', true)]
  const unknown = { name: 'MemoryOfTomorrowMax', signature: 't', value: 1n }

  test('an older systemd starts a unit without unknown properties only if they are optional', async () => {
    expect(
      await agent.units.startTransient('optional.service', [...oneshot, { ...unknown, optional: true }]),
    ).toMatchObject({
      outcome: 'started',
    })
    const refused = { outcome: 'refused', error: 'org.freedesktop.DBus.Error.PropertyReadOnly', isUnitNameTaken: false }
    expect(await agent.units.startTransient('needed.service', [...oneshot, unknown])).toMatchObject(refused)
    expect(await agent.units.startTransient('needed.service', oneshot)).toMatchObject({ outcome: 'started' })
  })

  // the reference keeps it
  test.runIf(hasBus)('systemd keeps the name of a unit with contradictory settings', async () => {
    const impossible = [...oneshot, text('Restart', 'always')]
    expect(await agent.units.startTransient('burnt.service', impossible)).toMatchObject({
      outcome: 'refused',
      isUnitNameTaken: true,
    })
    expect(await agent.units.startTransient('burnt.service', oneshot)).toEqual({ outcome: 'exists' })
    expect(await observeStepUnit(agent.stepHost, { id: 'burnt', unit: 'burnt.service' })).toMatchObject({
      state: 'ended',
      result: { outcome: 'failed-to-start' },
    })
    await forgetStepUnit(agent.stepHost, { id: 'burnt', unit: 'burnt.service' })
  })

  test('systemd refuses an unexpected signature, and the unit name stays free', async () => {
    expect(
      await agent.units.startTransient('again.service', [...oneshot, { name: 'UMask', signature: 's', value: '022' }]),
    ).toMatchObject({
      outcome: 'refused',
      isUnitNameTaken: false,
    })
    expect(await agent.units.startTransient('again.service', oneshot)).toMatchObject({ outcome: 'started' })
  })
})

test('an empty step costs a few milliseconds', async () => {
  const times: number[] = []
  const slow: number[] = []
  for (let turn = 0; turn < 40; turn++) {
    if (turn % 8 === 0) slow.push(slowness())
    const step = stepRequest(['/bin/true'])
    const startedMs = performance.now()
    const end = await agent.run(step)
    times.push(performance.now() - startedMs)
    expect(end).toMatchObject({ source: 'file', result: { outcome: 'exited', code: 0 } })
    await forgetStepUnit(agent.stepHost, step)
  }
  const quantile = (of: readonly number[], part: number): number =>
    of.toSorted((a, b) => a - b)[Math.floor(of.length * part)] ?? Number.NaN
  const median = quantile(times, 0.5)
  const factor = Math.max(1, quantile(slow, 0.5))
  const text =
    `an empty step, start to observed end: median ${median.toFixed(1)} ms, 90 % within ` +
    `${quantile(times, 0.9).toFixed(1)} ms, on a machine ${factor.toFixed(1)} times slower than a quiet one`
  console.log(text)
  expect(median / factor, text).toBeLessThan(60) // 10-15 ms on a quiet machine
})
