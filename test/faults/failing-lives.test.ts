import { expect, test } from 'vitest'
import { isThorough, seedOf } from '../support/effort.ts'
import type { Fault } from '../support/fake-api-server.ts'
import { FaultyLives, type Finding, type FaultPlan } from '../support/faulty-lives.ts'

/** What the file system of a host may answer. ENOENT and ENOTDIR are left out: they say that nothing is there. */
const errnos = (
  'EPERM EIO ENXIO EAGAIN ENOMEM EACCES EBUSY EXDEV ENODEV EISDIR EINVAL ENFILE EMFILE ETXTBSY EFBIG ENOSPC EROFS ' +
  'EMLINK ENAMETOOLONG ENOSYS ENOTEMPTY ELOOP EOVERFLOW EOPNOTSUPP ETIMEDOUT ESTALE EDQUOT EBADF EINTR'
).split(' ')

/**
 * Each kind of operation meets one errno and each kind of request six answers; the ways from there on are common to all
 * (src/daemon/failures/reason-of.test.ts). Under every `SEARCH_SEED` from 0 to 28 the operations meet other errnos, and
 * from 1 on the requests all refusals.
 */
const seed = seedOf(0)
const errnosFor = (shift: number): readonly string[] =>
  errnos.map((_, index) => errnos[(index + shift) % errnos.length] ?? '')

/** Failures that need no reason on the Node, and why. */
const unreportedFiles: Readonly<Record<string, RegExp>> = {
  'nothing may be written to the Node before the host is claimed: the log says it':
    /agent\.sock|mkdirp \/run\/skyhook$/,
  'a look at the host, which concerns only work that is to start (preflight has its own tests)':
    /^readText \/(proc|etc|sys)\/|\.preflight$|^(mkdirp|realPath) \/(var\/lib\/skyhook(\/\.agent)?|var\/log\/skyhook|run\/skyhook)$/,
  'a poll while nothing is to do: the log says it': /\/s\/status$/,
  'housekeeping that is repeated later: the log says it':
    /^(list .*(root-files|\.agent\/output|\/skyhook\/s)|readdir .*\/\.agent|remove .*-UID-1)$/,
  'a published record that nothing reads: the log says it': /flags\/START$/,
  'how earlier steps ended, which only people read: the log says it':
    /^(readText|writeFile) .*\/\.agent\/ended-steps\.json$/,
  'steady time of the next agent, whose waits start over without it: the log says it':
    /^(readText|writeFile) \/run\/skyhook\/steady-time$|^makeFolder \/run\/skyhook$/,
  'the count of crashes, without which the agent does not stand down: the log says it':
    /^(readText|writeFile|remove) \/run\/skyhook\/crash-loop$/,
}
const unreportedRequests: Readonly<Record<string, RegExp>> = {
  'without the Node there is only the log': /^(GET|PATCH|WATCH) \/api\/v1\/nodes/,
  'a watch that passes: the last state is still right, and the log says it': /^(GET|WATCH) .*\/(skyhooks|pods)$/,
  'Events are dropped and counted in the metric of requests': /\/events/,
  'the watch of the own slots: the answers to its own requests are known without it': /^WATCH .*\/leases$/,
  'a look after a lost answer, which the next attempt replaces': /^GET .*\/leases\/SLOT$/,
  'the election is the work of no single node: the log says it': /(GET|PUT|DELETE) .*\/leases\/ELECTION$/,
}

/**
 * Work that ended meanwhile needs no reason: the slot that was being renewed goes back next, and what a step printed is
 * removed later.
 */
const overtaken = /^PUT .*\/leases\/SLOT$|^remove .*\/\.agent\/output\/ID\.log$/
const isOvertaken = ({ kind, reported, isComplete }: Finding): boolean =>
  isComplete && reported === 'log' && overtaken.test(kind)

/** A Node shows one reason: that another step of the package cannot be recorded hides that this one cannot. */
const isBehindAnother = ({ kind, reported, shown }: Finding): boolean =>
  reported === 'log' &&
  /\/(\.agent\/output|var\/log\/skyhook|run\/skyhook)\//.test(kind) &&
  /cannot record /.test(shown ?? '')

type Round = Finding & { readonly life: number }

/** Lives, until a whole one meets nothing new. Every agent has to complete and to uninstall in each of them. */
async function findings(faultPlans: readonly FaultPlan[]): Promise<readonly Round[]> {
  const all: Round[] = []
  for (let count = -1; count !== all.length; ) {
    count = all.length
    await using lives = await FaultyLives.start(faultPlans)
    expect(await lives.pass(3_000_000, () => lives.areAllComplete()), lives.describe()).toBe(true)
    lives.removePackage()
    expect(await lives.pass(3_000_000, () => lives.areAllUninstalled()), lives.describe()).toBe(true)
    all.push(...lives.lives.flatMap((life, index) => life.findings.map((finding) => ({ ...finding, life: index }))))
  }
  return all
}

const silent = (found: readonly Round[], unreported: Readonly<Record<string, RegExp>>): readonly Round[] =>
  found.filter(
    (finding) =>
      finding.reported !== 'reason' &&
      !isOvertaken(finding) &&
      !isBehindAnother(finding) &&
      !Object.values(unreported).some((pattern) => pattern.test(finding.kind)),
  )

test.skipIf(!isThorough)(
  'a file operation that fails is a reason on the Node within ten seconds, and work completes after it',
  async () => {
    const seen = new Set<string>() // together they meet each kind once
    const found = await findings(Array.from({ length: 6 }, () => ({ files: errnosFor(seed), seen })))
    expect(silent(found, unreportedFiles)).toEqual([])
    expect(found.length).toBeGreaterThan(140)
    expect(found.filter(({ failures }) => failures > 20)).toEqual([])
  },
)

const status =
  (code: number, retryAfterSeconds?: number) =>
  (message: string): Fault => ({
    kind: 'status',
    status: code,
    message,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })
const oneOfEachKind: readonly ((name: string) => Fault)[] = [
  status(403),
  status(409),
  status(429, 3),
  status(500),
  () => ({ kind: 'reset' }),
  () => ({ kind: 'silent' }),
]
/** 404 is an answer: the Secret, the pod or the slot is not there. */
const others = [status(429), ...[400, 401, 410, 413, 415, 422, 503, 504].map((code) => status(code))]
const answers = seed === 0 ? oneOfEachKind : [...oneOfEachKind, ...others]

test.skipIf(!isThorough)(
  'a request that is not answered well is a reason on the Node within ten seconds, and work completes after it',
  async () => {
    const found = await findings(answers.map((requests) => ({ requests, seen: new Set<string>() })))
    expect(silent(found, unreportedRequests)).toEqual([])
    expect(found.length).toBeGreaterThan(100)
    // a refused precondition is looked at and repeated six times before it counts as a failure
    expect(found.filter(({ failures }) => failures > 40)).toEqual([])
  },
)
