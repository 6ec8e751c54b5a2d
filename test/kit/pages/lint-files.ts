import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const repository = join(import.meta.dirname, '..', '..', '..')

type Report = { readonly diagnostics: readonly { readonly code: string; readonly message: string; filename: string }[] }

/** Lints files of these paths and texts with this project's rules. Gives each path's findings as `rule: message`. */
export function lintFiles(files: Readonly<Record<string, string>>): Record<string, string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'skyhookd-lint-'))
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    const { stdout } = spawnSync('oxlint', ['-c', join(repository, '.oxlintrc.json'), '-f', 'json', '.'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    })
    const found = Object.fromEntries(Object.keys(files).map((path): [string, string[]] => [path, []]))
    for (const { code, message, filename } of (JSON.parse(stdout) as Report).diagnostics)
      found[filename]?.push(`${code}: ${message}`)
    return found
  } finally {
    rmSync(folder, { recursive: true })
  }
}
