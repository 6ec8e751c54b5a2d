import { expect, test } from 'vitest'
import { seedOf } from '../kit/effort.ts'
import type { Fault } from '../kit/api-server/faults.ts'
import { FaultyLives, type Finding, type FaultPlan, type LivesOptions } from '../kit/faulty-lives.ts'

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
    /^readText \/(proc|etc|sys|run\/systemd)\/|\.preflight$|^(mkdirp|realPath) \/(var\/lib\/skyhook(\/\.agent)?|var\/log\/skyhook|run\/skyhook)$/,
  'a poll while nothing is to do: the log says it': /\/s\/status$/,
  'housekeeping that is repeated later: the log says it':
    /^(list .*(root-files|\.agent\/output|\/skyhook\/s)|readdir .*\/\.agent|remove .*-UID-1)$/,
  'a published record that nothing reads: the log says it': /flags\/START$/,
  'how earlier steps ended, which only people read: the log says it':
    /^(readText|writeFile) .*\/\.agent\/ended-steps\.json$/,
  'whose a log is, which only the pruning of logs reads: it counts as the log of no known package':
    /^writeFile .*\/\.agent\/step-logs\.json$/,
  'the count of crashes, without which the agent does not stand down: the log says it':
    /^(readText|writeFile|remove) \/run\/skyhook\/crash-loop$|^makeFolder \/run\/skyhook$/,
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
 * Work that ended meanwhile needs no reason: the slot that was being renewed goes back next, what a step printed is
 * removed later, labels that no later step has to see are not written again, and a LIST of slots matters only to a node
 * that needs one.
 */
const overtaken = [
  /^PUT .*\/leases\/SLOT$/,
  /^GET .*\/leases$/,
  /^remove .*\/\.agent\/output\/ID\.log$/,
  /^writeFile .*\/labels\.json$/,
]
const isOvertaken = ({ kind, reported, isComplete }: Finding): boolean =>
  isComplete && reported === 'log' && overtaken.some((pattern) => pattern.test(kind))

type Round = Finding & { readonly life: number }

/** Lives, until a whole one meets nothing new. Every agent has to complete and to uninstall in each of them. */
async function findings(faultPlans: readonly FaultPlan[], options: LivesOptions): Promise<readonly Round[]> {
  const all: Round[] = []
  for (let count = -1; count !== all.length; ) {
    count = all.length
    using lives = await FaultyLives.start(faultPlans, options)
    expect(await lives.pass(30_000_000, () => lives.areAllComplete()), lives.describe()).toBe(true)
    await lives.removePackage()
    expect(await lives.pass(30_000_000, () => lives.areAllUninstalled()), lives.describe()).toBe(true)
    all.push(...lives.lives.flatMap((life, index) => life.findings.map((finding) => ({ ...finding, life: index }))))
  }
  return all
}

const silent = (found: readonly Round[], unreported: Readonly<Record<string, RegExp>>): readonly Round[] =>
  found.filter(
    (finding) =>
      finding.reported !== 'reason' &&
      !isOvertaken(finding) &&
      !Object.values(unreported).some((pattern) => pattern.test(finding.kind)),
  )

/** Of answers: those of a server that has nothing to do, and those of a busy one. */
const latenciesMs = [10, 300]

test.for(latenciesMs)(
  'a file operation that fails is a reason on the Node within ten seconds, and work completes after it (%i ms)',
  async (maxLatencyMs) => {
    const seen = new Set<string>() // together they meet each kind once
    const faultPlans = Array.from({ length: 6 }, () => ({ files: errnosFor(seed), seen }))
    const found = await findings(faultPlans, { seed, maxLatencyMs })
    expect(silent(found, unreportedFiles)).toEqual([])
    expect(found.length).toBeGreaterThan(140)
    expect(found.filter(({ failures }) => failures > 20)).toEqual([])
  },
)

const status =
  (code: number, retryAfterSeconds?: number) =>
  (message: string): Fault => ({
    kind: 'refuse',
    code,
    message,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })
const oneOfEachKind: readonly ((name: string) => Fault)[] = [
  status(403),
  status(409),
  status(429, 3),
  status(500),
  () => ({ kind: 'lose-request' }),
  () => ({ kind: 'silent' }),
]
/** 404 is an answer: the Secret, the pod or the slot is not there. */
const others = [status(429), ...[400, 401, 410, 413, 415, 422, 503, 504].map((code) => status(code))]
const answers = seed === 0 ? oneOfEachKind : [...oneOfEachKind, ...others]

const refused = (faults: typeof answers): readonly FaultPlan[] =>
  faults.map((requests) => ({ requests, seen: new Set<string>() }))

test.for(latenciesMs)(
  'a request that is not answered well is a reason on the Node within ten seconds, and work completes after it (%i ms)',
  async (maxLatencyMs) => {
    const found = await findings(refused(answers), { seed, maxLatencyMs })
    expect(silent(found, unreportedRequests)).toEqual([])
    expect(found.length).toBeGreaterThan(100)
    // a refused precondition is looked at and repeated six times before it counts as a failure
    expect(found.filter(({ failures }) => failures > 40)).toEqual([])
  },
)

test('the lives of one seed are the same each time', async () => {
  const once = async (): Promise<readonly Round[]> => await findings(refused([status(503)]), { seed, maxLatencyMs: 50 })
  expect(await once()).toEqual(await once())
})
