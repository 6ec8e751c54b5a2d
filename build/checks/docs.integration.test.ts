import { expect, test } from 'vitest'
import { wrongNames } from './docs.ts'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'
import { workingTree } from './working-tree.ts'

const real = workingTree()

/** A page of this text in the real repository, whose Makefile, definitions and sources it is held against. */
function problemsOf(text: string): string[] {
  const other = repositoryOf({ 'docs/usage/some.md': text })
  return wrongNames({
    paths: [...real.paths.filter((path) => !path.endsWith('.md')), 'README.md', 'docs/usage/some.md'],
    read: (path) =>
      path === 'docs/usage/some.md' ? other.read(path) : path.endsWith('.md') ? '# Status\n' : real.read(path),
  }).map((problem) => problem.replace(/^[^ ]+ /, ''))
}

test.each([
  ['a link', '[more](../usage/gone.md)', 'the link ../usage/gone.md leads nowhere'],
  ['an anchor', '[more](../../README.md#gone)', 'README.md has no heading #gone'],
  ['a make target', 'run `make everything`', 'there is no make target everything'],
  ['a make target in a block', 'make everything', 'there is no make target everything'],
  ['a command of bin/sandbox', '`bin/sandbox explode node-1`', 'there is no command of bin/sandbox explode'],
  ['a script', '`node build/gone.ts`', 'build/gone.ts does not exist'],
  ['a folder', 'see `src/rooms`', 'src/rooms does not exist'],
  ['a project of vitest', '`npx vitest run --project fast`', 'there is no project of vitest fast'],
  ['a field of the spec', '`spec.packges`', 'there is no field spec.packges'],
  ['a field below another', '`interruptionBudget.maximum`', 'there is no field interruptionBudget.maximum'],
  ['a value of the chart', '`drain.skipNamespace`', 'there is no field drain.skipNamespace'],
  ['a value that is set', 'helm install --set image.repo=x', 'there is no field image.repo'],
  ['an annotation', '`skyhook.nvidia.com/pauze=true`', 'no key skyhook.nvidia.com/pauze is used'],
  ['a removal of an annotation', '`skyhook.nvidia.com/hosd-`', 'no key skyhook.nvidia.com/hosd is used'],
  ['a metric', '`skyhookd_hold_seconds`', 'there is no metric skyhookd_hold_seconds'],
  ['a variable', '`SKYHOOK_GONE_DIR`', 'no variable SKYHOOK_GONE_DIR is read or set'],
])('%s that does not exist is reported', (_, text, problem) => {
  expect(problemsOf(text)).toEqual([problem])
})

test.each([
  '[more](../../README.md#status), [the web](https://example.com/x.md), `make check`, `SANDBOX=a bin/sandbox up 1`',
  '`node build/image.ts --push registry.example.com/packages/some:1.0.0`, `npx vitest run --project unit src/lease`',
  '`spec.packages`, `interruptionBudget.maxCount`, `drain.skipNamespaces`, `image.repository`, `uninstall.enabled`',
  '`skyhook.nvidia.com/pause=true`, `skyhook.nvidia.com/status_tuning`, `skyhook.nvidia.com/updates/os-update`',
  '`skyhookd_slot_hold_duration_seconds_bucket`, `SKYHOOK_ROOT_DIR`',
])('names that exist pass: %s', (text) => {
  expect(problemsOf(text)).toEqual([])
})
