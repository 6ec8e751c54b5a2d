import { describe, expect, test } from 'vitest'
import type { Interrupt, PackageSpec, SkyhookSpec } from '../schemas/skyhook.ts'
import { podInTheWay } from './disruption.ts'
import { NodeModel, simplePackage } from './node-model.ts'
import type { Pod } from './pods.ts'

const pkg = (interrupt?: Interrupt, change: Partial<PackageSpec> = {}): PackageSpec => ({
  version: '1.0.0',
  image: 'r/pkg',
  ...(interrupt && { interrupt }),
  ...change,
})
const cron: Interrupt = { type: 'service', services: ['cron'] }
const reboot: Interrupt = { type: 'reboot' }
const pod = (name: string, labels: Record<string, string> = {}): Pod => ({
  metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: '1', labels },
  status: { phase: 'Running' },
})
const cordoned = (node: NodeModel): boolean => node.node.spec?.unschedulable === true
const marks = (node: NodeModel): string[] =>
  Object.keys(node.node.metadata.annotations ?? {}).filter((key) => /cordon|keepOff|autoscaler|karpenter/.test(key))
const lines = (node: NodeModel, mode: string): string[] => node.ran.filter((line) => line.split(' ')[1] === mode)

describe('a package with an interrupt', () => {
  test('cordons, drains, applies, interrupts, checks and goes back to service', () => {
    const node = new NodeModel()
    node.pods = [pod('web')]
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settleOver(5_000)
    expect(node.evicted).toEqual(['web'])
    expect(node.interrupted).toEqual(['service cron'])
    expect(node.state()).toEqual(['a|1.0.0: post-interrupt/complete'])
    expect([node.status(), cordoned(node), marks(node), node.slots]).toEqual(['complete', false, [], []])
    expect(lines(node, 'post-interrupt')).toHaveLength(1)
  })

  test('shows its conditions beside the cordon, in changes of their own', () => {
    const node = new NodeModel()
    const conditions = (): string[] => (node.node.status?.conditions ?? []).map(({ type, status }) => `${type.split('/').at(-1)} ${status}`)
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settle()
    expect([cordoned(node), conditions()]).toEqual([true, expect.arrayContaining(['NotReady True', 'Erroring False'])])
    node.finishHanging('a')
    node.settleOver(5_000)
    expect([cordoned(node), conditions()]).toEqual([false, expect.arrayContaining(['NotReady False', 'Erroring False'])])
  })

  test('runs nothing before the node is empty, names the pod that holds it up, and goes on when it may', () => {
    const node = new NodeModel()
    node.pods = [pod('cart')]
    node.refuse.add('cart')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settleOver(9_000)
    expect([node.ran, node.status(), cordoned(node)]).toEqual([[], 'in_progress', true])
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({
      reason: 'DrainBlocked',
      message: 'pod shop/cart (PDB shop/cart: 0 allowed)',
    })
    expect(node.slots[0]?.phase).toBe('draining')
    node.refuse.clear()
    node.settleOver(10_000)
    expect(node.status()).toBe('complete')
  })

  test('waits for protected pods without evicting anything', () => {
    const node = new NodeModel()
    node.pods = [pod('training', { workload: 'never' }), pod('web')]
    node.apply('s', { podNonInterruptLabels: { matchLabels: { workload: 'never' } }, packages: { a: pkg(cron) } })
    node.settleOver(3_000)
    expect([node.evicted, node.ran, node.reason(), cordoned(node)]).toEqual([[], [], 'ProtectedPods', true])
    node.pods = [pod('web')]
    node.settleOver(5_000)
    expect([node.evicted, node.status()]).toEqual([['web'], 'complete'])
  })

  test('does not hold back packages without one', () => {
    const node = new NodeModel()
    node.pods = [pod('cart')]
    node.refuse.add('cart')
    node.apply('s', { packages: { a: pkg(cron), b: pkg() } })
    node.settleOver(3_000)
    expect(node.state()).toEqual(['b|1.0.0: config/complete'])
  })

  test('is not cordoned for before its image is there', () => {
    const node = new NodeModel()
    node.images.set('r/pkg:1.0.0', 'no such image')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settleOver(3_000)
    expect([cordoned(node), node.slots, node.reason()]).toEqual([false, [], 'ImagePull'])
  })

  test('a pod that appears before the interrupt is drained first', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settle()
    node.pods = [pod('late')]
    node.refuse.add('late')
    node.finishHanging('a')
    node.settleOver(3_000)
    expect([node.interrupted, node.reason()]).toEqual([[], 'DrainBlocked'])
    node.refuse.clear()
    node.settleOver(10_000)
    expect([node.interrupted, node.status()]).toEqual([['service cron'], 'complete'])
  })

  test('a node that an administrator cordoned before stays cordoned', () => {
    const node = new NodeModel()
    node.node = { ...node.node, spec: { unschedulable: true, taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] } }
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settleOver(5_000)
    expect([node.status(), cordoned(node), marks(node)]).toEqual(['complete', true, []])
  })

  test('uncordoned by somebody during the hold: cordoned again, and schedulable in the end', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.node = { ...node.node, spec: { unschedulable: true } }
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settle()
    node.node = { ...node.node, spec: { unschedulable: false } }
    node.settle()
    expect(cordoned(node)).toBe(true)
    node.finishHanging('a')
    node.settleOver(5_000)
    expect([node.status(), cordoned(node)]).toEqual(['complete', false])
  })

  test('uncordoned by somebody is one fact, however often it is decided before our cordon is there', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settle()
    for (const _ of [1, 2, 3]) {
      node.events.length = 0
      node.node = { ...node.node, spec: { unschedulable: false } }
      node.holdPatches = true
      for (let pass = 0; pass < 5; pass++) node.step()
      node.holdPatches = false
      node.settle()
      expect(node.events).toEqual([{ type: 'cordonForeign', skyhook: 's', unschedulable: false }])
      expect([cordoned(node), node.annotation('cordonedBefore')]).toEqual([true, 'false'])
    }
    node.finishHanging('a')
    node.settleOver(5_000)
    expect([node.status(), cordoned(node)]).toEqual(['complete', false])
  })

  test('uncordoned again and again: after the third time in five minutes at most once a minute', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settle()
    let cordonings = 0
    for (let second = 0; second < 60; second++) {
      node.node = { ...node.node, spec: { unschedulable: false } }
      node.settleOver(1_000)
      if (cordoned(node)) cordonings++
    }
    expect(cordonings).toBe(3)
    node.settleOver(60_000)
    expect(cordoned(node)).toBe(true)
  })

  test('keeps autoscalers off meanwhile and gives their annotations back as they were', () => {
    const node = new NodeModel()
    node.edit((annotations) => {
      annotations['karpenter.sh/do-not-disrupt'] = 'false'
    })
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settle()
    expect(node.node.metadata.annotations?.['karpenter.sh/do-not-disrupt']).toBe('true')
    expect(node.node.metadata.annotations?.['cluster-autoscaler.kubernetes.io/scale-down-disabled']).toBe('true')
    node.finishHanging('a')
    node.settleOver(5_000)
    expect(node.node.metadata.annotations?.['karpenter.sh/do-not-disrupt']).toBe('false')
    expect(node.node.metadata.annotations).not.toHaveProperty(['cluster-autoscaler.kubernetes.io/scale-down-disabled'])
  })
})

