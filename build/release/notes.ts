/** The notes of a release, from its section of CHANGELOG.md. */

/**
 * The section of a version, as a page of its own.
 * @throws Error where the changelog has no section for the version, or one without a change
 */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^(?=## )/m)
  const section = sections.find((text) => headingOf(text) === version)
  if (section === undefined)
    throw new Error(`CHANGELOG.md has no section "## ${version}": give what is below "## Unreleased" that heading`)
  const body = section.slice(section.indexOf('\n') + 1).trim()
  if (!/^[*-] /m.test(body))
    throw new Error(`the section "## ${version}" of CHANGELOG.md lists no change: say what a user notices`)
  return `# skyhookd ${version}\n\n${body.replaceAll(/^###/gm, '##')}\n`
}

/** `## 0.1.0`, also in brackets and with its date: `## [0.1.0] - 2026-12-01`. */
const headingOf = (section: string): string | undefined => /^## \[?([^\]\s]+)/.exec(section)?.[1]
