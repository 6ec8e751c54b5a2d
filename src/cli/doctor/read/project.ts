/** What the checks keep of objects of the API. */
import type { KubeObject } from '../../../kube/objects.ts'
import { skyhookTypeMeta } from '../../../schemas/api.ts'
import type { BindingFacts, DefinitionFacts, FlowSchemaFacts, PolicyFacts } from '../cluster-facts.ts'

export type DefinitionObject = KubeObject & {
  readonly spec?: {
    readonly versions?: readonly {
      readonly name: string
      readonly served?: boolean
      readonly schema?: { readonly openAPIV3Schema?: object }
    }[]
  }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

const [, version] = skyhookTypeMeta.apiVersion.split('/')

export function definitionOf({ spec, status }: DefinitionObject): DefinitionFacts {
  const found = spec?.versions?.find(({ name, served }) => name === version && served === true)
  return {
    schema: found?.schema?.openAPIV3Schema,
    isEstablished: status?.conditions?.some((one) => one.type === 'Established' && one.status === 'True') === true,
  }
}

type Expression = { readonly expression?: string }

type PolicyObject = KubeObject & {
  readonly spec?: {
    readonly failurePolicy?: string
    readonly matchConditions?: readonly Expression[]
    readonly validations?: readonly Expression[]
  }
}

export const policyOf = ({ metadata, spec }: PolicyObject): PolicyFacts => ({
  name: metadata.name,
  failurePolicy: spec?.failurePolicy ?? 'Fail',
  expressions: [...(spec?.matchConditions ?? []), ...(spec?.validations ?? [])].map(
    ({ expression = '' }) => expression,
  ),
})

type BindingObject = KubeObject & {
  readonly spec?: { readonly policyName?: string; readonly validationActions?: readonly string[] }
}

export const bindingOf = ({ metadata, spec }: BindingObject): BindingFacts => ({
  name: metadata.name,
  policy: spec?.policyName ?? '',
  actions: spec?.validationActions ?? [],
})

type FlowSchemaObject = KubeObject & {
  readonly spec?: {
    readonly priorityLevelConfiguration?: { readonly name?: string }
    readonly rules?: readonly {
      readonly subjects?: readonly {
        readonly serviceAccount?: { readonly name?: string; readonly namespace?: string }
      }[]
    }[]
  }
}

export const flowSchemaOf = ({ metadata, spec }: FlowSchemaObject): FlowSchemaFacts => ({
  name: metadata.name,
  priorityLevel: spec?.priorityLevelConfiguration?.name ?? '',
  serviceAccounts: (spec?.rules ?? []).flatMap(({ subjects = [] }) =>
    subjects.flatMap(({ serviceAccount }) =>
      serviceAccount ? [`${serviceAccount.namespace ?? ''}/${serviceAccount.name ?? ''}`] : [],
    ),
  ),
})
