import { nameResolver, type Repository } from './repository.ts'

const code = /^(src|test|build|bench|demo|bin|\.ci)\/.*(\.(ts|sh)|\/\w+)$|^(Makefile|[^/]+\.ts)$/
/** Tests of checks make up files of their own. */
const exempt = /^build\/(lint|checks)\/.*\.test\.ts$/

/** A source file or page by its name or path; no shell scripts, since those of packages exist on hosts only. */
const fileName = /(?<![\w$/@.*{}~-])((?:\.{0,2}\/)?(?:[\w.-]+\/)*[\w-][\w.-]*\.(?:ts|md))(?![\w*])/g
/** A folder, or a file of another kind, by its path from the root. */
const rootedName = /(?<![\w$/@.*-])((?:src|build|bench|demo|docs|chart|crds)\/(?:[\w.-]+\/?)+)(?![\w*{$])/g
const rootedInComment = /(?<=(?:\/\/|\*|#).*)(?<![\w$/@.*-])(test\/(?:[\w.-]+\/?)+)(?![\w*{$])/g

/** Each file or folder that code or its comments name and that does not exist, as `file:line: name`. */
export function missingFiles(repository: Repository): string[] {
  const exists = nameResolver(repository)
  return repository.paths
    .filter((path) => code.test(path) && !exempt.test(path))
    .flatMap((path) =>
      repository
        .read(path)
        .split('\n')
        .flatMap((line, index) =>
          [fileName, rootedName, rootedInComment]
            .flatMap((pattern) => [...line.matchAll(pattern)])
            .map(([, name = '']) => name.replace(/[./]+$/, ''))
            .filter((name) => !name.startsWith('/') && !exists(name, path))
            .filter((name, at, all) => all.indexOf(name) === at)
            .map((name) => `${path}:${index + 1}: ${name} does not exist`),
        ),
    )
}
