/**
 * The scenarios of the original operator's own test suites (C) and of its later releases (N), one row each, with their
 * status here. A row differs if this design lacks its subject or deliberately behaves otherwise.
 */

/**
 * What a scenario is about: objects of the API alone, also evidence by package pods, files of the host, pods
 * themselves, the chart.
 */
export type RowClass = 'API' | 'MIX' | 'host' | 'POD' | 'DEPLOY' | 'none'

export type Row = {
  readonly id: string
  /** Suite and folder in the original's repository. */
  readonly name: string
  readonly class: RowClass
  /** What must hold, as the test's name. */
  readonly claim: string
  readonly status: 'tested' | { readonly differs: string }
  /** What the original asserts and this test does not, with the reason. */
  readonly apart?: string
}

const metrics = 'fleet metrics are not compared'
const configMaps = 'package files are in the copy dir, there are no ConfigMaps for them'

export const rows: readonly Row[] = [
  {
    id: 'C01',
    name: 'skyhook/simple-skyhook',
    class: 'MIX',
    claim:
      'three packages run in the order of their dependencies, by version whatever the tag says, within their limits',
    status: 'tested',
    apart: `${metrics}; ${configMaps}; a LimitRange has nothing to limit`,
  },
  {
    id: 'C02',
    name: 'skyhook/simple-update-skyhook',
    class: 'API',
    claim: 'added packages run, and complete packages do not run again',
    status: 'tested',
    apart: configMaps,
  },
  {
    id: 'C03',
    name: 'skyhook/depends-on',
    class: 'MIX',
    claim: 'independent packages run concurrently, and a dependent one after the last step of both',
    status: 'tested',
  },
  {
    id: 'C04',
    name: 'skyhook/failure-skyhook',
    class: 'API',
    claim: 'a failing package is retried and reported on Node and Skyhook, and its dependencies stay complete',
    status: 'tested',
    apart: metrics,
  },
  {
    id: 'C06',
    name: 'skyhook/cleanup-pods',
    class: 'MIX',
    claim:
      'a configMap change runs config alone, a removed annotation restarts only that node, and a step gets time to end',
    status: 'tested',
  },
  {
    id: 'C07',
    name: 'skyhook/pod-finalizer',
    class: 'POD',
    claim: 'an unexpected package pod is recorded on the node',
    status: {
      differs: 'there are no package pods; the host keeps its own journal, and a forged pod changes nothing',
    },
  },
  {
    id: 'C08',
    name: 'skyhook/hello-world',
    class: 'none',
    claim: 'a ConfigMap is a ConfigMap',
    status: { differs: 'nothing to port: it asserts nothing about the product and is skipped there' },
  },
  {
    id: 'C09',
    name: 'skyhook/config-skyhook',
    class: 'MIX',
    claim: 'the changed keys decide which interrupt runs, if any',
    status: 'tested',
    apart:
      'a change during the first installation is absorbed without an interrupt until config starts, and has one ' +
      'afterwards',
  },
  {
    id: 'C10',
    name: 'skyhook/interrupt',
    class: 'MIX',
    claim:
      'a node is cordoned, waits for protected pods and only then drains others, while packages without ' +
      'interrupt proceed',
    status: 'tested',
    apart:
      'work starts when the containers of the ordinary pod have ended; agentImageOverride is accepted without effect',
  },
  {
    id: 'C11',
    name: 'skyhook/interrupt-grouping',
    class: 'MIX',
    claim: 'the interrupts of two packages become one with the union of their services',
    status: 'tested',
    apart: configMaps,
  },
  {
    id: 'C12',
    name: 'skyhook/uninstall-upgrade-skyhook',
    class: 'MIX',
    claim: 'one change upgrades, downgrades and removes a package each, and the next removes all',
    status: 'tested',
    apart: `the lower version appears when its own work starts, not as uninstall/skipped before; ${configMaps}`,
  },
  {
    id: 'C13',
    name: 'skyhook/delete-skyhook',
    class: 'API',
    claim: 'a deleted Skyhook leaves nothing on the Node and needs no finalizer',
    status: 'tested',
    apart: metrics,
  },
  {
    id: 'C14',
    name: 'skyhook/skyhook-upgrade',
    class: 'API',
    claim: 'work of the original is adopted from its older annotation and not repeated',
    status: 'tested',
  },
  {
    id: 'C15',
    name: 'time_travel_tests/migration_0.5.0',
    class: 'none',
    claim: 'an old release is upgraded in place',
    status: { differs: 'nothing to port: it asserts nothing after the upgrade' },
  },
  {
    id: 'C17',
    name: 'skyhook/strict-order',
    class: 'API',
    claim: 'Skyhooks run in order on each node, where a paused one blocks its successors and a disabled one does not',
    status: 'tested',
    apart: metrics,
  },
  {
    id: 'C18',
    name: 'skyhook/taint-scheduling',
    class: 'API',
    claim: 'an untolerated taint keeps a node out until it is tolerated',
    status: 'tested',
    apart: metrics,
  },
  {
    id: 'C19',
    name: 'skyhook/runtime-required',
    class: 'MIX',
    claim: 'each node loses the runtime-required taint when it completes',
    status: 'tested',
  },
  {
    id: 'C21',
    name: 'deployment-policy/legacy-compatibility',
    class: 'API',
    claim: 'at most interruptionBudget.count nodes work at the same time',
    status: 'tested',
    apart: metrics,
  },
  {
    id: 'C22',
    name: 'deployment-policy/linear-strategy',
    class: 'API',
    claim: 'batches grow by delta, up to the ceiling of their compartment',
    status: 'tested',
    apart: `6 nodes instead of 8; ${metrics}`,
  },
  {
    id: 'C23',
    name: 'deployment-policy/multi-compartment',
    class: 'API',
    claim: 'each compartment has its own ceiling and batches',
    status: 'tested',
    apart: `3 times 2 nodes instead of 5, 6 and 4, with 66 and 100 % instead of 33 and 50 %; ${metrics}`,
  },
  {
    id: 'C25',
    name: 'deployment-policy/batch-state-reset',
    class: 'API',
    claim: 'batch state resets on completion if configured, and the Skyhook decides before the policy',
    status: 'tested',
    apart: '6 nodes instead of 8',
  },
  {
    id: 'C26',
    name: 'cli/lifecycle',
    class: 'API',
    claim: 'pause, resume, disable and enable set and remove their annotations, and only those',
    status: 'tested',
  },
  {
    id: 'C27',
    name: 'cli/node',
    class: 'API',
    claim: 'node list and status show what was done, ignore keeps agents away, reset makes them start over',
    status: 'tested',
  },
  {
    id: 'C28',
    name: 'cli/package',
    class: 'MIX',
    claim: 'package status and logs show a package, a rehearsed rerun changes nothing, and a rerun runs it again',
    status: 'tested',
    apart: 'logs are those of the agents: there are no package pods',
  },
  {
    id: 'C30',
    name: 'cli/deployment-policy',
    class: 'API',
    claim: 'a reset of the batches starts them over',
    status: 'tested',
  },
  {
    id: 'C31',
    name: 'helm/helm-chart-test',
    class: 'DEPLOY',
    claim: 'agents come where the tolerations of the chart let them, and a removed release leaves no stuck Skyhook',
    status: 'tested',
    apart:
      'the chart in its release folder is installed by every test; there is no Deployment and no proxy whose ports, ' +
      'probes and resources could be compared; Skyhooks stay, no hook removes them',
  },
  {
    id: 'C32',
    name: 'helm/helm-node-affinity-test',
    class: 'DEPLOY',
    claim: 'agents run on the nodes that nodeSelector and affinity of the chart both match',
    status: 'tested',
    apart: 'both together are not refused: they mean what they mean for every pod',
  },
  {
    id: 'C33',
    name: 'helm/helm-scale-test',
    class: 'DEPLOY',
    claim: 'limits of the operator by estimated nodes and packages',
    status: {
      differs: 'no central process grows with the fleet; `make measure` measures the footprint per node',
    },
  },
  {
    id: 'C34',
    name: 'helm/helm-template-test',
    class: 'DEPLOY',
    claim: 'roles, definitions, Secrets, tolerations and resources of the chart follow its values',
    status: 'tested',
    apart:
      'nothing is limited, cleaned up by a Job or answered by a webhook, so values about these have no counterpart; ' +
      "test/cluster/operator-values.test.ts has the operator's values one by one",
  },
  {
    id: 'C35',
    name: 'helm/helm-webhook-test',
    class: 'DEPLOY',
    claim: 'an invalid policy is refused, and so is the deletion of one in use',
    status: 'tested',
    apart:
      'a Skyhook may name a policy that does not exist yet and says so; there is no webhook, so its Secret and ' +
      'configurations neither come nor go; more refusals are in test/cluster',
  },
  {
    id: 'C36',
    name: 'operator-agent/simple',
    class: 'host',
    claim: 'logs, flags and history of a real package are on the host where people look for them',
    status: 'tested',
  },
  {
    id: 'C37',
    name: 'operator-agent/interrupt',
    class: 'host',
    claim: 'a noop interrupt leaves its flag on the host',
    status: 'tested',
  },
  {
    id: 'C38',
    name: 'operator-agent/dont_write_logs',
    class: 'host',
    claim: 'a package with SKYHOOK_AGENT_WRITE_LOGS=false has no log folder',
    status: 'tested',
  },
  {
    id: 'C39',
    name: 'operator-agent/reap_old_logs',
    class: 'host',
    claim: 'a failing step is retried until it succeeds, and the newest five logs stay',
    status: 'tested',
    apart: 'three older logs are created before, instead of five failures with their pauses',
  },
  {
    id: 'N01',
    name: 'skyhook/explicit-uninstall',
    class: 'API',
    claim: 'uninstall.apply uninstalls a package that is still listed, with its own configuration and env',
    status: 'tested',
    apart: 'no interrupt follows an uninstall',
  },
  {
    id: 'N02',
    name: 'skyhook/uninstall-mixed-packages',
    class: 'API',
    claim: 'a removed package is uninstalled if it opted in, and keeps its entry if it opted out',
    status: 'tested',
    apart: 'a removed package without a policy is uninstalled, as in v0.15',
  },
  {
    id: 'N03',
    name: 'skyhook/uninstall-on-delete',
    class: 'API',
    claim: 'a deletion of the Skyhook first uninstalls the packages that opted in',
    status: 'tested',
    apart: 'entries of other packages do not outlive the Skyhook on the Node; their files on the host do',
  },
  {
    id: 'N05',
    name: 'skyhook/uninstall-cancel-during-interrupt',
    class: 'API',
    claim: 'an uninstall cannot be cancelled in uninstall-interrupt',
    status: { differs: 'no interrupt follows an uninstall, so there is no such stage' },
  },
  {
    id: 'N07',
    name: 'skyhook/delete-blocked-when-paused',
    class: 'API',
    claim: 'a paused Skyhook that must uninstall is not deleted until it is resumed, and says so',
    status: 'tested',
    apart: 'reported by the condition Stalled with reason DeletionBlocked',
  },
  {
    id: 'N08',
    name: 'skyhook/delete-blocked-when-disabled',
    class: 'API',
    claim: 'a disabled Skyhook that must uninstall is not deleted until it is enabled, and says so',
    status: 'tested',
    apart: 'reported by the condition Stalled with reason DeletionBlocked; N07 checks its Event',
  },
  {
    id: 'N09',
    name: 'skyhook/downgrade-after-uninstall',
    class: 'API',
    claim: 'a downgrade of a package that opted in is refused until it is uninstalled',
    status: { differs: 'nothing is refused: a lower version uninstalls the old one, then applies the new one' },
  },
  {
    id: 'N10',
    name: 'skyhook/downgrade-enabled-false-preserves-state',
    class: 'API',
    claim: 'a downgrade of a package that opted out applies the new version and keeps both entries',
    status: 'tested',
  },
  {
    id: 'N12',
    name: 'skyhook/package-upgrade',
    class: 'API',
    claim: 'a higher version runs upgrade with both versions as arguments, and no apply',
    status: 'tested',
  },
  {
    id: 'N13',
    name: 'skyhook/strict-order (rewritten)',
    class: 'API',
    claim: 'sequencing: all, and nodeOrderOffset',
    status: {
      differs: 'spec.sequencing came after v0.15; order is per node, as `sequencing: node`, and tested by C17',
    },
  },
  {
    id: 'N14',
    name: 'skyhook/simple-skyhook (extended)',
    class: 'API',
    claim: '`kubectl wait --for=condition=Ready` returns when every node is complete',
    status: 'tested',
    apart: 'the reason is Complete, not NodesConverged',
  },
  {
    id: 'N15',
    name: 'cli/reset, helm-webhook (extended)',
    class: 'API',
    claim: 'a reset starts all nodes and the batches over',
    status: 'tested',
    apart: 'refusals of contradictory uninstalls are in test/cluster/definitions.test.ts',
  },
]

/** The name of a row's test. Throws for an id that is not in the table. */
export function row(id: string): string {
  const found = rows.find((one) => one.id === id)
  if (!found) throw new Error(`no row ${id} in the table of scenarios`)
  return `${id} ${found.name.replace(/^.*?\//, '')}: ${found.claim}`
}
