/** Agents of other versions, which differ from this one in the version of their journal. */
import { runAgent } from '../../../src/daemon/agent.ts'
import type { HostRoot } from '../../../src/host/fs/host-root.ts'
import { journalPath } from '../../../src/host/fs/journal-file.ts'
import { upgradeJournal } from '../../../src/schemas/journal-v1.ts'
import { type Journal, journalVersion } from '../../../src/schemas/journal.ts'
import { downgradeJournal } from './journal-v1.ts'

export type AgentVersion = 'older' | 'current' | 'newer'

type Versioned = { readonly v: number }
/** From a document on the disk to one that our program takes for one of its own version, and back. */
type Translation = { readonly read: (found: Versioned) => Versioned; readonly write: (ours: Journal) => Versioned }

/** The newest document that an agent reads, and the one that it writes. */
export const journalVersionOf = (version: AgentVersion): number =>
  journalVersion + (version === 'older' ? -1 : version === 'newer' ? 1 : 0)

const translations: Readonly<Record<Exclude<AgentVersion, 'current'>, Translation>> = {
  older: {
    // what we have written is newer than all that it knows
    read: (found) => (found.v < journalVersion ? upgradeJournal(found) : { ...found, v: found.v + 1 }),
    write: downgradeJournal,
  },
  newer: {
    read: (found) => (found.v > journalVersion ? { ...found, v: found.v - 1 } : found),
    write: (ours) => ({ ...ours, v: journalVersion + 1 }),
  },
}

/** The program of an agent whose journal has the version before, this one, or the next. */
export function programOf(version: AgentVersion): typeof runAgent {
  if (version === 'current') return runAgent
  const translation = translations[version]
  return (settings, platform) => runAgent(settings, { ...platform, root: translated(platform.root, translation) })
}

function translated(root: HostRoot, { read, write }: Translation): HostRoot {
  const through = (content: string, of: (document: Journal) => Versioned): string => {
    let document: Journal
    try {
      document = JSON.parse(content) as Journal
    } catch {
      return content // damaged: every version sees it so
    }
    return `${JSON.stringify(of(document))}\n`
  }
  return {
    ...root,
    async readFile(path) {
      const content = await root.readFile(path)
      return path === journalPath ? Buffer.from(through(content.toString(), read)) : content
    },
    async writeFileDurable(path, content, ...rest) {
      const text = path === journalPath ? through(content.toString(), write) : content
      await root.writeFileDurable(path, text, ...rest)
    },
  }
}