describe('spec.drain', () => {
  const blockedNode = (drain: SkyhookSpec['drain']): NodeModel => {
    const node = new NodeModel()
    node.pods = [pod('cart')]
    node.refuse.add('cart')
    node.apply('s', { ...(drain && { drain }), packages: { a: pkg(cron) } })
    return node
  }

  test('gives the slot to others after ten minutes by default, keeps the reason, and tries again', () => {
    const node = blockedNode(undefined)
    node.settleOver(595_000)
    expect([cordoned(node), node.slots.length]).toEqual([true, 1])
    node.settleOver(10_000)
    expect([cordoned(node), marks(node), node.slots.length, node.status(), node.reason()]).toEqual([
      false,
      [],
      0,
      'waiting',
      'DrainBlocked',
    ])
    node.settleOver(62_000)
    expect([cordoned(node), node.slots.length]).toEqual([true, 1])
    node.refuse.clear()
    node.settleOver(10_000)
    expect(node.status()).toBe('complete')
  })

  test('yieldAfterSeconds 0 never gives it up', () => {
    const node = blockedNode({ yieldAfterSeconds: 0 })
    node.settleOver(3_600_000)
    expect([cordoned(node), node.slots.length]).toEqual([true, 1])
  })

  test('is not given up once something on the host is half changed', () => {
    const node = blockedNode({ yieldAfterSeconds: 30 })
    node.pods = []
    node.hangs.add('a')
    node.settle()
    node.pods = [pod('cart')]
    node.finishHanging('a')
    node.settleOver(120_000)
    expect([cordoned(node), node.slots.length, node.reason()]).toEqual([true, 1, 'DrainBlocked'])
  })

  test('onTimeout release gives up after timeoutSeconds', () => {
    const node = blockedNode({ timeoutSeconds: 20, onTimeout: 'release' })
    node.settleOver(22_000)
    expect([cordoned(node), node.slots.length]).toEqual([false, 0])
  })

  test('onTimeout delete asks no budget after timeoutSeconds, but never for protected pods', () => {
    const node = blockedNode({ timeoutSeconds: 20, onTimeout: 'delete' })
    node.settleOver(15_000)
    expect(node.evicted).toEqual([])
    node.settleOver(15_000)
    expect([node.evicted, node.status()]).toEqual([['cart'], 'complete'])
  })

  test('cordon late: no slot and no cordon until no protected pod runs', () => {
    const node = new NodeModel()
    node.pods = [pod('training', { workload: 'never' })]
    node.apply('s', {
      drain: { cordon: 'late' },
      podNonInterruptLabels: { matchLabels: { workload: 'never' } },
      packages: { a: pkg(cron) },
    })
    node.settleOver(3_000)
    expect([cordoned(node), node.slots.length, node.reason(), node.status()]).toEqual([false, 0, 'ProtectedPods', 'waiting'])
    node.pods = []
    node.settleOver(5_000)
    expect(node.status()).toBe('complete')
  })

  test('singleNode skip evicts nothing where pods have nowhere to go', () => {
    const node = new NodeModel()
    node.pods = [pod('cart')]
    node.apply('s', { drain: { singleNode: 'skip' }, packages: { a: pkg(cron) } })
    node.settleOver(5_000)
    expect([node.evicted, node.interrupted, node.status()]).toEqual([[], ['service cron'], 'complete'])
  })
})

