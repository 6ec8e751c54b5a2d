/**
 * Programs for arm64 on this machine: QEMU emulates one process, so this needs neither root nor a registration with the
 * kernel. What such a process starts is not emulated.
 */
import { join } from 'node:path'
import type { PackagePin } from './debian-packages.ts'
import { programsOfPackage } from './debian-programs.ts'

/** Of Debian 12. A point release replaces it on the mirrors, and the newest one is taken then. */
const pin: PackagePin = {
  version: '1:7.2+dfsg-7+deb12u18+b3',
  sha256: {
    amd64: 'c3e3ba2bd87f8c5b9a5da5ef21b5a3b82d7c63b89dd448d9ddaa4eabc5b6e402',
    arm64: '', // never fetched by the pin
  },
}

const program = 'qemu-aarch64-static'

/**
 * The command to put before a program for arm64. The program takes its loader and libraries from `root`, and each other
 * file from there if it exists there.
 * @throws Error if apt cannot download the emulator
 */
export function emulated(root: string): readonly [string, ...string[]] {
  return [join(programsOfPackage('qemu-user-static', pin, [program]), program), '-L', root]
}
