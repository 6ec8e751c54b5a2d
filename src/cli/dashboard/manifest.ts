import { skyhookTypeMeta } from '../../schemas/api.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { yamlText } from '../framework/yaml-text.ts'

/** A Skyhook as YAML to edit: without its status, and without what the API server keeps in it for itself. */
export function manifestOf({ metadata, spec }: Pick<Skyhook, 'metadata' | 'spec'>): string {
  const labels = metadata.labels === undefined ? {} : { labels: metadata.labels }
  return yamlText({ ...skyhookTypeMeta, metadata: { name: metadata.name, ...labels }, spec })
}
