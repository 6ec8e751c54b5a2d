import { apiGroup } from '../../../schemas/api.ts'
import generated from '../../validate/generated/definitions.json' with { type: 'json' }
import type { ExpectedDefinition } from '../definitions.ts'

const plurals: Readonly<Record<string, string>> = { Skyhook: 'skyhooks', DeploymentPolicy: 'deploymentpolicies' }

/** The resource definitions of this version. */
export const expectedDefinitions = (): readonly ExpectedDefinition[] =>
  generated.map(({ kind, schema }) => ({ name: `${plurals[kind] ?? ''}.${apiGroup}`, schema }))
