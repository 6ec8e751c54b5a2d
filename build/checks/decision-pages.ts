import type { Repository } from './repository.ts'

const folder = 'docs/design/decisions/'
/** A page that is read in two minutes. History and measurements have a page beside it. */
const maxLines = 80

/** Each decision page that is too long or lacks its date, the decision or what was rejected, as `page: problem`. */
export function decisionPageProblems(repository: Repository): string[] {
  return repository.paths
    .filter((path) => path.startsWith(folder))
    .flatMap((path) => {
      const text = repository.read(path)
      const lines = text.trimEnd().split('\n').length
      return [
        ...(lines > maxLines ? [`has ${lines} lines, more than ${maxLines}: move figures and history beside it`] : []),
        ...(/^\*\d{4}-\d\d-\d\d/m.test(text) ? [] : ['lacks its date']),
        ...(text.includes('**Decision.**') ? [] : ['lacks the paragraph **Decision.**']),
        ...(text.includes('Rejected') ? [] : ['does not say what was rejected']),
      ].map((problem) => `${path}: ${problem}`)
    })
}
