// Generated from crds/ by make generate; edit the definitions, not this file.

import type { ObjectMeta } from '../kubernetes.ts'

export type DeploymentPolicy = {
  /** Version of this object's schema. */
  readonly apiVersion?: string
  /** Kind of this object, DeploymentPolicy. */
  readonly kind?: string
  readonly metadata: ObjectMeta
  /** Groups of nodes with budgets and strategies. */
  readonly spec: {
    readonly resetBatchStateOnCompletion?: boolean | null
    /** Budget and strategy of the nodes that are in no compartment. */
    readonly default: {
      /** How many nodes of the group may be out of service at once; set percent or count. */
      readonly budget: {
        /** Percent of the group's nodes, rounded down but at least 1. */
        readonly percent?: number | null
        /** Number of nodes. */
        readonly count?: number | null
        /** Upper bound of the number that percent results in, regardless of the number of nodes. */
        readonly maxCount?: number
      }
      readonly strategy: {
        /** Every batch has the same size. */
        readonly fixed?: {
          /** Size of the first batch. */
          readonly initialBatch?: number | null
          /** Percent of a batch's nodes that must succeed; otherwise the batch has failed. */
          readonly batchThreshold?: number | null
          readonly failureThreshold?: number | null
          /** Progress in percent above which a failed batch no longer makes the next one smaller. */
          readonly safetyLimit?: number | null
        }
        /** Every batch is larger by delta than the previous one, or smaller after a failure. */
        readonly linear?: {
          /** Size of the first batch. */
          readonly initialBatch?: number | null
          /** Percent of a batch's nodes that must succeed; otherwise the batch has failed. */
          readonly batchThreshold?: number | null
          readonly failureThreshold?: number | null
          /** Progress in percent above which a failed batch no longer makes the next one smaller. */
          readonly safetyLimit?: number | null
          /** Nodes by which the batch grows or shrinks. */
          readonly delta?: number | null
        }
        /** Every batch is growthFactor times the previous one, or a part of it after a failure. */
        readonly exponential?: {
          /** Size of the first batch. */
          readonly initialBatch?: number | null
          /** Percent of a batch's nodes that must succeed; otherwise the batch has failed. */
          readonly batchThreshold?: number | null
          readonly failureThreshold?: number | null
          /** Progress in percent above which a failed batch no longer makes the next one smaller. */
          readonly safetyLimit?: number | null
          /** Factor by which the batch grows or shrinks. */
          readonly growthFactor?: number | null
        }
      }
    }
    readonly compartments?: readonly {
      /** Name of the compartment, unique in this policy. */
      readonly name: string
      /** The nodes of the compartment. */
      readonly selector: {
        /** Labels that must be present with exactly these values. */
        readonly matchLabels?: Readonly<Record<string, string>>
        /** Requirements on labels, all of which must hold. */
        readonly matchExpressions?: readonly {
          /** The label's key. */
          readonly key: string
          /** How the label is compared with the values. */
          readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
          /** Values for In and NotIn; absent for Exists and DoesNotExist. */
          readonly values?: readonly string[]
        }[]
      }
      /** How many nodes of the group may be out of service at once; set percent or count. */
      readonly budget: {
        /** Percent of the group's nodes, rounded down but at least 1. */
        readonly percent?: number | null
        /** Number of nodes. */
        readonly count?: number | null
        /** Upper bound of the number that percent results in, regardless of the number of nodes. */
        readonly maxCount?: number
      }
      readonly strategy?: {
        /** Every batch has the same size. */
        readonly fixed?: {
          /** Size of the first batch. */
          readonly initialBatch?: number | null
          /** Percent of a batch's nodes that must succeed; otherwise the batch has failed. */
          readonly batchThreshold?: number | null
          readonly failureThreshold?: number | null
          /** Progress in percent above which a failed batch no longer makes the next one smaller. */
          readonly safetyLimit?: number | null
        }
        /** Every batch is larger by delta than the previous one, or smaller after a failure. */
        readonly linear?: {
          /** Size of the first batch. */
          readonly initialBatch?: number | null
          /** Percent of a batch's nodes that must succeed; otherwise the batch has failed. */
          readonly batchThreshold?: number | null
          readonly failureThreshold?: number | null
          /** Progress in percent above which a failed batch no longer makes the next one smaller. */
          readonly safetyLimit?: number | null
          /** Nodes by which the batch grows or shrinks. */
          readonly delta?: number | null
        }
        /** Every batch is growthFactor times the previous one, or a part of it after a failure. */
        readonly exponential?: {
          /** Size of the first batch. */
          readonly initialBatch?: number | null
          /** Percent of a batch's nodes that must succeed; otherwise the batch has failed. */
          readonly batchThreshold?: number | null
          readonly failureThreshold?: number | null
          /** Progress in percent above which a failed batch no longer makes the next one smaller. */
          readonly safetyLimit?: number | null
          /** Factor by which the batch grows or shrinks. */
          readonly growthFactor?: number | null
        }
      }
    }[]
  }
}