describe('the last look at the pods before an interrupt', () => {
  const [web, training] = [pod('web'), pod('training', { workload: 'never' })]
  const never = { podNonInterruptLabels: { matchLabels: { workload: 'never' } } }
  const alone: SkyhookSpec = { ...never, drain: { singleNode: 'skip' } }

  test.each<[string, SkyhookSpec, boolean | undefined, Pod | undefined]>([
    ['a pod that came', never, false, web],
    ['nothing on the only node, where drains are skipped there', alone, true, undefined],
    ['a pod that came where there are other nodes', alone, false, web],
    ['a pod that came while that is not known', alone, undefined, web],
  ])('finds %s', (_, spec, singleNode, found) => {
    const cluster = { skipNamespaces: [], singleNode }
    expect(podInTheWay([web], spec, cluster)).toBe(found)
    expect(podInTheWay([web, training], spec, cluster)).toBe(training) // protected everywhere
    expect(podInTheWay([], spec, cluster)).toBeUndefined()
  })
})

describe('interrupts', () => {
  test('are merged: a reboot covers everything', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg(cron), b: pkg(reboot), c: pkg({ type: 'noop' }) } })
    node.settleOver(30_000)
    expect(node.interrupted).toEqual(['reboot'])
    expect(lines(node, 'post-interrupt')).toHaveLength(3)
    expect(node.status()).toBe('complete')
  })

  test('are merged: services are united', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg(cron), b: pkg({ type: 'service', services: ['cron', 'rsyslog'] }) } })
    node.settleOver(5_000)
    expect(node.interrupted).toEqual(['service cron rsyslog'])
  })

  test('wait for siblings at work', () => {
    const node = new NodeModel()
    node.hangs.add('b')
    node.apply('s', { packages: { a: pkg(cron), b: pkg() } })
    node.settleOver(2_000)
    expect([node.interrupted, node.state()[0]]).toEqual([[], 'a|1.0.0: config/complete'])
    node.finishHanging('b')
    node.settleOver(5_000)
    expect(node.interrupted).toHaveLength(1)
  })

  test('do not wait for a sibling that keeps failing', () => {
    const node = new NodeModel()
    node.exits.set('b apply', 1)
    node.apply('s', { packages: { a: pkg(cron), b: pkg() } })
    node.settleOver(4_000)
    expect(node.interrupted).toEqual([])
    node.settleOver(30_000)
    expect(node.interrupted).toEqual(['service cron'])
    expect(node.status()).toBe('erroring')
  })

  test('chained by dependsOn come one after another', () => {
    const node = new NodeModel()
    node.apply('s', {
      packages: { a: pkg(reboot), b: pkg(reboot, { dependsOn: { a: '1.0.0' } }), c: pkg(cron, { dependsOn: { b: '1.0.0' } }) },
    })
    node.settleOver(30_000)
    expect([node.interrupted, node.status()]).toEqual([['reboot', 'reboot', 'service cron'], 'complete'])
  })

  test('four reboots in a chain are four reboots, each after the stages of its package, and no loop', () => {
    const node = new NodeModel()
    const after = (name: string): Partial<PackageSpec> => ({ dependsOn: { [name]: '1.0.0' } })
    node.apply('s', { packages: { a: pkg(reboot), b: pkg(reboot, after('a')), c: pkg(reboot, after('b')), d: pkg(reboot, after('c')) } })
    node.settleOver(60_000)
    expect([node.interrupted, node.status(), cordoned(node), node.slots]).toEqual([Array(4).fill('reboot'), 'complete', false, []])
    const stages = node.ran.filter((line) => !line.includes('-check')).map((line) => line.split(' ').slice(0, 2).join(' '))
    expect(stages).toEqual(['a', 'b', 'c', 'd'].flatMap((name) => ['apply', 'config', 'post-interrupt'].map((stage) => `${name} ${stage}`)))
  })

  test('that fail are tried again, and fail only the packages that named the service', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('service', { state: 'failed', message: 'foo.service: NoSuchUnit', services: ['foo'] })
    node.apply('s', { packages: { a: pkg(cron), b: pkg({ type: 'service', services: ['foo'] }) } })
    node.settleOver(2_000)
    expect(node.state()).toEqual(['a|1.0.0: post-interrupt/complete', 'b|1.0.0: interrupt/erroring'])
    expect(node.annotation('reason_s')).toContain('foo.service: NoSuchUnit')
    node.interruptAnswers.clear()
    node.settleOver(10_000)
    expect(node.status()).toBe('complete')
  })

  test('that fail are corrected by an edit of the spec, or given up by it', () => {
    for (const [corrected, interrupted] of [
      [cron, ['service cron']],
      [undefined, []],
    ] as const) {
      const node = new NodeModel()
      node.interruptAnswers.set('service', { state: 'failed', message: 'foo.service: NoSuchUnit', services: ['foo'] })
      node.apply('s', { packages: { a: pkg({ type: 'service', services: ['foo'] }) } })
      node.settleOver(2_000)
      expect([node.status(), node.interrupted]).toEqual(['erroring', []])
      node.interruptAnswers.clear()
      node.apply('s', { packages: { a: pkg(corrected) } })
      node.settle()
      expect([node.interrupted, node.status(), cordoned(node), node.slots]).toEqual([interrupted, 'complete', false, []])
      expect(lines(node, 'apply')).toHaveLength(1)
    }
  })

  test('asked for again by setting the stage in the annotation are done again under a slot, on a drained node', () => {
    for (const [interrupt, expected] of [
      [cron, ['service cron', 'service cron']],
      [undefined, []],
    ] as const) {
      const node = new NodeModel()
      node.apply('s', { packages: { a: pkg(interrupt) } })
      node.settleOver(3_000)
      node.pods = [pod('web')]
      node.edit((annotations) => {
        const state = JSON.parse(annotations['skyhook.nvidia.com/nodeState_s'] ?? '') as Record<string, object>
        state['a|1.0.0'] = { ...state['a|1.0.0'], stage: 'interrupt', state: 'in_progress' }
        annotations['skyhook.nvidia.com/nodeState_s'] = JSON.stringify(state)
      })
      node.settleOver(5_000)
      expect([node.interrupted, node.status(), cordoned(node), node.slots]).toEqual([expected, 'complete', false, []])
      expect(node.evicted).toEqual(interrupt ? ['web'] : [])
      expect(lines(node, 'apply')).toHaveLength(1)
    }
  })

  test('whose last conditions fail did nothing and are decided anew', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('service', { state: 'aborted', why: 'a pod came' })
    node.apply('s', { packages: { a: pkg(cron) } })
    for (let round = 0; round < 40; round++) node.step()
    expect([node.interrupted, node.events.some(({ type }) => type === 'stageFailed')]).toEqual([[], false])
    node.interruptAnswers.clear()
    node.settleOver(5_000)
    expect([node.interrupted, node.status()]).toEqual([['service cron'], 'complete'])
  })

  test('follow a config change only where configInterrupts match the changed keys', () => {
    for (const [key, expected] of [
      ['vars.sh', ['service cron']],
      ['other', []],
    ] as const) {
      const node = new NodeModel()
      const configInterrupts = { '*.sh': cron }
      node.apply('s', { packages: { a: pkg(undefined, { configInterrupts, configMap: { [key]: '1' } }) } })
      node.settleOver(3_000)
      expect(node.interrupted).toEqual([])
      node.apply('s', { packages: { a: pkg(undefined, { configInterrupts, configMap: { [key]: '2' } }) } })
      node.settleOver(5_000)
      expect(node.interrupted).toEqual(expected)
      expect([node.status(), cordoned(node)]).toEqual(['complete', false])
    }
  })

  test('added to or removed from a complete package run nothing', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg() } })
    node.settleOver(3_000)
    node.apply('s', { packages: { a: pkg(reboot) } })
    node.settleOver(3_000)
    expect([node.interrupted, node.status()]).toEqual([[], 'complete'])
  })

  test('are not owed after an uninstall', () => {
    const node = new NodeModel()
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settleOver(5_000)
    node.apply('s', { packages: {} })
    node.settleOver(5_000)
    expect([node.interrupted, node.status(), cordoned(node)]).toEqual([['service cron'], 'complete', false])
  })
})

