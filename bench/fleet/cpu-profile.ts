/** A CPU profile of this process, from a command until another one. Chrome's developer tools and speedscope open it. */
import { writeFile } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'

let session: Session | undefined

export async function startCpuProfile(): Promise<void> {
  session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.start')
}

/** Throws when none was started. */
export async function writeCpuProfile(file: string): Promise<void> {
  if (session === undefined) throw new Error('no profile was started')
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()
  session = undefined
  await writeFile(file, JSON.stringify(profile))
}
