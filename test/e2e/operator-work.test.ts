/** Agents that start on a host where the operator was at work: its pod ends first, and nothing complete runs again. */
import { expect, onTestFinished, test } from 'vitest'
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import { withoutAgents } from '../kit/cluster/agents.ts'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { ignoreNotFound, patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import {
  journaled,
  journalOf,
  manifest,
  onceEach,
  publishedState,
  shellscript,
  withoutTimes,
} from '../kit/cluster/skyhooks.ts'
import { workloadImage } from '../kit/cluster/workloads.ts'

const cluster = useCluster()
const core = '/api/v1/namespaces/skyhook'

test('an agent waits for a package pod, then rolls out a configuration that the operator had not, and runs nothing else', async () => {
  const { api, history } = cluster
  const node = 'node-1'
  const name = uniqueName('taken')
  const pod = `${core}/pods/${name}-work-1-1-0-config`
  const config = `${core}/configmaps/${name}-work-1.1.0`
  onTestFinished(async () => {
    await ignoreNotFound(api, 'DELETE', pod)
    await ignoreNotFound(api, 'DELETE', config)
    await cluster.remove(name)
  })
  const reason = (view: View) => publishedState(view.nodes.get(node), name).reason
  const work = shellscript(cluster.registry, journaled(name))
  const { version, image } = work
  await withoutAgents(cluster, async () => {
    await cluster.host(node).exec('mkdir', '-p', `/var/lib/skyhook/${name}/flags`)
    const labels = { 'skyhook.nvidia.com/name': name }
    const data = { ...work.configMap, 'config.sh': 'true' } // as before the edit
    const operators = {
      'skyhook.nvidia.com/name': name,
      'skyhook.nvidia.com/Package.Name': 'work',
      'skyhook.nvidia.com/Package.Version': version,
    }
    await api.json('POST', `${core}/configmaps`, {
      body: { metadata: { name: `${name}-work-1.1.0`, labels, annotations: operators }, data },
    })
    const entry = { name: 'work', version, image, stage: 'config', state: 'complete' }
    const annotations = { [nodeStateKey(name)]: JSON.stringify({ [`work|${version}`]: entry }) }
    await patch(api, `${paths.nodes}/${node}`, { metadata: { annotations } })
    const container = { image: workloadImage, imagePullPolicy: 'Never' }
    const spec = {
      nodeName: node,
      terminationGracePeriodSeconds: 0,
      tolerations: [{ operator: 'Exists' }],
      initContainers: [{ ...container, name: 'work-config' }],
      containers: [{ ...container, name: 'pause' }],
    }
    const packageText = JSON.stringify({ name: 'work', version })
    const metadata = {
      name: `${name}-work-1-1-0-config`,
      labels,
      annotations: { 'skyhook.nvidia.com/package': packageText },
    }
    await api.json('POST', `${core}/pods`, { body: { metadata, spec } })
    await cluster.apply(manifest(name, { packages: { work } }), node)
  })

  await history.eventually(`${node} waits for the pod`, (view) => reason(view)?.reason === 'Takeover')
  expect(reason(history.now)?.message).toBe(
    `package pod skyhook/${name}-work-1-1-0-config of the operator is at work: wait until it has ended, then delete it`,
  )
  expect(await cluster.host(node).exists(journalOf(name))).toBe(false)
  await api.json('DELETE', pod)
  await history.eventually(`${node} is complete`, (view) => isCompleteOn(view, name, [node]))
  expect(withoutTimes(await cluster.host(node).lines(journalOf(name)))).toEqual(onceEach('config', 'config_check'))
})
