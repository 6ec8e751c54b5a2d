import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { arePlainManifestsCurrent, plainManifests } from './plain-manifests.ts'

type Named = { readonly kind: string; readonly metadata: { readonly name: string; readonly labels?: object } }

const root = join(import.meta.dirname, '..', '..')
const text = readFileSync(join(root, 'daemonset', 'skyhookd.yaml'), 'utf8')
const objects = parseAllDocuments(text).map((document) => document.toJS() as Named)

describe('the plain manifests', () => {
  test.each<[string, (manifests: string) => string]>([
    ['edited by hand', (manifests) => manifests.replace('hostNetwork: true', 'hostNetwork: false')],
    ['of another chart', (manifests) => manifests.replace(/(# sources: sha256:)./, '$1x')],
    ['with an object more', (manifests) => `${manifests}---\nkind: Secret\n`],
  ])('plain manifests %s are found without helm', (_, change) => {
    const current = plainManifests('---\nkind: DaemonSet\nmetadata: {name: a}\nspec: {hostNetwork: true}\n')
    const changed = change(current)
    expect(changed).not.toBe(current)
    expect([current, changed].map(arePlainManifestsCurrent)).toEqual([true, false])
  })

  test('the plain manifests start with the namespace and end with the agents', () => {
    expect(objects[0]).toMatchObject({ kind: 'Namespace', metadata: { name: 'skyhook' } })
    expect(objects.filter(({ kind }) => kind === 'DaemonSet')).toEqual([objects.at(-1)])
    expect(objects.map(({ kind }) => kind)).not.toContain('CustomResourceDefinition')
  })

  test('the plain manifests carry no mark of helm', () => {
    expect(text.split('\n').filter((line) => /helm/i.test(line))).toEqual([])
  })

  test('what is generated is deterministic and without problems', () => {
    const rendered =
      '---\n# Source: x\nkind: DaemonSet\nmetadata: {name: a}\n---\n---\nkind: Role\nmetadata: {name: b}\n'
    expect(plainManifests(rendered)).toBe(plainManifests(rendered))
    expect(arePlainManifestsCurrent(plainManifests(rendered))).toBe(true)
    expect([...plainManifests(rendered).matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind)).toEqual([
      'Namespace',
      'Role',
      'DaemonSet',
    ])
  })

  test('kustomize finds the image of the agents', () => {
    const { resources, images } = parse(readFileSync(join(root, 'daemonset/kustomization.yaml'), 'utf8')) as {
      resources: string[]
      images: { name: string }[]
    }
    expect(resources).toEqual(readdirSync(join(root, 'daemonset')).filter((name) => name !== 'kustomization.yaml'))
    expect(text).toContain(`image: ${images[0]?.name}:`)
  })

  test('the folder of definitions holds nothing but definitions, so that kubectl can apply it', () => {
    for (const name of readdirSync(join(root, 'crds')))
      expect(parse(readFileSync(join(root, 'crds', name), 'utf8'))).toMatchObject({ kind: 'CustomResourceDefinition' })
  })
})

describe('a deployment from a checkout', () => {
  const overlay = (image: string | undefined): string => {
    const { IMAGE: _, ...env } = process.env
    return execFileSync(join(root, 'build/deploy.sh'), ['overlay'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...env, ...(image !== undefined && { IMAGE: image }) },
    })
  }

  test.each([
    ['registry.example.com/infra/skyhookd:0.1.0', { newName: 'registry.example.com/infra/skyhookd', newTag: '0.1.0' }],
    ['localhost:5000/skyhookd:1', { newName: 'localhost:5000/skyhookd', newTag: '1' }],
    [`r.example.com/a@sha256:${'0'.repeat(64)}`, { newName: 'r.example.com/a', digest: `sha256:${'0'.repeat(64)}` }],
  ])('a deployment of %s runs that image', (image, fields) => {
    const base = parse(readFileSync(join(root, 'daemonset/kustomization.yaml'), 'utf8')) as {
      images: { newName: string }[]
    }
    expect(parse(overlay(image))).toMatchObject({ images: [{ name: base.images[0]?.newName, ...fields }] })
  })

  test.each([
    [undefined, 'names no registry'],
    ['skyhookd:0.1.0', 'names no registry'],
    ['localhost:5000/skyhookd', 'has no tag'],
    ['registry.example.com/skyhookd:', 'has no tag'],
  ])('a deployment of %s is refused with what to do', (image, why) => {
    expect(() => overlay(image)).toThrow(why)
  })
})
