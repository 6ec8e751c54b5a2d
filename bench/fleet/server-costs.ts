/** What the control plane has used so far, from the kernel and from etcd itself. */
import { readFile } from 'node:fs/promises'
import { cpuSeconds } from '../../test/cluster/census-cluster.ts'
import type { ApiServer } from '../../test/cluster/api-server.ts'
import { memoryOf } from '../memory.ts'

export type ServerCosts = {
  readonly atMs: number
  readonly serverCpuSeconds: number
  readonly etcdCpuSeconds: number
  /** What etcd has written to its log of writes. */
  readonly walBytes: number
  readonly serverRssMiB: number
}

export async function serverCosts({ processes, etcdUrl }: ApiServer): Promise<ServerCosts> {
  const { server, etcd } = processes()
  const metrics = await (await fetch(`${etcdUrl}/metrics`)).text()
  const walBytes = /^etcd_disk_wal_write_bytes_total ([\d.e+]+)$/m.exec(metrics)?.[1]
  if (walBytes === undefined) throw new Error('etcd has no metric etcd_disk_wal_write_bytes_total')
  return {
    atMs: performance.now(),
    serverCpuSeconds: await cpuSeconds(server),
    etcdCpuSeconds: await cpuSeconds(etcd),
    walBytes: Number(walBytes),
    serverRssMiB: memoryOf(server).rssMiB,
  }
}

/** The average share of the machine's processors that were in use between two readings of /proc/stat. */
export async function processorTimes(): Promise<{ readonly busy: number; readonly all: number }> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n')
  const times = line.trim().split(/\s+/).slice(1, 9).map(Number)
  const all = times.reduce((sum, one) => sum + one, 0)
  return { busy: all - (times[3] ?? 0) - (times[4] ?? 0), all }
}
