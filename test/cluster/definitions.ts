/** A real API server with the chart installed, to check what its resource definitions accept. */
import { afterAll, beforeAll } from 'vitest'
import { isOldest } from './api-server.ts'
import { withPackage } from '../kit/objects/sample-specs.ts'
import { until, type Answer, type ChartCluster, type Json } from './chart-cluster.ts'
import { borrowChartCluster } from './shared-cluster.ts'

const base = '/apis/skyhook.nvidia.com/v1alpha1'

export type Definitions = {
  readonly cluster: ChartCluster
  /** Creates an object as a dry run. Strict like kubectl: an unknown field is an error. */
  create(plural: 'skyhooks' | 'deploymentpolicies', spec: Json, name?: string): Promise<Answer>
}

/** Older API servers name the type of a refused value, or nothing, where newer ones quote it. */
export function wording(message: string): string {
  if (!isOldest) return message
  return message
    .replaceAll(/Invalid value: "(?:[^"\\]|\\.)*": /g, 'Invalid value: ')
    .replaceAll('map[string]interface {}', '')
}

/** The definitions on an API server for one test file: its fields are set once the file's tests run. */
export function useDefinitions(): Definitions {
  const definitions = {} as Definitions
  let stop = async (): Promise<void> => undefined
  beforeAll(async () => {
    Object.assign(definitions, await startDefinitions())
    stop = async () => await definitions.cluster.stop()
  })
  afterAll(async () => await stop())
  return definitions
}

async function startDefinitions(): Promise<Definitions> {
  const cluster = await borrowChartCluster()
  const create: Definitions['create'] = (plural, spec, name = 'candidate') =>
    cluster.admin('POST', `${base}/${plural}?dryRun=All&fieldValidation=Strict`, {
      apiVersion: 'skyhook.nvidia.com/v1alpha1',
      kind: plural === 'skyhooks' ? 'Skyhook' : 'DeploymentPolicy',
      metadata: { name },
      spec,
    })
  // A refusal by the admission policy shows that it is in effect.
  const incomplete = withPackage({ resources: { cpuRequest: '1' } })
  await until(
    () => create('skyhooks', incomplete),
    ({ message }) => message.includes('skyhookd-skyhook-resources'),
  )
  return { cluster, create }
}
