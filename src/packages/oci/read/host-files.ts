import type { HostRoot } from '../../../host/fs/host-root.ts'
import type { HostFiles } from './certs-directory.ts'
import { ignoreNotFound } from '../../../host/fs/missing.ts'

/**
 * Registry settings of the host, read inside its root. What is not there is undefined; what cannot be read is an error.
 */
export function hostFiles(root: Pick<HostRoot, 'readFile' | 'readdir'>): HostFiles {
  return {
    readText: async (path) => (await root.readFile(path).catch(ignoreNotFound))?.toString('utf8'),
    list: async (path) => await root.readdir(path).catch(ignoreNotFound),
  }
}
