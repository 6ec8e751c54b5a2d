/**
 * A stranger on a bus: sends unicast signals that nobody asked for.
 * Arguments: SOCKET NAME-OF-THE-VICTIM ATTACK
 */
import { pathToFileURL } from 'node:url'
import { connectBusPeer } from './bus-peer.ts'

type Raw = { readonly member: string; readonly signature: string; readonly body: Buffer; readonly extra?: Buffer }

const pad = (bytes: Buffer, to: number): Buffer => Buffer.concat([bytes, Buffer.alloc(-bytes.length & (to - 1))])
const uint = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const field = (code: number, type: 's' | 'o' | 'g', value: string): Buffer => {
  const length = type === 'g' ? Buffer.from([value.length]) : uint(value.length)
  return Buffer.concat([Buffer.from([code, 1, type.charCodeAt(0), 0]), length, Buffer.from(`${value}\0`)])
}

/** Bytes of a signal that looks like one of systemd's, with a signature and values that an encoder would refuse. */
function rawSignal(victim: string, { member, signature, body, extra = Buffer.alloc(0) }: Raw): Buffer {
  const first = [
    field(1, 'o', '/org/freedesktop/systemd1'),
    field(2, 's', 'org.freedesktop.systemd1.Manager'),
    field(3, 's', member),
    field(6, 's', victim),
    extra,
  ]
  const fields = Buffer.concat([...first.map((one) => pad(one, 8)), field(8, 'g', signature)])
  const start = Buffer.concat([Buffer.from([0x6c, 4, 1, 1]), uint(body.length), uint(77), uint(fields.length)])
  return Buffer.concat([start, pad(fields, 8), body])
}

const array = (bytes: number, alignment: 4 | 8): Buffer =>
  Buffer.concat([pad(uint(bytes), alignment), Buffer.alloc(bytes)])
const mib = 1024 * 1024

const attacks: Readonly<Record<string, readonly Raw[]>> = {
  junk: Array.from({ length: 200 }, (): Raw => ({ member: 'Junk', signature: 'ay', body: array(mib, 4) })),
  // what the victim subscribed to, so that only the sender tells
  structs: [{ member: 'JobRemoved', signature: 'a(y)', body: array(2 * mib - 7, 8) }],
  'structs of strangers': [{ member: 'Junk', signature: 'a(y)', body: array(2 * mib - 7, 8) }],
  'handles without descriptors': [{ member: 'JobRemoved', signature: 'h', body: uint(0) }],
  'values of another type': [{ member: 'JobRemoved', signature: 'ai', body: array(4, 4) }],
  'values too deep to read': [{ member: 'JobRemoved', signature: `${'a'.repeat(32)}y`, body: array(0, 4) }],
  'signatures that are none': [{ member: 'JobRemoved', signature: '*?@&^', body: uint(0) }],
  'large unknown fields': [
    {
      member: 'JobRemoved',
      signature: 's',
      body: Buffer.concat([uint(1), Buffer.from('x\0')]),
      extra: Buffer.concat([Buffer.from([200, 2, 0x61, 0x79, 0, 0, 0, 0]), uint(mib), Buffer.alloc(mib)]),
    },
  ],
}

export const attackNames: readonly string[] = Object.keys(attacks)

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [socketPath = '', victim = '', attack = ''] = process.argv.slice(2)
  const peer = await connectBusPeer(socketPath)
  for (const raw of attacks[attack] ?? []) await peer.sendBytes(rawSignal(victim, raw))
  await peer.end()
}
