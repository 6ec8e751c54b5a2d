/** Agents of other versions, which differ from this one in the version of their journal. */
import { runAgent } from '../../../src/daemon/agent.ts'
import type { HostRoot } from '../../../src/host/fs/host-root.ts'
import { journalPath } from '../../../src/host/fs/journal-file.ts'
import { journalVersion } from '../../../src/schemas/journal.ts'

export type AgentVersion = 'older' | 'current' | 'newer'

type Versioned = { readonly v: number }
/** From a document on the disk to one that our program takes for one of its own version, and back. */
type Translation = { readonly read: (found: Versioned) => Versioned; readonly write: (ours: Versioned) => Versioned }

const versions: readonly AgentVersion[] = ['older', 'current', 'newer']

/** The newest document that an agent reads, and the one that it writes. Our program is the older one, as it is. */
export const journalVersionOf = (version: AgentVersion): number => journalVersion + versions.indexOf(version)

/** The program of an agent. Each version reads the journals of those before, and nothing but the number differs. */
export function programOf(version: AgentVersion): typeof runAgent {
  if (version === 'older') return runAgent
  const newest = journalVersionOf(version)
  const translation: Translation = {
    // what a newer one has written is newer than all that our program knows
    read: (found) => ({ ...found, v: found.v <= newest ? journalVersion : journalVersion + 1 }),
    write: (ours) => ({ ...ours, v: newest }),
  }
  return (settings, platform) => runAgent(settings, { ...platform, root: translated(platform.root, translation) })
}

function translated(root: HostRoot, { read, write }: Translation): HostRoot {
  const through = (content: string, of: (document: Versioned) => Versioned): string => {
    let document: Versioned
    try {
      document = JSON.parse(content) as Versioned
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
