/** Lint rule: names in `src`, also those of files, use the words of the glossary. */
import { glossary, glossaryWords } from './glossary.ts'
import { type Context, type Node, nameOf, sourcePath } from './syntax.ts'

const named = {
  create(context: Context) {
    const file = sourcePath(context.filename)
    if (!file) return {}
    const check = (node: Node, name: string): void => {
      for (const word of glossaryWords(name))
        context.report({
          node,
          message: `"${name}" is named by "${word}": use ${glossary[word]} (build/lint/glossary.ts)`,
        })
    }
    const visit = (node: Node): void => check(node, nameOf(node))
    return {
      Program: (node: Node) => check(node, file.replace(/^src\//, '')),
      Identifier: visit,
      PrivateIdentifier: visit,
    }
  },
}

// oxlint-disable-next-line import/no-default-export -- the form of a plugin
export default { meta: { name: 'words' }, rules: { named } }
