import { expect, test } from 'vitest'
import { modulePage, modulePageProblems } from './module-page.ts'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'

const page = (...folders: string[]): string => folders.map((folder) => `| \`${folder}\` | some text |\n`).join('')
const files = { 'src/kube/watch.ts': '', 'src/daemon/executors/steps/run.ts': '', 'test/e2e/setup.ts': '' }

const problems = (...folders: string[]): string[] =>
  modulePageProblems(repositoryOf({ ...files, [modulePage]: page(...folders) }))

test('a module page with every folder passes', () => {
  expect(problems('src/kube', 'src/daemon/executors', 'test/e2e')).toEqual([])
  expect(problems('src/kube', 'src/daemon', 'src/daemon/executors/steps', 'src/daemon/executors', 'test/e2e')).toEqual(
    [],
  )
})

test('a folder that the module page lacks is reported', () => {
  expect(problems('src/kube', 'test/e2e')).toEqual([`${modulePage} lacks src/daemon/executors`])
})

test('a folder of the module page that does not exist is reported', () => {
  expect(problems('src/kube', 'src/daemon/executors', 'test/e2e', 'src/daemon/rooms')).toEqual([
    `${modulePage}: src/daemon/rooms does not exist`,
  ])
})