describe('a reboot', () => {
  test('is done when the boot id changed, also if the answer was lost', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: 'the connection ended' })
    node.apply('s', { packages: { a: pkg(reboot) } })
    node.settleOver(3_000)
    expect([node.state(), node.reason()]).toEqual([['a|1.0.0: interrupt/in_progress'], 'RebootPending'])
    node.reboot()
    node.settleOver(5_000)
    expect([node.interrupted.length, node.status()]).toEqual([1, 'complete'])
  })

  test('that never comes is a failure after five minutes, and asked for again', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: 'no reply' })
    node.apply('s', { packages: { a: pkg(reboot) } })
    node.settleOver(301_000)
    expect(node.annotation('reason_s')).toContain('the host did not reboot')
    node.settleOver(10_000)
    expect(node.interrupted).toHaveLength(2)
  })

  test('takes the bus away with it, which is no reason to call the node blocked', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'running' })
    node.apply('s', { packages: { a: pkg(reboot) } })
    node.settleOver(3_000)
    node.host = { state: 'unusable', reason: 'HostUnreachable', message: 'the system bus does not answer' }
    node.settleOver(3_000)
    expect([node.status(), node.reason()]).toEqual(['in_progress', 'RebootPending'])
  })

  test.each([
    ['a later', 'WaitingForPriority'],
    ['an earlier', 'RebootPending'],
  ])('takes the bus away, which is no trouble of %s Skyhook that waits', (order, reason) => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: 'accepted' })
    node.apply('s', { priority: 200, packages: { a: pkg(reboot) } })
    node.settleOver(1_000)
    node.apply('other', { priority: order === 'a later' ? 300 : 100, packages: { b: pkg() } })
    node.host = { state: 'unusable', reason: 'HostUnreachable', message: "the host's system bus does not answer" }
    node.settleOver(2_000)
    expect([node.reason('other'), node.status('other')]).toEqual([reason, 'waiting'])
    node.host = { state: 'usable' }
    node.reboot()
    node.settleOver(20_000)
    expect([node.status('s'), node.status('other')]).toEqual(['complete', 'complete'])
  })

  test('refused says so with its reason and keeps the slot', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'refused', message: 'blocked by backup (nightly)' })
    node.apply('s', { packages: { a: pkg(reboot) } })
    node.settleOver(2_000)
    expect([node.status(), node.reason(), node.slots.length]).toEqual(['erroring', 'RebootRefused', 1])
  })

  test('of the same spec happens at most three times', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'refused', message: 'no' })
    node.apply('s', { packages: { a: pkg(reboot) } })
    node.settleOver(400_000)
    expect(node.reason()).toBe('RebootLoop')
    expect([node.status(), node.slots.length, node.annotation('journal_s')?.includes('/a":3')]).toEqual(['erroring', 1, true])
  })

  test('is followed by service only when the node reports Ready from the new boot', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('reboot', { state: 'unknown', message: '' })
    node.apply('s', { packages: { a: pkg(reboot) } })
    node.settle()
    node.powerCut() // up again, the kubelet has not reported yet
    node.settleOver(5_000)
    expect([node.status(), node.reason(), cordoned(node)]).toEqual(['in_progress', 'NodeNotReady', true])
    node.reportReady('False')
    node.settleOver(1_000)
    expect(cordoned(node)).toBe(true)
    node.reportReady()
    node.settleOver(1_000)
    expect([node.status(), cordoned(node)]).toEqual(['complete', false])
  })

  test('is not followed by service when the node is lost again before the patch arrives', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settle()
    node.finishHanging('a')
    node.holdPatches = true
    for (let round = 0; round < 50; round++) node.step()
    expect([node.journal.skyhooks['s']?.lifecycle, cordoned(node)]).toEqual([undefined, true]) // complete, and nobody knows yet
    node.reportReady('False')
    node.holdPatches = false
    node.settleOver(2_000)
    expect([node.status(), node.reason(), cordoned(node), node.slots.length]).toEqual(['in_progress', 'NodeNotReady', true, 1])
    node.reportReady()
    node.settleOver(2_000)
    expect([node.status(), cordoned(node), node.slots]).toEqual(['complete', false, []])
  })

  test('of the container runtime: Ready has to hold for ten seconds', () => {
    const node = new NodeModel()
    node.interruptAnswers.set('service', { state: 'done', restartedRuntime: true })
    node.apply('s', { packages: { a: pkg({ type: 'service', services: ['containerd'] }) } })
    node.settleOver(5_000)
    expect([node.reason(), cordoned(node)]).toEqual(['NodeNotReady', true])
    node.settleOver(8_000)
    expect(node.status()).toBe('complete')
  })
})

