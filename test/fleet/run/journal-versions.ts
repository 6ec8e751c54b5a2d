/** Agents of other versions, which differ from this one in the version of their journal. */
import { runAgent } from '../../../src/daemon/agent.ts'
import type { HostRoot } from '../../../src/host/fs/host-root.ts'
import { journalPath } from '../../../src/host/fs/journal-file.ts'
import { journalVersion } from '../../../src/schemas/journal.ts'

export type AgentVersion = 'older' | 'current' | 'newer'

/** The program of an agent whose journal has the version before, this one, or the next. */
export function programOf(version: AgentVersion): typeof runAgent {
  if (version === 'current') return runAgent
  const [read, written] = version === 'newer' ? [readByNewer, journalVersion + 1] : [readByOlder, journalVersion]
  return (settings, platform) => runAgent(settings, { ...platform, root: translated(platform.root, read, written) })
}

/** It reads its own documents and upgrades ours. */
const readByNewer = (found: number): number => (found === journalVersion + 1 ? journalVersion : found)
/** What we have written is newer than all that it knows. */
const readByOlder = (found: number): number => found + 1

function translated(root: HostRoot, read: (found: number) => number, written: number): HostRoot {
  const renumber = (content: string, of: (version: number) => number): string =>
    content.replace(/^(\{"v":)(\d+)/, (_, start: string, digits: string) => `${start}${of(Number(digits))}`)
  return {
    ...root,
    async readFile(path) {
      const content = await root.readFile(path)
      return path === journalPath ? Buffer.from(renumber(content.toString(), read)) : content
    },
    async writeFileDurable(path, content, ...rest) {
      const text = path === journalPath ? renumber(content.toString(), () => written) : content
      await root.writeFileDurable(path, text, ...rest)
    },
  }
}
