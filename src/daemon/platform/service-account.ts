import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inClusterCredentials, type Credentials, type ServiceAccountFiles } from '../../kube/credentials.ts'
import { systemClock } from './system-clock.ts'

/** The credentials of the pod's ServiceAccount. Throws outside of a cluster. */
export const podCredentials = (): Credentials =>
  inClusterCredentials({ env: process.env, files: serviceAccountFiles(), clock: systemClock })

/** The files of the pod's ServiceAccount, where the kubelet mounts them. */
export function serviceAccountFiles(dir = '/var/run/secrets/kubernetes.io/serviceaccount'): ServiceAccountFiles {
  return { read: async (name) => await readFile(join(dir, name), 'utf8') }
}
