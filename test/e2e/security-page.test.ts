/** What docs/usage/security.md promises of the agent's process and of what other users of a host can reach. */
import { beforeAll, describe, expect, test } from 'vitest'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { manifest, publishedState, shellscript } from '../kit/cluster/skyhooks.ts'

const cluster = useCluster()
const node = 'node-1'
const sh = async (script: string): Promise<string> => (await cluster.host(node).exec('sh', '-ec', script)).trim()
const asNobody = async (script: string): Promise<string> =>
  await sh(`setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '${script}' 2>&1 || true`)

describe("the agent's process", () => {
  let pid: string
  beforeAll(async () => {
    pid = await sh("pgrep -f 'skyhookd.cjs agent' | head -n 1")
  })

  test('the agent runs with the capabilities that the page lists, and nothing raises them', async () => {
    const status = new Map(
      (await sh(`cat /proc/${pid}/status`)).split('\n').map((line) => line.split(':\t') as [string, string]),
    )
    const [chown, dacOverride, fowner, fsetid, netBindService] = [0, 1, 3, 4, 10]
    const listed = [chown, dacOverride, fowner, fsetid, netBindService].reduce((mask, bit) => mask | (1 << bit), 0)
    const masks = ['CapPrm', 'CapEff', 'CapBnd'].map((name) => Number.parseInt(status.get(name) ?? '', 16))
    expect(masks).toEqual([listed, listed, listed])
    expect([status.get('CapInh'), status.get('CapAmb')]).toEqual(['0000000000000000', '0000000000000000'])
    expect([status.get('NoNewPrivs'), status.get('Seccomp')]).toEqual(['1', '2'])
  })

  test('the agent sees no processes of the host, and cannot write to the root of its container', async () => {
    expect(await sh(`readlink /proc/${pid}/ns/pid`)).not.toBe(await sh('readlink /proc/1/ns/pid'))
    const root = (await sh(`cat /proc/${pid}/mountinfo`)).split('\n').find((line) => line.split(' ')[4] === '/')
    expect(root?.split(' ')[5]?.split(',')).toContain('ro')
  })

  test('the agent listens for metrics and for probes, and for probes on the loopback alone', async () => {
    const sockets = await sh(
      `ls -l /proc/${pid}/fd | sed -n 's/.*socket:\\[\\([0-9]*\\)\\]/\\1/p' | sort >/tmp/sockets; ` +
        'awk \'$4 == "0A" {print $10, $2}\' /proc/net/tcp /proc/net/tcp6 | sort | join - /tmp/sockets; rm /tmp/sockets',
    )
    const addresses = sockets.split('\n').map((line) => line.split(' ')[1] ?? '')
    expect(addresses).toHaveLength(2)
    expect(addresses.filter((address) => address.startsWith('0100007F:'))).toHaveLength(1)
  })
})

describe('another user of the host', () => {
  test('only root opens the private socket of systemd', async () => {
    expect(await sh('test -S /run/systemd/private && test -w /run/systemd/private && echo open')).toBe('open')
    expect(await asNobody('test -w /run/systemd/private && echo open')).toBe('')
  })

  test("another user reads neither the agent's journal nor what a step is given", async () => {
    const name = uniqueName('private')
    const work = shellscript(cluster.registry, { apply: 'true' }, { env: [{ name: 'WORD', value: 'x' }] })
    await cluster.apply(manifest(name, { packages: { work } }), node)
    await cluster.history.eventually(
      'it is complete',
      ({ nodes }) => publishedState(nodes.get(node), name).status === 'complete',
    )
    expect(await sh('ls /var/lib/skyhook/.agent')).not.toBe('')
    expect(await asNobody('find /var/lib/skyhook/.agent /run/skyhook -type f -readable')).not.toMatch(/^\//m)
  })

  test('the login of a registry is in no file of the host', async () => {
    const path = '/api/v1/namespaces/skyhook/secrets/registry'
    const { data } = await cluster.api.json<{ data: Record<string, string> }>('GET', path)
    const { auths } = JSON.parse(Buffer.from(data['.dockerconfigjson'] ?? '', 'base64').toString()) as {
      auths: Record<string, { auth: string }>
    }
    const login = Object.values(auths)[0]?.auth ?? ''
    const password = Buffer.from(login, 'base64').toString().split(':')[1] ?? ''
    expect(password.length).toBeGreaterThan(3)
    const places = '/var/lib/skyhook /var/log /run/skyhook /tmp /var/tmp /root /home /opt'
    const found = await sh(`grep -rlF -e '${login}' -e '${password}' ${places} 2>/dev/null || true`)
    expect(found.split('\n').filter((file) => file !== '')).toEqual([])
  })
})
