/** Details of a reason, where the agent knows more than the reason's name. */
import { ignoreNodeWrightCommand } from '../nodewright.ts'

type CodeRow = Remedy & { readonly meaning: string; readonly stalls: Stalls }

/** The answer is final until someone changes something. */
const answered = { stalls: 'after-two-minutes' } as const
/** There is no final answer. */
const unanswered = { stalls: 'never' } as const

const editSkyhook = 'kubectl edit skyhook "$SKYHOOK"'
const listLogins = 'kubectl -n "$NAMESPACE" get secrets --field-selector type=kubernetes.io/dockerconfigjson'
const askRegistry = 'curl -sS "https://$REGISTRY/v2/" # on the host'
const reachRegistry =
  'the node must reach the registry: check its name, proxy, certificate and mirrors (registries of the chart)'
const addCredentials = 'add credentials for the registry to imagePullSecrets of the chart, or correct them'

/**
 * Why an image could not be read or written. The set is closed: code branches on it, people read the message. A failing
 * disk is not in it: those errors keep their errno (`ENOSPC`, …).
 */
const imageErrors = {
  'bad-reference': {
    ...answered,
    meaning: 'image, version or containerSHA of the package cannot be the name of an image',
    remedy: 'correct image and version of the package as the message says',
    command: editSkyhook,
  },
  misconfigured: {
    ...answered,
    meaning: 'logins, certificates or settings of registries cannot be read',
    remedy: 'correct the file, the Secret or the value of the chart that the message names',
    command: `kubectl -n "$NAMESPACE" get configmap skyhookd -o jsonpath='{.data}'`,
  },
  'not-found': {
    ...answered,
    meaning: 'the registry has no such image',
    remedy: 'correct image and version of the package, or its containerSHA: the registry has no such image',
    command: editSkyhook,
  },
  unauthorized: {
    ...answered,
    meaning: 'the registry asks for a login, or refuses the one that it got',
    remedy: addCredentials,
    command: listLogins,
  },
  denied: {
    ...answered,
    meaning: 'the login is valid, but may not read this repository',
    remedy: addCredentials,
    command: listLogins,
  },
  'digest-mismatch': {
    ...answered,
    meaning: 'the content is not that of the digest',
    remedy: 'correct containerSHA of the package: the registry has another content for it',
    command: editSkyhook,
  },
  unreachable: {
    ...unanswered,
    meaning: 'no connection, or it broke repeatedly',
    remedy: reachRegistry,
    command: askRegistry,
  },
  tls: {
    ...unanswered,
    meaning: 'the certificate of the registry is not trusted, or TLS failed',
    remedy: reachRegistry,
    command: askRegistry,
  },
  'rate-limited': {
    ...unanswered,
    meaning: 'the registry asks for fewer requests',
    remedy: 'wait, or raise the limit with a login (imagePullSecrets) or a mirror (registries of the chart)',
    command: listLogins,
  },
  unavailable: {
    ...unanswered,
    meaning: 'the registry answers with a server error (5xx)',
    remedy: 'the registry must recover: ask its administrator',
    command: askRegistry,
  },
  unsupported: {
    ...answered,
    meaning: 'a media type, platform or algorithm that agents do not support',
    remedy: 'build the image for this platform, in the format of OCI or Docker, under a new version',
    command: 'kubectl skyhook validate "$IMAGE"',
  },
  'too-large': {
    ...answered,
    meaning: 'the image exceeds a limit of the agent, which the message names',
    remedy: 'build a smaller image under a new version',
    command: 'kubectl skyhook validate "$IMAGE"',
  },
  'bad-response': {
    ...unanswered,
    meaning: 'the answer of the registry is invalid',
    remedy: 'look for a proxy or another server in place of the registry: the answer does not come from a registry',
    command: askRegistry,
  },
  'bad-image': {
    ...answered,
    meaning: 'an archive of the image cannot be read, or would leave its folder',
    remedy: 'build a correct image under a new version or digest',
    command: 'kubectl skyhook validate "$IMAGE"',
  },
} as const satisfies Readonly<Record<string, CodeRow>>

export type ImageErrorCode = keyof typeof imageErrors

export const reasonCodes = {
  ...imageErrors,
  'stage-timeout': {
    stalls: 'at-once',
    meaning: 'the attempt took longer than `stageTimeout` of the package allows',
    remedy: 'read what the step waits for in its log, or raise stageTimeout of the package',
    command: 'kubectl skyhook logs "$SKYHOOK" --node "$NODE" --package "$PACKAGE" --stage "$STAGE"',
  },
  'node-condition': {
    stalls: 'never',
    meaning: 'all of the taints come from Kubernetes itself, which removes them when the condition of the Node is over',
    remedy: 'look at the kubelet and the host: Kubernetes removes the taint with the condition that it stands for',
    command: 'kubectl describe node "$NODE"',
  },
  'other-operator': {
    ...unanswered,
    meaning: 'a person must decide whether the record of another operator counts',
    remedy: 'decide whether the work of another operator counts here (docs/usage/takeover.md)',
    command: ignoreNodeWrightCommand('"$SKYHOOK"'),
  },
} as const satisfies Readonly<Record<string, CodeRow>>

export type ReasonCode = keyof typeof reasonCodes

/** The gates that work must pass on a node, in this order. */
export const gateNames = [
  'agent',
  'selector',
  'ignored',
  'disabled',
  'paused',
  'spec',
  'policy',
  'priority',
  'host',
  'taint',
  'package',
  'slot',
  'drain',
  'work',
  'interrupt',
  'ready',
  'soak',
] as const

export type GateName = (typeof gateNames)[number]

/**
 * What opens a gate and what to run for it. Commands are those of docs/usage/operations.md, with its variables in
 * quotes: `"$NODE"`.
 */
export type Remedy = { readonly remedy: string; readonly command: string }

/** A reason as `explain` shows it. `remedy` replaces that of the page. */
export type ClosedGate = Pick<Remedy, 'command'> &
  Partial<Remedy> & {
    readonly gate: GateName
    /** One word, for tools. */
    readonly cause: string
  }

/**
 * When a reason of a node will not end by itself: the condition `Stalled` depends on it. `by-attempts`: once the stage
 * has failed `finalAttempts` times.
 */
export type Stalls = 'never' | 'at-once' | 'by-attempts' | 'after-two-minutes' | 'after-ten-minutes'

/**
 * Failed attempts of one stage. The next ones come up to five minutes apart, and a stage that failed three times seldom
 * passes.
 */
export const finalAttempts = 3

/** An installation of several objects at once may create an object after the ones that name it. */
const refusedForMs = 2 * 60_000
/** As long as an agent may be silent: temporary failures, such as a restart of the bus, are over by then. */
const unusableForMs = 10 * 60_000

/** From when on it will not end by itself, if it started at `sinceMs`; Infinity: it will. */
export function stallsAtMs(stalls: Stalls, attempts: number, sinceMs: number): number {
  switch (stalls) {
    case 'never':
      return Infinity
    case 'at-once':
      return -Infinity
    case 'by-attempts':
      return attempts >= finalAttempts ? -Infinity : Infinity
    case 'after-two-minutes':
      return sinceMs + refusedForMs
    case 'after-ten-minutes':
      return sinceMs + unusableForMs
  }
}

/** For the reference page. */
export const stallsTexts: Readonly<Record<Stalls, string>> = {
  never: 'no',
  'at-once': 'yes',
  'by-attempts': 'after 3 attempts',
  'after-two-minutes': 'after 2 min',
  'after-ten-minutes': 'after 10 min',
}
