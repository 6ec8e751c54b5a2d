/** Lint rule: which folder of `test` may import which. Tiers share the kit and the promises, never each other. */
import { dirname, join } from 'node:path'
import { type Context, eachImport, repositoryPath } from './syntax.ts'

/** Folder → the folders of `test` that it may import, beside its own. `src` is a unit test beside its source. */
const rows: Readonly<Record<string, readonly string[]>> = {
  src: ['kit', 'fixtures'],
  fixtures: ['kit'],
  sandbox: [],
  promises: ['kit'],
  // puts deliberate bugs into the product, which other tiers must catch
  mutants: ['fleet', 'kit'],
  // a run of the simulated fleet has its judges beside it
  kit: ['fixtures', 'promises', 'sandbox'],
}
/** What a tier may import. */
const everyTier = ['fixtures', 'kit', 'promises', 'sandbox']

const folderOf = (file: string): string | undefined => /^(?:test\/([^/]+)\/|(src)\/)/.exec(file)?.slice(1).find(Boolean)

const apart = {
  create(context: Context) {
    const file = repositoryPath(context.filename)
    const folder = folderOf(file)
    if (folder === undefined) return {}
    return eachImport((node, from) => {
      const target = from.startsWith('.') ? join(dirname(file), from) : ''
      const other = target.startsWith('test/') ? folderOf(target) : folder
      if (other === undefined || other === folder || (rows[folder] ?? everyTier).includes(other)) return
      const message = `${folder} may not import test/${other}: what tiers share is in test/kit (build/lint/tiers.ts)`
      context.report({ node, message })
    })
  },
}

// oxlint-disable-next-line import/no-default-export -- the form of a plugin
export default { meta: { name: 'tiers' }, rules: { apart } }
