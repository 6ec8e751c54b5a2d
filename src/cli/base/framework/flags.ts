import { durationMs } from '../../../schemas/time.ts'
import { type Flag, defineFlags } from './command.ts'
import { usageError } from './command-error.ts'

/** `skipBatchReset` → `skip-batch-reset`. */
export const longName = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The value of a flag from its text on the command line. Throws a usage error. */
export function parseFlagValue(
  key: string,
  flag: Exclude<Flag, { readonly type: 'boolean' }>,
  text: string,
  earlier: readonly string[] | undefined,
): string | number | readonly string[] {
  const name = `--${longName(key)}`
  switch (flag.type) {
    case 'text':
      if (flag.choices !== undefined && !flag.choices.includes(text))
        throw usageError(`${name} must be one of ${flag.choices.join(', ')}, got "${text}"`)
      return text
    case 'list':
      return [...(earlier ?? []), ...text.split(',').filter((one) => one !== '')]
    case 'integer': {
      const value = Number(text)
      const minimum = flag.minimum ?? 0
      if (!/^-?\d+$/.test(text) || value < minimum)
        throw usageError(`${name} must be a whole number, at least ${minimum}, got "${text}"`)
      return value
    }
    case 'duration': {
      const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : durationMs(text)
      if (ms === undefined || ms < 0) throw usageError(`${name} must be a duration such as 90s or 5m, got "${text}"`)
      return ms
    }
    default:
      return flag satisfies never
  }
}

/** Flags of every command; `dryRun` is refused for those that change nothing. */
export const generalFlags = defineFlags({
  output: {
    type: 'text',
    short: 'o',
    placeholder: 'FORMAT',
    summary: 'output format',
  },
  dryRun: {
    type: 'text',
    placeholder: 'MODE',
    choices: ['none', 'client', 'server'],
    default: 'none',
    bare: 'client',
    summary: 'print what would be done: client sends nothing, server lets the API server check each request',
  },
  verbose: { type: 'boolean', short: 'v', summary: 'report each action on stderr' },
})

/** Flags of every command that changes something. */
export const actionFlags = defineFlags({
  yes: { type: 'boolean', short: 'y', aliases: ['confirm'], summary: 'do it without asking' },
})

/** kubectl's flags about the API server, with its names and meanings. */
export const connectionFlags = defineFlags({
  namespace: {
    type: 'text',
    short: 'n',
    placeholder: 'NAMESPACE',
    complete: 'namespaces',
    summary: "namespace of the agents (default: that of the agents' DaemonSet)",
  },
  kubeconfig: {
    type: 'text',
    placeholder: 'FILE',
    complete: 'files',
    summary: 'kubeconfig to use instead of KUBECONFIG',
  },
  context: { type: 'text', placeholder: 'NAME', complete: 'contexts', summary: 'context of the kubeconfig' },
  cluster: { type: 'text', placeholder: 'NAME', summary: 'cluster of the kubeconfig' },
  user: { type: 'text', placeholder: 'NAME', summary: 'user of the kubeconfig' },
  server: { type: 'text', short: 's', placeholder: 'URL', summary: 'address of the API server' },
  token: { type: 'text', placeholder: 'TOKEN', summary: 'bearer token' },
  username: { type: 'text', placeholder: 'NAME', summary: 'user name for basic authentication' },
  password: { type: 'text', placeholder: 'PASSWORD', summary: 'password for basic authentication' },
  clientCertificate: { type: 'text', placeholder: 'FILE', complete: 'files', summary: 'client certificate' },
  clientKey: { type: 'text', placeholder: 'FILE', complete: 'files', summary: 'key of the client certificate' },
  certificateAuthority: {
    type: 'text',
    placeholder: 'FILE',
    complete: 'files',
    summary: 'certificate authority of the API server',
  },
  insecureSkipTlsVerify: { type: 'boolean', summary: 'do not verify the certificate of the API server' },
  tlsServerName: { type: 'text', placeholder: 'NAME', summary: "name to expect in the API server's certificate" },
  proxyUrl: { type: 'text', placeholder: 'URL', summary: 'proxy to the API server (http, https or socks5)' },
  as: { type: 'text', placeholder: 'USER', summary: 'act as this user' },
  asGroup: { type: 'list', placeholder: 'GROUP', summary: 'act as a member of this group; may be repeated' },
  asUid: { type: 'text', placeholder: 'UID', summary: 'act as the user with this UID' },
  asUserExtra: {
    type: 'list',
    placeholder: 'KEY=VALUE',
    summary: 'extra field of the user to act as; may be repeated',
  },
  requestTimeout: {
    type: 'duration',
    placeholder: 'DURATION',
    summary: 'longest silence of the API server in one request (default: 30s)',
  },
  disableCompression: { type: 'boolean', summary: "accepted for kubectl's sake: nothing is compressed" },
  cacheDir: {
    type: 'text',
    placeholder: 'DIR',
    complete: 'files',
    summary: "accepted for kubectl's sake: nothing is cached",
  },
})

/** First words that group commands. */
export const groups: Readonly<Record<string, { readonly summary: string; readonly aliases: readonly string[] }>> = {
  node: { summary: 'show and change single nodes', aliases: ['nodes'] },
  package: { summary: 'show, repeat, check and build packages', aliases: ['packages'] },
  'deployment-policy': { summary: 'control the batches of a DeploymentPolicy', aliases: ['dp'] },
}
