import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { createHostCredentialProviders } from '../../src/daemon/platform/credential-providers.ts'
import { systemClock, systemRandom } from '../../src/daemon/platform/system-clock.ts'
import { createBusConnection } from '../../src/host/dbus/reconnecting.ts'
import { runPlugin, sweepPluginFiles } from '../../src/host/kubelet/run-plugin.ts'
import { parseReference } from '../../src/packages/oci/reference.ts'
import { openImageStore } from '../../src/packages/store/image-store.ts'
import { runUnpackJob } from '../../src/packages/store/unpack-job.ts'
import { type FakeRegistry, startFakeRegistry } from '../kit/registry/fake-registry.ts'
import { fakeSources } from '../kit/registry/registry-documents.ts'
import { useHost } from '../kit/cluster/systemd-host.ts'

const { host, sh } = useHost()

const { signal } = new AbortController()
const password = 'hunter2'
const variable = 'swordfish'
const configPath = '/etc/kubernetes/credential-providers.yaml'
const binFolder = '/opt/credential-providers'
const filesFolder = '/run/skyhook/credential-providers'
const ports = { clock: systemClock, random: systemRandom }

let registry: FakeRegistry | undefined
afterEach(async () => {
  await registry?.close()
  registry = undefined
})

/** The configuration of one plugin, which answers for the fake registry. */
const config = (name: string, more = ''): string => `# as a cloud's image has it
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
  - name: ${name}
    apiVersion: credentialprovider.kubelet.k8s.io/v1
    matchImages: ["127.0.0.*:${registry?.host.split(':')[1]}"]
    defaultCacheDuration: "12h"
    args: [--of, "the config"]
    env:
      - { name: SECRET_VARIABLE, value: ${variable} }
${more}`

async function writePlugin(name: string, script: string): Promise<void> {
  await host.root.mkdirp(binFolder)
  await host.root.writeFile(`${binFolder}/${name}`, `#!/bin/sh\n${script}`, 0o755)
}

/** Notes how it was called, in files that only root can read, and answers. */
const answering = `umask 077
cat > /root/request
printf '%s\\n' "$@" > /root/arguments
echo "$SECRET_VARIABLE $OF_THE_KUBELET $OF_ITS_FILE" > /root/variables
echo x >> /root/runs
cat <<JSON
{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry",
 "auth":{"127.0.0.1:*":{"username":"x","password":"wrong port"},
         "HOST":{"username":"puller","password":"${password}"}}}
JSON
`

beforeAll(async () => {
  const flags = `--image-credential-provider-config=${configPath} --image-credential-provider-bin-dir ${binFolder}`
  const unit = `[Service]
Environment=OF_THE_KUBELET=proxy
EnvironmentFile=-/etc/default/kubelet
ExecStart=/bin/sh /opt/kubelet ${flags}
`
  await host.root.mkdirp('/etc/kubernetes')
  await host.root.mkdirp('/etc/default')
  await host.root.writeFile('/etc/default/kubelet', 'OF_ITS_FILE=too\n', 0o644)
  await host.root.writeFile('/opt/kubelet', 'while :; do sleep 1000; done\n', 0o755)
  await host.root.writeFile('/etc/systemd/system/kubelet.service', unit, 0o644)
  await sh('systemctl daemon-reload; systemctl restart kubelet.service')
})

function hostProviders(settings: Partial<Parameters<typeof createHostCredentialProviders>[0]> = {}) {
  const connectBus = () => createBusConnection({ ...ports, sockets: host.sockets })
  return createHostCredentialProviders({ isEnabled: true, ...settings }, { root: host.root, connectBus, ...ports })
}

async function startRegistry(): Promise<FakeRegistry> {
  return (registry = await startFakeRegistry({ login: { kind: 'basic', username: 'puller', password } }))
}

/** Command lines on the host that begin so. */
async function running(start: string): Promise<string[]> {
  const lines = await sh('for file in /proc/[0-9]*/cmdline; do tr "\\0" " " < $file; echo; done 2>/dev/null || true')
  return lines.split('\n').filter((line) => line.startsWith(start))
}

