/** Bugs in what a node does with its packages: src/stages/package, src/stages/interrupt and what they record. */
import { corrections, edit, type Mutant, randomLives, specChanges } from '../mutant.ts'

/** Steps of a package that fail until its spec is corrected. */
const correctionBugs: readonly Mutant[] = [
  {
    name: 'a correction does not reach a failing post-interrupt',
    edits: [
      edit(
        'stages/package/next-stage.ts',
        "progress.stage === 'post-interrupt' && progress.state !== 'running'",
        "progress.stage === 'post-interrupt' && progress.state === 'complete'",
      ),
    ],
    caughtBy: [corrections(/never complete/)],
  },
  {
    name: 'a correction does not reach a failing interrupt',
    edits: [
      edit('stages/interrupt/pending.ts', "if (progress.state !== 'retrying' || isSame) return false", 'return false'),
    ],
    caughtBy: [corrections(/never complete/)],
  },
  {
    name: 'a correction does not reach a failing uninstall',
    edits: [
      edit(
        'stages/package/start-stage.ts',
        'spec && !runsConfig(stage) && isEdited(entry, spec) ? inputsOf(spec) : entry.uninstallInputs',
        'entry.uninstallInputs',
      ),
    ],
    caughtBy: [corrections(/never complete/)],
  },
  {
    name: 'the uninstall of a removed package is retried forever',
    edits: [
      edit('stages/package/next-stage.ts', 'const maxUninstallAttempts = 3', 'const maxUninstallAttempts = Infinity'),
    ],
    caughtBy: [corrections(/never complete/)],
  },
  {
    name: 'a package is left behind after its first failed uninstall',
    edits: [edit('stages/package/next-stage.ts', 'const maxUninstallAttempts = 3', 'const maxUninstallAttempts = 1')],
    caughtBy: [corrections(/is left behind after 1 failed uninstalls/)],
  },
  {
    name: 'the files of a package count as right because an earlier step was skipped',
    edits: [
      edit(
        'stages/package/attempt.ts',
        "result?.result === 'ok' || (result?.result === 'failed' && !result.unstarted)",
        'result !== undefined',
      ),
    ],
    caughtBy: [corrections(/never complete/)],
  },
  {
    name: 'a package whose first step failed is forgotten',
    edits: [
      edit(
        'stages/model/transitions.ts',
        "progress: { ...entry.progress, state: 'retrying', failure, retryAtMs }",
        "...(entry.progress.stage === 'apply' && { untouched: true }),\n" +
          "    progress: { ...entry.progress, state: 'retrying', failure, retryAtMs }",
      ),
    ],
    caughtBy: [corrections(/was not uninstalled|complete is published/)],
  },
]

export const packageBugs: readonly Mutant[] = [
  ...correctionBugs,
  {
    name: 'a package does not wait for those that it depends on',
    edits: [
      edit(
        'stages/package/advance-package.ts',
        "if (stage !== 'uninstall' && spec && !areDependenciesComplete(builder, spec)) return { state: 'dependency' }",
        '',
      ),
    ],
    caughtBy: [randomLives(/on which it depends, is complete/)],
  },
  {
    name: 'the packages of a serial Skyhook run concurrently',
    edits: [edit('stages/package/advance-package.ts', 'view.spec.serial === true &&', 'false &&')],
    caughtBy: [randomLives(/serial/)],
  },
  {
    name: 'the results of steps are forgotten',
    edits: [
      edit(
        'stages/model/transitions.ts',
        'return { ...entry, progress: { ...entry.progress, attempt } }',
        'const steps = attempt.steps.length > 1 ? [] : attempt.steps\n' +
          '  return { ...entry, progress: { ...entry.progress, attempt: { ...attempt, steps } } }',
      ),
    ],
    caughtBy: [randomLives(/runs again|started twice|differs?|does not settle/)],
  },
  {
    name: 'a package is complete after its apply',
    edits: [
      edit(
        'stages/package/next-stage.ts',
        "case 'upgrade':\n      return begin(entry, 'config')",
        "case 'upgrade':\n      return nothingDue",
      ),
    ],
    caughtBy: [randomLives(/complete is published|never complete|differs?/)],
  },
  {
    name: 'a package is complete without its interrupt',
    edits: [
      edit(
        'stages/package/next-stage.ts',
        "return pendingInterrupt ? begin(entry, 'interrupt') : nothingDue",
        'return nothingDue',
      ),
    ],
    caughtBy: [randomLives(/complete is published/)],
  },
  {
    name: 'the interrupts of a configuration that changed are forgotten',
    edits: [
      edit(
        'stages/interrupt/pending.ts',
        'spec && entry.config?.finished ? pendingForConfigChange(entry, spec) : entry.pendingInterrupt',
        'entry.pendingInterrupt',
      ),
    ],
    caughtBy: [specChanges(/ before |complete/)],
  },
  {
    name: 'every package is understood to require no interrupt',
    edits: [edit('stages/interrupt/pending.ts', 'if (status.requests.interrupt)', 'if (false)')],
    caughtBy: [randomLives(/complete is published|is complete$/m)],
  },
  {
    name: 'every package is understood to require an interrupt',
    edits: [edit('stages/interrupt/pending.ts', 'if (status.requests.interrupt)', 'if (true)')],
    caughtBy: [randomLives(/an interrupt runs that no package requires/)],
  },
  {
    name: 'a boot that did not happen stands for an interrupt that a package requires',
    edits: [
      edit('stages/interrupt/pending.ts', 'earlier !== undefined && earlier !== bootId', 'earlier !== undefined'),
    ],
    caughtBy: [randomLives(/runs after config|complete is published|differs?/)],
  },
  {
    name: 'a package that is complete runs again now and then',
    edits: [
      edit(
        'stages/package/advance-package.ts',
        'if (!isRunRequested(builder, spec, entry)) return',
        'if (builder.snapshot.nowMs % 7 > 0 && !isRunRequested(builder, spec, entry)) return',
      ),
    ],
    caughtBy: [randomLives(/although the package was complete|never complete|differs?/)],
  },
  {
    name: 'a step that is no longer wanted is never stopped',
    edits: [
      edit(
        'stages/package/cancel.ts',
        'canceling: step ? withCanceled(record, step, entry.name) : record.canceling',
        'canceling: record.canceling',
      ),
    ],
    caughtBy: [randomLives(/beside another step|differs?/)],
  },
]
