/** Debian's Prometheus and its promtool. The package is downloaded once and kept in the cache; nothing is installed. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { PackagePin } from '../../build/debian-packages.ts'
import { programsOfPackage } from '../../build/debian-programs.ts'

const run = promisify(execFile)

/** Of Debian 12. A point release replaces it on the mirrors, and the newest one is taken then. */
const pin: PackagePin = {
  version: '2.42.0+ds-5+deb12u1',
  sha256: {
    amd64: '81d59a24fce84f7fbe97a45a4f2914b6a5881b5cd1db2a6a0e129e515e1a5f55',
    arm64: '', // never fetched by the pin
  },
}

/** Folder of the two programs. */
export const programs = (): string => programsOfPackage('prometheus', pin, ['prometheus', 'promtool'])

/** Runs promtool in a folder. Returns its output; throws with it unless it succeeds. */
export async function promtool(folder: string, ...parameters: readonly string[]): Promise<string> {
  try {
    const { stdout } = await run(join(programs(), 'promtool'), parameters, { cwd: folder, maxBuffer: 2 ** 26 })
    return stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { readonly stdout?: string; readonly stderr?: string }
    throw new Error(`promtool ${parameters.join(' ')}:\n${stdout}${stderr}`, { cause: error })
  }
}