/** Everything that a user of the host without rights can see, and what the host keeps for longer. */
async function visible(): Promise<string> {
  const asNobody = async (command: string): Promise<string> =>
    await sh(`setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '${command}' 2>&1 || true`)
  return [
    await asNobody('systemctl show --all "skyhookd-credential-provider-*"'),
    await asNobody('systemctl cat "skyhookd-credential-provider-*"'),
    await asNobody('cat /run/systemd/transient/*; ls -R /run/skyhook; cat /run/skyhook/*/*'),
    await asNobody('for file in /proc/[0-9]*; do cat $file/cmdline $file/environ; done'),
    await sh('for file in /proc/[0-9]*; do tr "\\0" " " < $file/cmdline; done 2>&1 || true'),
    await sh('journalctl --no-pager -o verbose'),
  ].join('\n')
}

test('an image is fetched with what a plugin of the kubelet answers, once for the registry', async () => {
  const { host: address, ...remote } = await startRegistry()
  const archive = pack()
  archive.entry({ name: 'skyhook-package/config.json' }, '{}')
  archive.finalize()
  remote.addImage('team/pkg', '1.0', gzipSync(await buffer(archive)))
  await writePlugin('own', answering.replace('HOST', address))
  await host.root.writeFile(configPath, config('own'), 0o600)
  await host.root.mkdirp('/var/lib/images')
  const store = openImageStore('/var/lib/images', {
    root: host.root,
    ...ports,
    loginProvider: hostProviders(),
    unpack: (job, unpackSignal) => runUnpackJob(job, ports, unpackSignal),
  })
  const settings = { credentials: [], sources: fakeSources([{ host: address, plainHTTP: true }]), retryForMs: 0 }
  const reference = parseReference(`${address}/team/pkg:1.0`)
  const startedAtMs = Date.now()
  expect(await store.ensureImage(reference, { registry: settings, signal })).toMatchObject({ isNew: true })
  console.log(`fetched with a plugin in ${Date.now() - startedAtMs} ms`)
  await store.checkImage(reference, { registry: settings, signal })

  expect(JSON.parse(await sh('cat /root/request'))).toEqual({
    kind: 'CredentialProviderRequest',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    image: `${address}/team/pkg`,
  })
  expect(await sh('cat /root/arguments')).toBe('--of\nthe config')
  expect(await sh('cat /root/variables')).toBe(`${variable} proxy too`)
  expect(await sh('cat /root/runs')).toBe('x')
  expect(await sh(`ls -A ${filesFolder}`)).toBe('')
  await expect.poll(() => sh('systemctl list-units --all --plain --no-legend "skyhookd-credential-*"')).toBe('')
})

test('no secret of a plugin is seen by others while it runs, nor in the journal afterwards', async () => {
  const { host: address } = await startRegistry()
  const wait = 'while ! test -e /root/continue; do sleep 0.1; done\n'
  await writePlugin('slow', answering.replace('HOST', address).concat(wait))
  await host.root.writeFile(configPath, config('slow'), 0o600)
  const asked = hostProviders().loginsOf(`${address}/team/pkg`, signal)
  await expect.poll(() => sh(`cat ${filesFolder}/*-out 2>/dev/null || true`)).toContain(password)

  const during = await visible()
  expect(during).toContain('skyhookd-credential-provider-slow') // it looks in the right places
  expect(during).toContain('the config') // arguments are for everybody, as under the kubelet
  expect(during).toContain('Permission denied')
  expect(await sh(`stat -c '%a %U' ${filesFolder}`)).toBe('700 root')
  expect(new Set((await sh(`stat -c '%a %U' ${filesFolder}/*`)).split('\n'))).toEqual(new Set(['600 root']))
  expect(await sh(`cat ${filesFolder}/*-env`)).toContain(variable)
  await sh('touch /root/continue')
  expect((await asked).logins).toEqual([{ kind: 'password', username: 'puller', password }])
  for (const text of [during, await visible()]) {
    expect(text).not.toContain(password)
    expect(text).not.toContain(variable)
  }
  expect(await sh(`grep -rlE '${password}|${variable}' /run /var/log /etc/systemd 2>/dev/null || true`)).toBe('')
})

