/** What the reference of the fields has beyond the resource definitions. The test validates the examples. */

export type Note = {
  /**
   * YAML in one line, of the object that the field is in: of `spec`, of a package, of a selector, budget or strategy.
   */
  readonly example: string
  /** What an edit of a live object does. Fields without it are edited like the nearest field around them. */
  readonly edit?: string
}

const noEffect = 'none'
const unfinished =
  'no work. While the package is not complete on a node, its stage starts again from the first step. A complete ' +
  'package ' +
  'uses it from its next stage on'
const admission =
  'no work. A larger number lets more nodes start at once. With a smaller one, nodes at work keep their slots, ' +
  'and none ' +
  'starts until fewer are at work'
const waiting = 'no work. Counts at once for nodes that wait or drain'

export const notes: Readonly<Record<string, Note>> = {
  'spec.serial': { example: 'serial: true', edit: 'no work. Counts when the next stage would start' },
  'spec.podNonInterruptLabels': {
    example: 'podNonInterruptLabels: {matchLabels: {workload: never-interrupt}}',
    edit: waiting,
  },
  'spec.nodeSelectors': {
    example: 'nodeSelectors: {matchLabels: {node-role: worker}}',
    edit:
      'a node that is selected now starts under the budget. On a node that is not selected any more, a running step ' +
      'ends, then the agent removes cordon and slot. Nothing is uninstalled; selected again, the node continues',
  },
  'spec.deploymentPolicy': {
    example: 'deploymentPolicy: careful',
    edit: 'no work. Nodes at work finish under the slots they have; the others start by the new budgets',
  },
  'spec.deploymentPolicyOptions': {
    example: 'deploymentPolicyOptions: {resetBatchStateOnCompletion: true}',
    edit: 'no work. Counts at the next completion and the next rollout',
  },
  'spec.deploymentPolicyOptions.resetBatchStateOnCompletion': {
    example: 'deploymentPolicyOptions: {resetBatchStateOnCompletion: true}',
  },
  'spec.interruptionBudget': { example: 'interruptionBudget: {count: 1}', edit: admission },
  'spec.interruptionBudget.percent': { example: 'interruptionBudget: {percent: 10}' },
  'spec.interruptionBudget.count': { example: 'interruptionBudget: {count: 3}' },
  'spec.interruptionBudget.maxCount': { example: 'interruptionBudget: {percent: 10, maxCount: 5}' },
  'spec.packages': {
    example: 'packages: {driver: {version: 3.2.1, image: registry.example.com/packages/driver}}',
    edit: 'a new package starts with apply. A removed one is uninstalled, unless `uninstall.enabled` is false',
  },
  'spec.additionalTolerations': {
    example: 'additionalTolerations: [{key: nvidia.com/gpu, operator: Exists}]',
    edit: 'no work. Counts at once for nodes that have not started; work under way does not look at taints',
  },
  'spec.additionalTolerations[].key': { example: 'additionalTolerations: [{key: nvidia.com/gpu, operator: Exists}]' },
  'spec.additionalTolerations[].operator': { example: 'additionalTolerations: [{operator: Exists}]' },
  'spec.additionalTolerations[].value': { example: 'additionalTolerations: [{key: pool, value: gpu}]' },
  'spec.additionalTolerations[].effect': {
    example: 'additionalTolerations: [{key: pool, operator: Exists, effect: NoSchedule}]',
  },
  'spec.additionalTolerations[].tolerationSeconds': {
    example: 'additionalTolerations: [{key: pool, operator: Exists, tolerationSeconds: 60}]',
    edit: noEffect,
  },
  'spec.runtimeRequired': {
    example: 'runtimeRequired: true',
    edit:
      'no work. With false, nodes on which no other Skyhook requires the taint lose it. With true, nodes that ' +
      'have it ' +
      'keep it until this Skyhook is complete there, and no node gets it',
  },
  'spec.autoTaintNewNodes': {
    example: '{runtimeRequired: true, autoTaintNewNodes: true}',
    edit: 'no work. Counts for Nodes without any annotation `skyhook.nvidia.com/…`: those that register from then on',
  },
  'spec.priority': {
    example: 'priority: 10',
    edit: 'no work. Counts at once for nodes that have not started; a node at work finishes first',
  },
  'spec.drain': { example: 'drain: {cordon: late}', edit: waiting },
  'spec.drain.cordon': { example: 'drain: {cordon: late}' },
  'spec.drain.yieldAfterSeconds': { example: 'drain: {yieldAfterSeconds: 1800}' },
  'spec.drain.timeoutSeconds': { example: 'drain: {timeoutSeconds: 3600, onTimeout: release}' },
  'spec.drain.onTimeout': { example: 'drain: {timeoutSeconds: 3600, onTimeout: release}' },
  'spec.drain.singleNode': { example: 'drain: {singleNode: skip}' },
  'spec.pace': {
    example: 'pace: {minReadySeconds: 60, pauseSeconds: 300}',
    edit: 'no work. Counts at once, also for complete nodes that still keep their slots',
  },
  'spec.pace.minReadySeconds': {
    example: 'pace: {minReadySeconds: 60}',
    edit: 'as for `spec.pace`. Where it was 0 when a node started, DaemonSets are not looked at there',
  },
  'spec.pace.pauseSeconds': { example: 'pace: {pauseSeconds: 300}' },
  'spec.bootstrap': { example: 'bootstrap: {count: 10}', edit: admission },
  'spec.bootstrap.count': { example: 'bootstrap: {count: 10}' },

  'spec.packages.*.name': { example: 'name: driver', edit: noEffect },
  'spec.packages.*.version': {
    example: 'version: 3.2.1',
    edit:
      'a higher version runs upgrade and config. A lower one uninstalls the installed version, then runs apply and ' +
      'config; with `uninstall.enabled: false` apply runs over it',
  },
  'spec.packages.*.image': { example: 'image: registry.example.com:5000/packages/driver', edit: unfinished },
  'spec.packages.*.containerSHA': {
    example: 'containerSHA: sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    edit: unfinished,
  },
  'spec.packages.*.agentImageOverride': { example: 'agentImageOverride: registry.example.com/agent', edit: noEffect },
  'spec.packages.*.interrupt': {
    example: 'interrupt: {type: reboot}',
    edit:
      'no work. Counts on nodes where the package has never been complete, also while its interrupt or ' +
      'post-interrupt ' +
      'fails there; elsewhere from the next version on, or with `when: required` from the next config on',
  },
  'spec.packages.*.interrupt.type': { example: 'interrupt: {type: restartAllServices}' },
  'spec.packages.*.interrupt.services': { example: 'interrupt: {type: service, services: [containerd, kubelet]}' },
  'spec.packages.*.interrupt.when': { example: 'interrupt: {type: reboot, when: required}' },
  'spec.packages.*.dependsOn': {
    example: 'dependsOn: {other: ">=1.0 <2"}',
    edit: "no work. Counts when the package's next stage would start",
  },
  'spec.packages.*.configInterrupts': {
    example: '{configMap: {grub.conf: quiet}, configInterrupts: {grub.conf: {type: reboot}}}',
    edit: 'no work. Counts for the next change of a key',
  },
  'spec.packages.*.configInterrupts.*.type': {
    example: '{configMap: {a.conf: ""}, configInterrupts: {"*.conf": {type: noop}}}',
  },
  'spec.packages.*.configInterrupts.*.services': {
    example: '{configMap: {a.conf: ""}, configInterrupts: {a.conf: {type: service, services: [cron]}}}',
  },
  'spec.packages.*.configInterrupts.*.when': {
    example: '{configMap: {a.conf: ""}, configInterrupts: {a.conf: {type: reboot, when: required}}}',
  },
  'spec.packages.*.configMap': {
    example: 'configMap: {sysctl.conf: vm.swappiness = 10}',
    edit:
      'runs config, and what `configInterrupts` names for the changed keys. A stage that fails runs again with ' +
      'it at once',
  },
  'spec.packages.*.env': {
    example: 'env: [{name: MODE, value: strict}]',
    edit: 'runs config. While the package is not complete on a node, its stage starts again from the first step',
  },
  'spec.packages.*.env[].name': { example: 'env: [{name: MODE, value: strict}]' },
  'spec.packages.*.env[].value': { example: 'env: [{name: HOST, value: a}, {name: URL, value: "https://$(HOST)/"}]' },
  'spec.packages.*.env[].valueFrom': {
    example: 'env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: driver, key: token}}}]',
    edit:
      'as for `spec.packages.*.env`. Another value in the Secret or ConfigMap itself runs nothing; steps that start ' +
      'later get it',
  },
  'spec.packages.*.env[].valueFrom.secretKeyRef': {
    example: 'env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: driver, key: token}}}]',
  },
  'spec.packages.*.env[].valueFrom.secretKeyRef.name': {
    example: 'env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: driver, key: token}}}]',
  },
  'spec.packages.*.env[].valueFrom.secretKeyRef.key': {
    example: 'env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: driver, key: token}}}]',
  },
  'spec.packages.*.env[].valueFrom.secretKeyRef.optional': {
    example: 'env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: driver, key: token, optional: true}}}]',
  },
  'spec.packages.*.env[].valueFrom.configMapKeyRef': {
    example: 'env: [{name: SITE, valueFrom: {configMapKeyRef: {name: sites, key: name}}}]',
  },
  'spec.packages.*.env[].valueFrom.configMapKeyRef.name': {
    example: 'env: [{name: SITE, valueFrom: {configMapKeyRef: {name: sites, key: name}}}]',
  },
  'spec.packages.*.env[].valueFrom.configMapKeyRef.key': {
    example: 'env: [{name: SITE, valueFrom: {configMapKeyRef: {name: sites, key: name}}}]',
  },
  'spec.packages.*.env[].valueFrom.configMapKeyRef.optional': {
    example: 'env: [{name: SITE, valueFrom: {configMapKeyRef: {name: sites, key: name, optional: true}}}]',
  },
  'spec.packages.*.env[].valueFrom.fieldRef': {
    example: 'env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]',
  },
  'spec.packages.*.env[].valueFrom.fieldRef.apiVersion': {
    example: 'env: [{name: NODE, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}}}]',
  },
  'spec.packages.*.env[].valueFrom.fieldRef.fieldPath': {
    example: 'env: [{name: ADDRESS, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]',
  },
  'spec.packages.*.env[].valueFrom.resourceFieldRef': {
    example: 'env: [{name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory}}}]',
  },
  'spec.packages.*.env[].valueFrom.resourceFieldRef.containerName': {
    example: 'env: [{name: CPU, valueFrom: {resourceFieldRef: {containerName: a, resource: limits.cpu}}}]',
    edit: noEffect,
  },
  'spec.packages.*.env[].valueFrom.resourceFieldRef.divisor': {
    example: 'env: [{name: MIB, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}]',
  },
  'spec.packages.*.env[].valueFrom.resourceFieldRef.resource': {
    example: 'env: [{name: CPU, valueFrom: {resourceFieldRef: {resource: requests.cpu}}}]',
  },
  'spec.packages.*.resources': {
    example: 'resources: {cpuRequest: 100m, cpuLimit: 1, memoryRequest: 64Mi, memoryLimit: 1Gi}',
    edit: unfinished,
  },
  'spec.packages.*.resources.cpuRequest': {
    example: 'resources: {cpuRequest: 250m, cpuLimit: 2, memoryRequest: 64Mi, memoryLimit: 1Gi}',
  },
  'spec.packages.*.resources.cpuLimit': {
    example: 'resources: {cpuRequest: 100m, cpuLimit: "0.5", memoryRequest: 64Mi, memoryLimit: 1Gi}',
  },
  'spec.packages.*.resources.memoryRequest': {
    example: 'resources: {cpuRequest: 100m, cpuLimit: 1, memoryRequest: 256Mi, memoryLimit: 1Gi}',
  },
  'spec.packages.*.resources.memoryLimit': {
    example: 'resources: {cpuRequest: 100m, cpuLimit: 1, memoryRequest: 64Mi, memoryLimit: 2Gi}',
  },
  'spec.packages.*.gracefulShutdown': {
    example: 'gracefulShutdown: 1m30s',
    edit: 'no work. Counts for steps that start later. Without it the time is 30 s',
  },
  'spec.packages.*.stageTimeout': { example: 'stageTimeout: 10m', edit: 'no work. Counts for steps that start later' },
  'spec.packages.*.rerunOnRequest': { example: 'rerunOnRequest: {minInterval: 24h}', edit: 'no work. Counts at once' },
  'spec.packages.*.rerunOnRequest.minInterval': { example: 'rerunOnRequest: {minInterval: 24h}' },
  'spec.packages.*.uninstall': {
    example: 'uninstall: {enabled: true}',
    edit: 'no work, except with `apply`',
  },
  'spec.packages.*.uninstall.enabled': {
    example: 'uninstall: {enabled: false}',
    edit: 'no work. Counts when the package is removed or downgraded, or the Skyhook deleted',
  },
  'spec.packages.*.uninstall.apply': {
    example: 'uninstall: {enabled: true, apply: true}',
    edit: 'true uninstalls the package, under the budget; false again installs it: apply, then config',
  },

  'selector.matchLabels': { example: 'matchLabels: {pool: gpu}' },
  'selector.matchExpressions': { example: 'matchExpressions: [{key: pool, operator: Exists}]' },
  'selector.matchExpressions[].key': { example: 'matchExpressions: [{key: example.com/pool, operator: DoesNotExist}]' },
  'selector.matchExpressions[].operator': {
    example: 'matchExpressions: [{key: pool, operator: NotIn, values: [test]}]',
  },
  'selector.matchExpressions[].values': {
    example: 'matchExpressions: [{key: pool, operator: In, values: [gpu, cpu]}]',
  },

  'spec.resetBatchStateOnCompletion': {
    example: 'resetBatchStateOnCompletion: true',
    edit: 'counts at the next completion and the next rollout of each Skyhook that names the policy',
  },
  'spec.default': {
    example:
      'default: {budget: {percent: 20}, strategy: {exponential: {initialBatch: 1, growthFactor: 2, ' +
      'failureThreshold: 2}}}',
    edit: 'nodes at work finish under the slots they have; the next admissions follow the new numbers',
  },
  'spec.default.budget': { example: 'default: {budget: {count: 1}, strategy: {fixed: {}}}' },
  'spec.default.strategy': { example: 'default: {budget: {percent: 5}, strategy: {fixed: {initialBatch: 2}}}' },
  'spec.compartments': {
    example: 'compartments: [{name: critical, selector: {matchLabels: {tier: critical}}, budget: {count: 1}}]',
    edit:
      'nodes at work finish under the slots they have and count where they were admitted. Slots of a removed ' +
      'compartment ' +
      'take capacity from every other one until they are released',
  },
  'spec.compartments[].name': {
    example: 'compartments: [{name: critical, selector: {matchLabels: {tier: critical}}, budget: {count: 1}}]',
  },
  'spec.compartments[].selector': {
    example: 'compartments: [{name: lab, selector: {matchLabels: {site: lab}}, budget: {percent: 50}}]',
  },
  'spec.compartments[].budget': {
    example: 'compartments: [{name: lab, selector: {matchLabels: {site: lab}}, budget: {percent: 50, maxCount: 10}}]',
  },
  'spec.compartments[].strategy': {
    example:
      'compartments: [{name: lab, selector: {matchLabels: {site: lab}}, budget: {percent: 50}, strategy: ' +
      '{linear: {delta: 2}}}]',
  },
  'budget.percent': { example: 'percent: 20' },
  'budget.count': { example: 'count: 1' },
  'budget.maxCount': { example: '{percent: 20, maxCount: 5}' },
  'strategy.fixed': { example: 'fixed: {initialBatch: 2}' },
  'strategy.linear': { example: 'linear: {initialBatch: 1, delta: 2}' },
  'strategy.exponential': { example: 'exponential: {initialBatch: 1, growthFactor: 2}' },
  'strategy.*.initialBatch': { example: 'fixed: {initialBatch: 3}' },
  'strategy.*.batchThreshold': { example: 'fixed: {batchThreshold: 90}' },
  'strategy.*.failureThreshold': { example: 'fixed: {failureThreshold: 2}' },
  'strategy.*.safetyLimit': { example: 'linear: {safetyLimit: 25}' },
  'strategy.linear.delta': { example: 'linear: {delta: 5}' },
  'strategy.exponential.growthFactor': { example: 'exponential: {growthFactor: 3}' },
}
