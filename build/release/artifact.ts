import type { Ingredient } from './ingredients.ts'

/** One thing that people install, with what their scanners and policies ask about it. */
export type Artifact = {
  /** Of its files in `sbom` and `provenance`. */
  readonly name: string
  readonly type: 'application' | 'container' | 'file'
  readonly version: string
  /** What it consists of, by name: files of the release, manifests of images. */
  readonly subjects: readonly { readonly name: string; readonly sha256: string }[]
  /** Other names and parts of the same content, by their digests. */
  readonly alsoMade?: readonly { readonly name: string; readonly sha256: string }[]
  readonly ingredients: readonly Ingredient[]
  /** What else than the sources decides its bytes, such as the registry that it names. */
  readonly parameters: Readonly<Record<string, string>>
}
