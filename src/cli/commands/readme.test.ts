/** The tool's output in README.md: `make generate` puts these files into the page. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type FleetScene, pod, specOf, startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import { commandLine } from '../../../test/kit/tool/command-line.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { skyhookTypeMeta } from '../../schemas/api.ts'

const spec = (version: string) =>
  specOf({
    packages: {
      kernel: { version, image: 'registry.test/kernel', interrupt: { type: 'reboot' } },
    },
  })

async function completedScene(): Promise<FleetScene> {
  const nodes = [{ name: 'host1', pods: [pod('shop')] }, { name: 'host2' }, { name: 'host3' }]
  const scene = startScene({ nodes, skyhooks: { tuning: spec('1.0.0') } })
  await scene.until(
    () => ['node1', 'node2', 'node3'].every((name) => scene.annotation(name, statusKey('tuning')) === 'complete'),
    'every node is complete',
  )
  await scene.pass(8_000)
  return scene
}

const fileOf = (name: string): string => join(import.meta.dirname, 'goldens', name)

test('the README has the output of the tool for an upgrade that reboots, before it and while it waits', async () => {
  const scene = await completedScene()
  const { clock, admin } = scene.simulation
  const tool = commandLine({ clock, client: scene.transport })
  const file = JSON.stringify({ ...skyhookTypeMeta, metadata: { name: 'tuning' }, spec: spec('1.1.0') })
  const readFile = async (): Promise<string> => await Promise.resolve(file)
  const plan = await tool.run('plan -f tuning.yaml -n skyhook', { readFile })
  await expect(plan.stdout).toMatchFileSnapshot(fileOf('readme-plan.txt'))

  admin.send('POST', '/apis/policy/v1/namespaces/apps/poddisruptionbudgets', {
    metadata: { name: 'shop' },
    spec: { selector: {}, maxUnavailable: 0 },
  })
  scene.editSkyhook('tuning', { spec: spec('1.1.0') })
  await scene.until(() => scene.annotation('node1', statusKey('tuning')) === 'in_progress', 'node1 drains')
  await scene.pass(150_000)
  const explain = await tool.run('explain tuning -n skyhook')
  await expect(explain.stdout).toMatchFileSnapshot(fileOf('readme-explain.txt'))
})
