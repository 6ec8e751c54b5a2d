/** What the chart's values make of its objects and notes, with helm and without an API server. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readProviderSettings, readSettings } from '../../src/daemon/settings/settings.ts'
import { settingKeys } from '../../src/schemas/setting-keys.ts'
import { chart, helmProgram, type Json } from './chart-cluster.ts'

const root = join(import.meta.dirname, '..', '..')
let helm: (...parameters: string[]) => Promise<string>
let folder: string
beforeAll(async () => {
  helm = await helmProgram()
  folder = await mkdtemp(join(tmpdir(), 'skyhookd-chart-values-'))
})
afterAll(async () => await rm(folder, { recursive: true }))

type KubernetesObject = {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
  readonly spec?: Json
}

async function withValues(command: readonly string[], release: string, values: Json): Promise<string> {
  const file = join(folder, 'values.yaml')
  await writeFile(file, JSON.stringify(values))
  return await helm(...command, release, chart, '--namespace', 'skyhook', '-f', file)
}
async function objects(values: Json, release = 'skyhookd'): Promise<readonly KubernetesObject[]> {
  return parseAllDocuments(await withValues(['template'], release, values))
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null)
}
function ofKind(all: readonly KubernetesObject[], kind: string): KubernetesObject {
  const found = all.find((object) => object.kind === kind)
  if (!found) throw new Error(`the chart has no ${kind}`)
  return found
}
type Agents = {
  readonly selector: { readonly matchLabels: Json }
  readonly template: {
    readonly metadata: { readonly labels: Json; readonly annotations: Json }
    readonly spec: { readonly containers: readonly { readonly env: readonly Json[] }[] }
  }
}
const agentsOf = (all: readonly KubernetesObject[]): Agents => ofKind(all, 'DaemonSet').spec as Agents
const areDefinitions = ({ kind }: KubernetesObject): boolean => kind === 'CustomResourceDefinition'

describe('names', () => {
  test.each<[string, string, Json, string]>([
    ['of the release where it contains skyhookd', 'my-skyhookd', {}, 'my-skyhookd'],
    ['of release and chart elsewhere', 'prod', {}, 'prod-skyhookd'],
    ['of release and nameOverride', 'prod', { nameOverride: 'hosts' }, 'prod-hosts'],
    ['of the release where it contains nameOverride', 'hosts', { nameOverride: 'hosts' }, 'hosts'],
    ['of fullnameOverride', 'prod', { nameOverride: 'hosts', fullnameOverride: 'agents' }, 'agents'],
  ])('the agents have the name %s', async (_, release, values, name) => {
    expect(ofKind(await objects(values, release), 'DaemonSet').metadata.name).toBe(name)
  })

  test('the label by which agents find each other stays with another name', async () => {
    const { selector } = agentsOf(await objects({ nameOverride: 'hosts' }))
    expect(selector.matchLabels).toMatchObject({ 'app.kubernetes.io/name': 'skyhookd' })
  })
})

describe('labels', () => {
  const monitoring = { podMonitor: { enabled: true }, rules: { enabled: true }, dashboard: { enabled: true } }

  test('commonLabels are on every object but the definitions, and in no selector', async () => {
    const all = await objects({ commonLabels: { team: 'infra' }, metrics: monitoring })
    const without = all.filter((one) => one.metadata.labels?.['team'] !== 'infra')
    expect(without.filter((one) => !areDefinitions(one))).toEqual([])
    const { selector, template } = agentsOf(all)
    expect(template.metadata.labels).toMatchObject({ team: 'infra' })
    expect(selector.matchLabels).not.toHaveProperty('team')
  })

  test('podLabels count more than commonLabels', async () => {
    const { template } = agentsOf(await objects({ commonLabels: { team: 'infra' }, podLabels: { team: 'hosts' } }))
    expect(template.metadata.labels).toMatchObject({ team: 'hosts', 'app.kubernetes.io/name': 'skyhookd' })
  })

  test.each(['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'skyhook.nvidia.com/helm-hook'])(
    'commonLabels with %s, by which objects are found, are refused',
    async (label) => {
      await expect(objects({ commonLabels: { [label]: 'x' } })).rejects.toThrow(`commonLabels has ${label}`)
    },
  )
})

describe('extraEnv', () => {
  test('extraEnv adds variables to the agent beside its own', async () => {
    const timeZone = { name: 'TZ', value: 'Europe/Berlin' }
    const env = agentsOf(await objects({ extraEnv: [timeZone] })).template.spec.containers[0]?.env ?? []
    expect(env.at(-1)).toEqual(timeZone)
    expect(env.map(({ name }) => name)).toContain('NODE_NAME')
  })

  test.each([
    ['NODE_NAME', 'which the chart sets'],
    ['KUBERNETES_SERVICE_HOST', 'which the chart sets: use apiServer'],
  ])('extraEnv with %s is refused', async (name, why) => {
    await expect(objects({ extraEnv: [{ name, value: 'x' }] })).rejects.toThrow(`extraEnv has ${name}, ${why}`)
  })
})

describe('settings', () => {
  const values: Json = {
    imagePullSecrets: [{ name: 'one' }],
    imagePullSecret: 'two',
    registries: [
      { host: 'registry.example.com:5000', mirrors: ['mirror.example.com'], caSecret: 'ca', plainHTTP: false },
    ],
    imageCredentialProviders: { enabled: false, config: '/etc/providers.yaml' },
    proxy: { httpsProxy: 'http://proxy.example.com:3128', noProxy: '10.0.0.0/8' },
    runtimeRequiredTaint: 'example.com/new=yes:NoExecute',
    defaults: { interruptionBudget: { percent: 5 } },
    drain: { skipNamespaces: [] },
    estimatedNodeCount: 1_000_000,
    stepLogLimit: null,
  }
  const dataOf = async (given: Json): Promise<Record<string, string>> =>
    (ofKind(await objects(given), 'ConfigMap') as unknown as { data: Record<string, string> }).data

  test('each setting has a key of its own that the agent knows', async () => {
    expect(Object.keys(await dataOf({})).toSorted()).toEqual(settingKeys.toSorted())
  })

  test('the agent reads the settings of the values', async () => {
    const path = join(folder, 'settings')
    await mkdir(path)
    for (const [key, text] of Object.entries(await dataOf(values))) await writeFile(join(path, key), text)
    const env = { NODE_NAME: 'node-1', POD_NAME: 'pod', POD_NAMESPACE: 'skyhook', HOST_IP: '10.0.0.1' }
    expect(readSettings(env, path)).toMatchObject({
      copyDirRoot: '/var/lib/skyhook',
      agentLogRoot: '/var/log/skyhook',
      stepLogLimitBytes: 16 * 2 ** 20,
      runtimeRequiredTaint: { key: 'example.com/new', value: 'yes', effect: 'NoExecute' },
      logLevel: 'info',
      metrics: { enabled: true, port: 9475 },
      health: { port: 336 },
      registries: values['registries'],
      imagePullSecrets: ['one', 'two'],
      proxy: values['proxy'],
      drain: { skipNamespaces: [], allowDelete: false },
      reapplyOnReboot: false,
      ignoreNodeWright: false,
      defaultBudget: { percent: 5 },
      estimatedNodeCount: 1_000_000,
    })
    expect(readProviderSettings(env, path)).toEqual({ isEnabled: false, configPath: '/etc/providers.yaml' })
  })

  test('the agents are replaced only when a setting changes', async () => {
    const checksum = async (given: Json): Promise<unknown> =>
      agentsOf(await objects(given)).template.metadata.annotations['checksum/settings']
    const before = await checksum({})
    expect(before).toMatch(/^[0-9a-f]{64}$/)
    expect(await checksum({ apiPriority: { enabled: false } })).toBe(before)
    expect(await checksum({ logLevel: 'debug' })).not.toBe(before)
  })
})

describe('alerts', () => {
  type Rules = { readonly groups: readonly { readonly rules: readonly { annotations: Json; alert: string }[] }[] }
  const rulesWith = async (rules: Json): Promise<Json> =>
    ofKind(await objects({ metrics: { rules: { enabled: true, ...rules } } }), 'PrometheusRule').spec ?? {}
  const file = async (): Promise<unknown> => parse(await readFile(join(chart, 'monitoring', 'alerts.yaml'), 'utf8'))

  test('alerts are those of the rule file, and have no link, while nobody says where their page is', async () => {
    const rules = await rulesWith({})
    expect(rules).toEqual(await file())
    expect(JSON.stringify(rules)).not.toContain('runbook_url')
  })

  test('alerts link to their sections of the page that the values name', async () => {
    const { groups } = (await rulesWith({ runbookUrl: 'https://wiki.example.com/alerts.md' })) as unknown as Rules
    const rules = groups.flatMap((group) => group.rules)
    expect(rules.length).toBeGreaterThan(5)
    for (const { alert, annotations } of rules) {
      expect(annotations['runbook_url']).toBe(`https://wiki.example.com/alerts.md#${alert.toLowerCase()}`)
      expect(annotations).not.toHaveProperty('runbook')
    }
  })
})

describe('notes', () => {
  const notes = async (values: Json): Promise<string> =>
    (await withValues(['install', '--dry-run=client'], 'skyhookd', values)).replace(/^[\s\S]*\nNOTES:\n/, '')

  test('the first command of the notes is doctor', async () => {
    expect(/^ {2}(\w.*)$/m.exec(await notes({}))?.[1]).toBe('kubectl skyhook doctor')
  })

  test('the first Skyhook of the notes is valid, and names a package of the registry that the agents come from', async () => {
    const text = await notes({ image: { repository: 'registry.example.com:5000/team/skyhookd' } })
    const [, manifest = ''] = /<<'YAML'\n([\s\S]*?)\nYAML\n/.exec(text) ?? []
    const path = join(folder, 'first.yaml')
    await writeFile(path, manifest)
    const validate = [join(root, 'src/cli/main.ts'), 'validate', path]
    expect((await promisify(execFile)(process.execPath, validate)).stdout).toContain('valid')
    const config = await readFile(join(root, 'packages/shellscript/config.json'), 'utf8')
    const { package_version: version } = JSON.parse(config) as { package_version: string }
    expect(parse(manifest)).toMatchObject({
      spec: { packages: { greeting: { version, image: 'registry.example.com:5000/team/packages/shellscript' } } },
    })
  })
})
