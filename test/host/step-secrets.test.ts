import { expect, test } from 'vitest'
import { plainStep } from '../kit/node-simulator/package-content.ts'
import { composeStep } from '../../src/packages/step/environment.ts'
import { stepUnitRequest } from '../../src/packages/step/unit-request.ts'
import { unitPath } from '../../src/host/systemd/unit-properties.ts'
import { hasBus } from '../sandbox/host-os.ts'
import { useHost } from '../kit/cluster/systemd-host.ts'

const { host, agent, sh } = useHost()

const secret = 'hunter2'
/** Whatever systemd or a shell could take for something else. */
const odd = ` ${secret} $HOME \${HOME} $$ %n %% a;b 'one' "two" \`three\` back\\slash \\x41 äß\n\ttwo lines `
const variables = [
  { name: 'TOKEN', value: secret },
  { name: 'ODD', value: odd },
  { name: 'EMPTY', value: '' },
  { name: 'SPACES', value: `  ${secret}  ` },
  { name: 'EXIT_CODE', value: `${secret} of a name that systemd uses` },
  { name: 'OWN', value: `${secret} of the Skyhook` },
]
const names = ['TOKEN', 'ODD', 'EMPTY', 'SPACES', 'EXIT_CODE', 'OWN']
const copyDir = '/opt/probe'

async function runStep(id: string, isSelinuxEnforcing: boolean): Promise<string> {
  const step = plainStep('run.sh', {
    arguments: ['plain', ...names.map((name) => `env:${name}`), '$TOKEN', '${TOKEN}'],
    env: { OWN: 'of the step' },
  })
  const instance = { skyhook: 's', skyhookUid: 'u', generation: 1, name: 'p', version: '1' }
  const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
  const config = { packageName: 'p', packageVersion: '1', expectedConfigFiles: [], modes: { apply: [step] } }
  const previousVersion = 'unknown'
  const composed = composeStep({ config, mode: 'apply', step, instance, folders, variables, previousVersion })
  if (composed.outcome === 'missing') return expect.unreachable('every variable is there')
  const unit = `skyhookd-probe-${id}.service`
  const request = stepUnitRequest({
    attempt: { id, unit, mode: 'apply' },
    instance,
    step,
    composed,
    copyDir,
    logs: { stdout: `/var/log/${id}`, stderr: `/var/log/${id}.err` },
    properties: {},
    stopTimeoutMs: 2_000,
    isSelinuxEnforcing,
  })
  await agent.start(request)
  await expect.poll(() => sh(`cat /var/log/${id} 2>/dev/null || true`)).toContain('end of the arguments')
  return unit
}

test.each([
  ['directly', 'direct', false],
  ['through env', 'env', true],
])('a secret in the arguments of a step that starts %s reaches the step alone', async (_, id, isSelinuxEnforcing) => {
  await host.root.mkdirp(`${copyDir}/skyhook_dir`)
  const script =
    '#!/bin/sh\nfor argument in "$@"; do printf "[%s]\\n" "$argument"; done\n' +
    'echo "EXIT_CODE is [$EXIT_CODE], OWN is [$OWN]"; echo end of the arguments; exec sleep 60\n'
  await host.root.writeFile(`${copyDir}/skyhook_dir/run.sh`, script, 0o755)
  const unit = await runStep(id, isSelinuxEnforcing)
  const expected = ['plain', ...variables.map(({ value }) => value), '$TOKEN', '${TOKEN}']
  const output = (await host.root.readFile(`/var/log/${id}`)).toString()
  expect(output).toBe(
    expected.map((argument) => `[${argument}]\n`).join('') +
      `EXIT_CODE is [${secret} of a name that systemd uses], OWN is [of the step]\nend of the arguments\n`,
  )

  const asNobody = async (command: string): Promise<string> =>
    await sh(`setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '${command}' 2>&1 || true`)
  const path = unitPath(unit)
  const shown = [
    await asNobody(`systemctl show --all ${unit}`),
    await asNobody(`busctl introspect org.freedesktop.systemd1 ${path}`),
    await asNobody(`busctl get-property org.freedesktop.systemd1 ${path} org.freedesktop.systemd1.Service ExecStart`),
    await asNobody(`systemctl cat ${unit}`),
    await asNobody(`cat /run/systemd/transient/${unit}; cat /run/skyhook/*`),
    await sh(`journalctl --no-pager -o verbose -u ${unit}`),
  ]
  if (hasBus) {
    expect(shown[0]).toContain('ExecStart=')
    expect(shown[2]).toContain('run.sh')
  }
  expect(shown[4]).toContain('Permission denied')
  expect(shown.join('\n')).not.toContain(secret)
  await agent.units.stop(unit)
  expect(await agent.awaitEnd({ id, unit })).toMatchObject({ state: 'ended' })
})
