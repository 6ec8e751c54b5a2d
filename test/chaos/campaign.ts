/**
 * `make chaos`: five real hosts, two rollouts that never end, and a fault or an edit every few seconds. Judged from
 * everything that was recorded, when the faults have ended and all is complete. Ends with `N passed, N failed`: a check
 * counts as one.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openPassed } from '../../build/campaigns.ts'
import { adminTransport } from '../kit/cluster/kube.ts'
import { everywhere } from '../promises/all.ts'
import { judgeRecord } from '../kit/recorded/judge.ts'
import { sandbox, type Sandbox } from '../sandbox/sandbox.ts'
import { record } from '../kit/history.ts'
import type { Arena } from './arena.ts'
import { collect } from '../kit/recorded/collect.ts'
import type { Deletion } from '../kit/recorded/evidence.ts'
import { faultsIn, planOf } from './plan.ts'
import { countsOf, print, reasonsOf, writeReport } from './report.ts'
import { awaitCompletion, runPlan } from './run.ts'
import { setUpScene } from './scene.ts'

const usage = `usage: node test/chaos/campaign.ts [--minutes N] [--seed N] [--record] [--keep]

  --minutes N  how long faults and edits come (default 10); booting and the last rollouts take two more
  --seed N     the same choice of faults and edits as another run
  --record     leave the record in dist/chaos-SEED after a success, too
  --keep       leave the sandbox up (SANDBOX=name, default chaos)
`
const hostCount = 5

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(Date.now() % 100_000) },
      record: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)]
  if (values.help || !(minutes > 0) || !Number.isInteger(seed)) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }
  if (process.getuid?.() !== 0) {
    console.log('failed: chaos needs root for network namespaces and systemd hosts: run sudo make chaos')
    return 1
  }
  const chaos = await openPassed('chaos')
  const box = sandbox(process.env['SANDBOX'] ?? 'chaos')
  if (!values.keep) removeAtExit(box)
  log(`seed ${seed}: booting ${hostCount} hosts`)
  await bootSandbox(box)
  const api = adminTransport(join(box.folder, 'recorder.kubeconfig'))
  const history = await record(api)
  const deletions: Deletion[] = []
  const arena: Arena = {
    box,
    api,
    history,
    registry: box.env()['REGISTRY'] ?? '',
    nodes: [...history.now.nodes.keys()].sort(),
    busy: new Set(),
    ownVersions: new Set(),
    registerDeletion: (deletion) => deletions.push(deletion),
  }
  try {
    await setUpScene(arena)
    log(`faults and edits for ${minutes} min`)
    const actions = await runPlan(arena, planOf(seed, minutes * 60_000), log)
    log('everything heals')
    const open = await awaitCompletion(arena)
    log('judging')
    const faults = faultsIn(actions, arena.nodes)
    const evidence = await collect(arena, { faults, deletions, ownVersions: arena.ownVersions })
    const findings = [
      ...judgeRecord(evidence, everywhere),
      {
        name: 'completes',
        checked: 1,
        violations: open.map((text) => ({ atMs: evidence.endedMs, text })),
      },
    ]
    const [passed, failed] = print(actions, findings)
    if (failed > 0 || values.record)
      log(`the record is in ${await writeReport(arena, seed, actions, findings, evidence)}`)
    const isGood = failed === 0 && countsOf(actions).done > 0
    if (isGood) chaos.add(`seed ${seed}: ${minutes} min`)
    else console.log(`again: make chaos MINUTES=${minutes} SEED=${seed} # ${reasonsOf(findings).join('; ')}`)
    console.log(`${passed} passed, ${failed} failed`)
    return isGood ? 0 : 1
  } finally {
    history.stop()
    api.close()
  }
}

async function bootSandbox(box: Sandbox): Promise<void> {
  if (!existsSync(join(box.folder, 'env'))) {
    await box.must(['down']) // what a killed run left
    await box.must(['up', String(hostCount)], { env: { RECORDER: '1' } })
  }
  const folder = join(import.meta.dirname, '../fixtures/packages/shellscript')
  for (const version of ['1.1.0', '1.1.1']) await box.must(['push', folder, `skyhook-packages/shellscript:${version}`])
}

/** However it ends: an exit handler cannot wait for promises. */
function removeAtExit(box: Sandbox): void {
  process.once('exit', () => {
    spawnSync(join(import.meta.dirname, '../../bin/sandbox'), ['down'], {
      env: { ...process.env, SANDBOX: box.name },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
}

const startedMs = Date.now()
function log(text: string): void {
  console.log(`+${((Date.now() - startedMs) / 1000).toFixed(1).padStart(6)} s  ${text}`)
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(error)
  console.log('0 passed, 1 failed')
  process.exitCode = 1
}
