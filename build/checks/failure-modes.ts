import type { Repository } from './repository.ts'

const page = 'docs/design/failure-modes.md'
/** As many as the study of other programs has found. */
const modes = 34

const proof = /^\* `([^`]+)` “([^”]+)”$/
const heading = /^### (\d+)\. /

/** Each failure mode without a test, and each test that does not exist under its title, as `page:line: problem`. */
export function failureModeProblems(repository: Repository): string[] {
  if (!repository.paths.includes(page)) return []
  const lines = repository.read(page).split('\n')
  const problems: string[] = []
  const proofs = new Map<number, number>()
  let mode = 0
  for (const [index, line] of lines.entries()) {
    const report = (problem: string): void => void problems.push(`${page}:${index + 1}: ${problem}`)
    const [, number] = heading.exec(line) ?? []
    if (number !== undefined) {
      mode = Number(number)
      if (proofs.has(mode)) report(`failure mode ${mode} is there twice`)
      proofs.set(mode, 0)
    }
    if (!line.startsWith('* ')) continue
    const [, path = '', title = ''] = proof.exec(line) ?? []
    if (!repository.paths.includes(path)) report(`the test file ${path} does not exist`)
    else if (hasTest(repository.read(path), title)) proofs.set(mode, (proofs.get(mode) ?? 0) + 1)
    else report(`${path} has no test “${title}”`)
  }
  const unproven = Array.from({ length: modes }, (_, index) => index + 1).filter((each) => !proofs.get(each))
  return [...problems, ...unproven.map((each) => `${page}: failure mode ${each} has no test`)]
}

/** The title as a whole string of the source. */
const hasTest = (source: string, title: string): boolean =>
  ["'", '"', '`'].some((quote) => source.includes(quote + title + quote))