describe('the runtime-required taint', () => {
  const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
  const tainted = (): NodeModel => {
    const node = new NodeModel()
    node.node = { ...node.node, spec: { taints: [taint, { key: 'x', effect: 'PreferNoSchedule' }] } }
    return node
  }

  test('goes when every required Skyhook that selects the node is complete, and other taints stay', () => {
    const node = tainted()
    node.hangs.add('b')
    node.apply('one', { runtimeRequired: true, packages: { a: pkg() } })
    node.apply('two', { runtimeRequired: true, packages: { b: pkg() } })
    node.settleOver(3_000)
    expect(node.node.spec?.taints).toHaveLength(2)
    node.finishHanging('b')
    node.settleOver(5_000)
    expect(node.node.spec?.taints).toEqual([{ key: 'x', effect: 'PreferNoSchedule' }])
  })

  test('stays when no required Skyhook selects the node', () => {
    const node = tainted()
    node.apply('s', { packages: { a: pkg() } })
    node.settleOver(3_000)
    expect([node.status(), node.node.spec?.taints?.length]).toEqual(['complete', 2])
  })

  test('is put on a node that was never seen, where a Skyhook asks for it', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { runtimeRequired: true, autoTaintNewNodes: true, packages: { a: pkg() } })
    node.settle()
    expect(node.node.spec?.taints).toEqual([taint])
    node.finishHanging('a')
    node.settleOver(5_000)
    expect(node.node.spec?.taints).toEqual([])
  })
})

