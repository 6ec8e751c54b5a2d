/** The health checks as the project ships them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { skyhookTypeMeta } from '../../src/schemas/api.ts'

const shipped = (path: string): string => readFileSync(join(import.meta.dirname, '..', '..', 'gitops', path), 'utf8')

/** Expressions in CEL. */
export type HealthCheckExpressions = {
  readonly apiVersion: string
  readonly kind: string
  readonly inProgress: string
  readonly failed: string
  readonly current: string
}

export const argocdConfigText = shipped('argocd/argocd-cm.yaml')
export const fluxKustomizationText = shipped('flux/kustomization.yaml')

/** The Lua script that Argo CD runs for Skyhooks. */
export function healthScript(): string {
  const { data } = parse(argocdConfigText) as { data: Record<string, string> }
  const [group] = skyhookTypeMeta.apiVersion.split('/')
  const key = `resource.customizations.health.${group}_${skyhookTypeMeta.kind}`
  const script = data[key]
  if (script === undefined) throw new Error(`gitops/argocd/argocd-cm.yaml lacks data[${JSON.stringify(key)}]`)
  return script
}

/** What Flux evaluates for Skyhooks. */
export function healthCheckExpressions(): HealthCheckExpressions {
  const { spec } = parse(fluxKustomizationText) as { spec: { healthCheckExprs: readonly HealthCheckExpressions[] } }
  const found = spec.healthCheckExprs.find(
    ({ apiVersion, kind }) => apiVersion === skyhookTypeMeta.apiVersion && kind === skyhookTypeMeta.kind,
  )
  if (found === undefined) throw new Error('gitops/flux/kustomization.yaml has no healthCheckExprs for Skyhooks')
  return found
}