export type Skyhook = {
  /** Version of this object's schema. */
  readonly apiVersion?: string
  /** Kind of this object, Skyhook. */
  readonly kind?: string
  readonly metadata: ObjectMeta
  /** Desired state of the selected nodes. */
  readonly spec?: {
    readonly serial?: boolean
    readonly podNonInterruptLabels?: {
      /** Labels that must be present with exactly these values. */
      readonly matchLabels?: Readonly<Record<string, string>>
      /** Requirements on labels, all of which must hold. */
      readonly matchExpressions?: readonly {
        /** The label's key. */
        readonly key: string
        /** How the label is compared with the values. */
        readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
        /** Values for In and NotIn; absent for Exists and DoesNotExist. */
        readonly values?: readonly string[]
      }[]
    }
    /** The nodes this Skyhook works on. Empty selects every node. */
    readonly nodeSelectors?: {
      /** Labels that must be present with exactly these values. */
      readonly matchLabels?: Readonly<Record<string, string>>
      /** Requirements on labels, all of which must hold. */
      readonly matchExpressions?: readonly {
        /** The label's key. */
        readonly key: string
        /** How the label is compared with the values. */
        readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
        /** Values for In and NotIn; absent for Exists and DoesNotExist. */
        readonly values?: readonly string[]
      }[]
    }
    readonly deploymentPolicy?: string
    /** Settings of the DeploymentPolicy that this Skyhook overrides. */
    readonly deploymentPolicyOptions?: {
      readonly resetBatchStateOnCompletion?: boolean | null
    }
    readonly interruptionBudget?: {
      /** Percent of the selected nodes, rounded down but at least 1; 0 means that no node starts. */
      readonly percent?: number | null
      /** Number of nodes; 0 means that no node starts. */
      readonly count?: number | null
      readonly maxCount?: number
    }
    /** The packages, by name. */
    readonly packages?: Readonly<
      Record<
        string,
        {
          /** The Skyhook operator sets it to the package's key. Leave it out. */
          readonly name?: string
          readonly version: string
          readonly image: string
          readonly containerSHA?: string
          readonly agentImageOverride?: string
          readonly interrupt?: {
            readonly type: 'service' | 'reboot' | 'noop' | 'restartAllServices'
            /** Services to restart, in this order; for type service. */
            readonly services?: readonly string[]
            readonly when?: 'always' | 'required'
          }
          readonly dependsOn?: Readonly<Record<string, string>>
          readonly configInterrupts?: Readonly<
            Record<
              string,
              {
                readonly type: 'service' | 'reboot' | 'noop' | 'restartAllServices'
                /** Services to restart, in this order; for type service. */
                readonly services?: readonly string[]
                readonly when?: 'always' | 'required'
              }
            >
          >
          readonly configMap?: Readonly<Record<string, string>>
          /** Variables for the package's steps. */
          readonly env?: readonly {
            /** Name of the variable. */
            readonly name: string
            /** The value. $(NAME) refers to an earlier variable, $$ is a dollar sign. */
            readonly value?: string
            /** Where the value comes from. */
            readonly valueFrom?: {
              /** A key of a Secret in the agents' namespace. */
              readonly secretKeyRef?: {
                /** Name of the object in the agents' namespace. */
                readonly name?: string
                /** Key in the object's data. */
                readonly key: string
                /** If true, the variable is omitted when the object or the key does not exist. */
                readonly optional?: boolean
              }
              /** A key of a ConfigMap in the agents' namespace. */
              readonly configMapKeyRef?: {
                /** Name of the object in the agents' namespace. */
                readonly name?: string
                /** Key in the object's data. */
                readonly key: string
                /** If true, the variable is omitted when the object or the key does not exist. */
                readonly optional?: boolean
              }
              /** A fact about the node and its agent. */
              readonly fieldRef?: {
                /** Version the path is written for; v1. */
                readonly apiVersion?: string
                readonly fieldPath: 'spec.nodeName' | 'status.hostIP' | 'status.podIP' | 'metadata.namespace'
              }
              /** One of the package's own resources. */
              readonly resourceFieldRef?: {
                /** Without effect; a package has no containers. */
                readonly containerName?: string
                /** Unit of the value; 1 when absent. */
                readonly divisor?: number | string
                /** The resource. */
                readonly resource: 'limits.cpu' | 'limits.memory' | 'requests.cpu' | 'requests.memory'
              }
            }
          }[]
          readonly resources?: {
            /** CPU share of the step. */
            readonly cpuRequest?: number | string
            /** CPU limit of the step. */
            readonly cpuLimit?: number | string
            /** Memory protected for the step. */
            readonly memoryRequest?: number | string
            /** Memory limit of the step. Beyond it, the step is killed. */
            readonly memoryLimit?: number | string
          }
          /** Time between SIGTERM and SIGKILL when a step is stopped, such as 30s or 1m30s. */
          readonly gracefulShutdown?: string
          readonly stageTimeout?: string
          readonly rerunOnRequest?: {
            /** Minimum time between two requested runs on a node, such as 24h. At least 1m. */
            readonly minInterval: string
          }
          readonly uninstall?: {
            readonly enabled?: boolean
            /** Uninstalls the package now, although it is still listed here. */
            readonly apply?: boolean
          }
        }
      >
    >
    readonly additionalTolerations?: readonly {
      /** Key of the taint. If absent, every key matches. */
      readonly key?: string
      /** Exists tolerates every value of the taint, Equal (the default) only the given one. */
      readonly operator?: '' | 'Exists' | 'Equal'
      /** Value of the taint. */
      readonly value?: string
      /** Effect of the taint. If absent, every effect matches. */
      readonly effect?: '' | 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
      /** Without effect; taints do not evict Skyhooks. */
      readonly tolerationSeconds?: number
    }[]
    /** Nodes with the runtime-required taint keep it until this Skyhook is complete on them. */
    readonly runtimeRequired?: boolean
    readonly autoTaintNewNodes?: boolean
    readonly priority?: number
    /** How a node is emptied before an interrupt. */
    readonly drain?: {
      readonly cordon?: 'early' | 'late'
      readonly yieldAfterSeconds?: number
      /** Time limit of the drain, after which onTimeout applies. Without it there is no limit. */
      readonly timeoutSeconds?: number
      readonly onTimeout?: 'wait' | 'release' | 'delete'
      readonly singleNode?: 'drain' | 'skip'
      readonly tolerating?: 'evict' | 'wait' | 'leave'
    }
    readonly pace?: {
      readonly minReadySeconds?: number
      /** Time for which a complete node keeps its slot in any case. */
      readonly pauseSeconds?: number
    }
    readonly bootstrap?: {
      readonly count?: number
    }
  }
  readonly status?: {
    /** Generation of the spec that this status describes. */
    readonly observedGeneration?: number
    /** Status of the Skyhook, summarized over its nodes. */
    readonly status?:
      | 'unknown'
      | 'complete'
      | 'blocked'
      | 'waiting'
      | 'disabled'
      | 'paused'
      | 'in_progress'
      | 'erroring'
    readonly conditions?: readonly {
      /** Name of the condition. */
      readonly type: string
      /** Whether the condition holds. */
      readonly status: 'True' | 'False' | 'Unknown'
      /** Generation of the spec that the condition describes. */
      readonly observedGeneration?: number
      /** When status last changed. */
      readonly lastTransitionTime: string
      /** Reason in one word, for programs. */
      readonly reason: string
      /** Message for people. It names at most 20 nodes. */
      readonly message: string
    }[]
    /** Packages of each node, by name|version. */
    readonly nodeState?: Readonly<
      Record<
        string,
        Readonly<
          Record<
            string,
            {
              /** The package's name. */
              readonly name?: string
              /** The package's version. */
              readonly version?: string
              /** The package's image without tag. */
              readonly image?: string
              /** The digest the spec names, if it names one. */
              readonly containerSHA?: string
              /** The stage that is running or ran last. */
              readonly stage?: 'apply' | 'interrupt' | 'post-interrupt' | 'config' | 'uninstall' | 'upgrade'
              /** State of that stage. */
              readonly state?: 'complete' | 'in_progress' | 'skipped' | 'erroring' | 'unknown'
              /** Failed attempts of that stage. */
              readonly restarts?: number
            }
          >
        >
      >
    >
    /** Status of each node. */
    readonly nodeStatus?: Readonly<
      Record<
        string,
        'unknown' | 'complete' | 'blocked' | 'waiting' | 'disabled' | 'paused' | 'in_progress' | 'erroring'
      >
    >
    /** True when nodeState and nodeStatus omit nodes to limit the size of the object. */
    readonly nodeStateTruncated?: boolean
    /** Written by the Skyhook operator only; agents keep the boot id on the host. */
    readonly nodeBootIds?: Readonly<Record<string, string>>
    /** Written by the Skyhook operator only. */
    readonly nodePriority?: Readonly<Record<string, string>>
    readonly configUpdates?: Readonly<Record<string, readonly string[]>>
    readonly compartmentStatuses?: Readonly<
      Record<
        string,
        {
          /** Selected nodes in the compartment. */
          readonly matched?: number
          /** How many of them may be out of service at once by the budget. */
          readonly ceiling?: number
          /** How many of them are in progress. */
          readonly inProgress?: number
          /** How many of them are complete. */
          readonly completed?: number
          /** completed in percent of matched. */
          readonly progressPercent?: number
          /** State of the batches of the policy's strategy. */
          readonly batchState?: {
            /** Number of the current batch, from 1. */
            readonly currentBatch?: number
            /** Failed batches since the last one that succeeded. */
            readonly consecutiveFailures?: number
            /** Nodes that this rollout completed. */
            readonly completedNodes?: number
            /** Nodes that failed in this rollout. */
            readonly failedNodes?: number
            /** True when the policy's failure threshold stopped the rollout. */
            readonly shouldStop?: boolean
            /** Nodes in the previous batch. */
            readonly lastBatchSize?: number
            /** Whether the previous batch failed. */
            readonly lastBatchFailed?: boolean
          }
        }
      >
    >
    /** Nodes in progress or failing. */
    readonly nodesInProgress?: number
    /** Complete nodes / selected nodes. */
    readonly completeNodes?: string
    /** The packages as name:version, sorted, with commas between them. */
    readonly packageList?: string
    /** Nodes that the selector matches. */
    readonly nodesSelected?: number
    /** Selected nodes that are complete for the current spec. */
    readonly nodesUpdated?: number
    /** Updated nodes that are Ready and in service. */
    readonly nodesReady?: number
    /** Selected nodes that are out of service for this Skyhook. */
    readonly nodesUnavailable?: number
    /** Selected nodes that have work left and have not started it. */
    readonly nodesPending?: number
  }
}
