/** The pull Secret of the agents. */
import type { Cluster } from '../kit/cluster/cluster.ts'
import { patch } from '../kit/cluster/kube.ts'

const secret = '/api/v1/namespaces/skyhook/secrets/registry'
const file = '.dockerconfigjson'

/** Gives one repository a login that the registry refuses. Returns what takes it back; a second call does no harm. */
export async function refuseLogin({ api }: Cluster, repository: string): Promise<() => Promise<void>> {
  const { data } = await api.json<{ data: Record<string, string> }>('GET', secret)
  const right = data[file] ?? ''
  const put = async (text: string): Promise<void> => void (await patch(api, secret, { data: { [file]: text } }))
  const { auths } = JSON.parse(Buffer.from(right, 'base64').toString()) as { auths: object }
  const wrong = { [repository]: { auth: Buffer.from('nobody:nothing').toString('base64') } }
  await put(Buffer.from(JSON.stringify({ auths: { ...auths, ...wrong } })).toString('base64'))
  return async () => await put(right)
}
