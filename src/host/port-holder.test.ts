import { expect, test } from 'vitest'
import { holderOfPort, listenerUid } from './port-holder.ts'

const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0150 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 19001 1 0000000000000000 100
   1: 0A00000A:2503 0B00000A:D2F0 01 00000000:00000000 00:00000000 00000000  1002        0 19002 1 0000000000000000 20
   2: 00000000:2503 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 19003 1 0000000000000000 100
`
const tcp6 = `  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 65534 0 19004 1 0 100
`
const files: Readonly<Record<string, string>> = {
  '/proc/self/net/tcp': tcp,
  '/proc/self/net/tcp6': tcp6,
  '/etc/passwd': 'root:x:0:0::/root:/bin/sh\napp:x:1001:1001::/:/bin/sh\nbad name\u001B[2J:x:65534:1::/:/bin/sh\n',
}
const root = {
  async readText(path: string): Promise<string> {
    const text = files[path]
    if (text === undefined) throw new Error('ENOENT')
    return text
  },
}

test('the holder of a port is the user of the socket that listens there, and of no connection', async () => {
  expect(await holderOfPort(root, 9475)).toBe('app (uid 1001)')
  expect(await holderOfPort(root, 336)).toBe('root (uid 0)')
})

test('the holder of a port on IPv6 is found, and a name that is none is left out', async () => {
  expect(await holderOfPort(root, 8080)).toBe('uid 65534')
})

test('nobody is named where the tables have no such socket, or cannot be read', async () => {
  expect(await holderOfPort(root, 9476)).toBeUndefined()
  expect(await holderOfPort({ readText: async () => await Promise.reject(new Error('EACCES')) }, 336)).toBeUndefined()
  expect(listenerUid('garbage\n', 336)).toBeUndefined()
})
