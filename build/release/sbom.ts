/** Software bills of materials, in CycloneDX 1.6. Pure. */
import type { Artifact } from './artifact.ts'
import type { Ingredient } from './ingredients.ts'

const hashNames = { sha256: 'SHA-256', sha512: 'SHA-512' } as const

/** The same artifact gives the same bytes: there is no time and no random serial number. */
export function cycloneDx({ name, type, version, subjects, ingredients }: Artifact): string {
  const [onlySubject, ...others] = subjects
  const root = {
    type,
    'bom-ref': name,
    name,
    version,
    licenses: [{ expression: 'Apache-2.0' }],
    // an artifact of several files lists them instead
    ...(onlySubject && others.length === 0 && { hashes: [{ alg: 'SHA-256', content: onlySubject.sha256 }] }),
  }
  const files = others.length === 0 ? [] : subjects.map(({ name: path, sha256 }) => fileOfArtifact(path, sha256))
  const components = [...files, ...ingredients].map(component)
  const refs = components.map((one) => one['bom-ref'])
  return `${JSON.stringify(
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      version: 1,
      metadata: { component: root },
      components,
      dependencies: [{ ref: name, dependsOn: [...refs].sort() }],
    },
    null,
    2,
  )}\n`
}

const fileOfArtifact = (name: string, hex: string): Ingredient => ({
  type: 'file',
  name,
  hash: { algorithm: 'sha256', hex },
})

type Component = { readonly 'bom-ref': string } & Readonly<Record<string, unknown>>

function component({ type, name, version, license, purl, cpe, hash, contains }: Ingredient): Component {
  return {
    type,
    'bom-ref': purl ?? `${type}:${name}`,
    name,
    ...(version !== undefined && { version }),
    ...(hash && { hashes: [{ alg: hashNames[hash.algorithm], content: hash.hex }] }),
    ...(license !== undefined && { licenses: [{ expression: license }] }),
    ...(cpe !== undefined && { cpe }),
    ...(purl !== undefined && { purl }),
    ...(contains && { components: contains.map(component) }),
  }
}