describe('a cordon that must not be left behind', () => {
  test('goes with a Skyhook that is gone', () => {
    const node = new NodeModel()
    node.pods = [pod('cart')]
    node.refuse.add('cart')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settleOver(2_000)
    expect(cordoned(node)).toBe(true)
    node.views.delete('s')
    node.settleOver(2_000)
    expect([cordoned(node), marks(node), node.slots]).toEqual([false, [], []])
  })

  test('goes, before the slot, with a node that leaves the selector', () => {
    const node = new NodeModel({ pool: 'x' })
    node.pods = [pod('cart')]
    node.refuse.add('cart')
    node.apply('s', { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: pkg(cron) } })
    node.settleOver(2_000)
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
    node.settleOver(2_000)
    expect([cordoned(node), marks(node), node.slots]).toEqual([false, [], []])
  })

  test('survives a reset of the annotation only as long as the work needs it', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settle()
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    node.hangs.clear()
    node.settleOver(5_000)
    expect([node.status(), cordoned(node)]).toEqual(['complete', false])
  })

  test('a package image without post-interrupt steps completes as well', () => {
    const node = new NodeModel()
    node.images.set('r/pkg:1.0.0', simplePackage({ apply: [], 'apply-check': [] }))
    node.apply('s', { packages: { a: pkg(cron) } })
    node.settleOver(5_000)
    expect([node.status(), node.interrupted]).toEqual(['complete', ['service cron']])
  })
})