test('a plugin that fails is named with the file of its own words, and they are shown to root alone', async () => {
  const { host: address } = await startRegistry()
  await host.root.writeFile(configPath, config('failing'), 0o600)
  const ask = async () => await hostProviders().loginsOf(`${address}/team/pkg`, signal)
  expect((await ask()).problems).toEqual([expect.stringMatching(/^failing: it did not start: 203\/EXEC/)])

  await writePlugin('failing', `echo "no role for ${password}" >&2; echo ${password}; exit 7\n`)
  const errorFile = `${filesFolder}/failing.err`
  expect(await ask()).toEqual({
    logins: [],
    providers: ['failing'],
    problems: [`failing: it ended with exit code 7; see ${errorFile} on the host`],
  })
  expect(await sh(`stat -c '%a %U' ${errorFile}; cat ${errorFile}`)).toBe(`600 root\nno role for ${password}`)
  expect(await visible()).not.toContain(password)
  expect(await sh('systemctl --failed --plain --no-legend')).not.toContain('skyhookd')

  await writePlugin('failing', answering.replace('HOST', address))
  expect((await ask()).logins).toHaveLength(1)
  expect(await sh(`ls -A ${filesFolder}`)).toBe('')
})

test('a plugin that does not end is ended, with all that it started', async () => {
  await writePlugin('hanging', 'sleep 4711 & sleep 4711\n')
  const connection = createBusConnection({ ...ports, sockets: host.sockets })
  const request = { name: 'hanging', program: `${binFolder}/hanging`, args: [], environment: {}, input: '{}' }
  const kubelet = { environment: {}, environmentFiles: [] }
  const run = runPlugin({ root: host.root, connection, ...ports }, { ...request, kubelet, timeoutMs: 1_000 }, signal)
  await expect(run).rejects.toThrow('it did not answer in time')
  const canceled = new AbortController()
  const second = runPlugin({ root: host.root, connection, ...ports }, { ...request, kubelet }, canceled.signal)
  await expect.poll(() => running('sleep 4711')).toHaveLength(2)
  canceled.abort(new Error('the agent stops'))
  await expect(second).rejects.toThrow('the agent stops')
  await expect.poll(() => running('sleep 4711')).toEqual([])
  expect(await sh(`ls -A ${filesFolder}`)).toBe('')
  connection.close()
})

test('what an agent that died has left of a run is removed, and the words of a failure stay', async () => {
  for (const name of ['own-1.run-out', 'own-1.run-env', 'own-1.run-in.0123456789ab.tmp', 'own.err'])
    await host.root.writeFile(`${filesFolder}/${name}`, password, 0o600)
  await sweepPluginFiles(host.root)
  expect(await sh(`ls -A ${filesFolder}`)).toBe('own.err')
  await host.root.remove(`${filesFolder}/own.err`)
})

test('only the unit of the kubelet says where plugins are, not a process that takes its name', async () => {
  const { host: address } = await startRegistry()
  await sh('systemctl stop kubelet.service')
  const flags = `--image-credential-provider-config=${configPath} --image-credential-provider-bin-dir=${binFolder}`
  await sh(`systemd-run --quiet --unit=a-pod bash -c 'exec -a kubelet bash /opt/kubelet ${flags}'`)
  await expect.poll(() => running('kubelet')).toHaveLength(1)
  const nothing = { logins: [], providers: [], problems: [] }
  expect(await hostProviders().loginsOf(`${address}/team/pkg`, signal)).toEqual(nothing)
  await writePlugin('own', answering.replace('HOST', address))
  await host.root.writeFile(configPath, config('own'), 0o600)
  const set = { configPath, binFolder }
  expect((await hostProviders(set).loginsOf(`${address}/team/pkg`, signal)).logins).toHaveLength(1)
  expect(await hostProviders({ ...set, isEnabled: false }).loginsOf(`${address}/team/pkg`, signal)).toEqual(nothing)
  await sh('systemctl stop a-pod')
})
