/** Local package repositories on a host: empty Debian packages in their own suites, and a host with dnf. */
import { execFile } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { SystemdHost } from './systemd-host.ts'

const run = promisify(execFile)

export type DummyPackage = {
  readonly name: string
  readonly version: string
  /** Shell commands that run after its installation. */
  readonly postinst?: string
  readonly depends?: string
}

const buildScript = `set -eu
build() { # build FOLDER NAME VERSION DEPENDS POSTINST
  work=$(mktemp -d)
  mkdir "$work/DEBIAN" && chmod 755 "$work"
  printf 'Package: %s\\nVersion: %s\\nArchitecture: all\\nMaintainer: Nobody <nobody@example.com>\\nDescription: dummy\\n' "$2" "$3" >"$work/DEBIAN/control"
  [ -z "$4" ] || printf 'Depends: %s\\n' "$4" >>"$work/DEBIAN/control"
  [ -z "$5" ] || { printf '#!/bin/sh\\n%s\\n' "$5" >"$work/DEBIAN/postinst" && chmod 755 "$work/DEBIAN/postinst"; }
  mkdir -p "$1"
  dpkg-deb --build --root-owner-group "$work" "$1" >/dev/null
  rm -r "$work"
}
index() { # index REPOSITORY SUITE
  cd "$1"
  list=dists/$2/main/binary-$(dpkg --print-architecture)/Packages
  mkdir -p "\${list%/*}" pool
  for file in pool/*.deb; do
    [ -e "$file" ] || continue
    dpkg-deb -f "$file"
    printf 'Filename: %s\\nSize: %s\\nSHA256: %s\\n\\n' "$file" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d' ' -f1)"
  done >"$list"
  {
    printf 'Label: Test\\nSuite: %s\\nVersion: 12.1\\nArchitectures: %s all\\nComponents: main\\nDate: %s\\nSHA256:\\n' "$2" "$(dpkg --print-architecture)" "$(date -Ru)"
    echo " $(sha256sum "$list" | cut -d' ' -f1) $(stat -c %s "$list") \${list#dists/*/}"
  } >"dists/$2/Release"
}
`

/** What these functions need of a host. */
type Shell = Pick<SystemdHost, 'exec'>

/** Builds `.deb` files into a folder of the host. */
export async function buildPackages(host: Shell, folder: string, packages: readonly DummyPackage[]): Promise<void> {
  await host.exec('sh', '-c', `${buildScript}${packages.map(builtPackages(folder)).join('\n')}`)
}

/** Creates a repository per suite and makes them the host's only sources. */
export async function publishPackages(
  host: Shell,
  suites: Readonly<Record<string, readonly DummyPackage[]>>,
): Promise<void> {
  const lines = Object.entries(suites).flatMap(([suite, packages]) => [
    ...packages.map(builtPackages(`/srv/${suite}/pool`)),
    `index /srv/${suite} ${suite}`,
  ])
  await host.exec('sh', '-c', `${buildScript}${lines.join('\n')}`)
  await useSuites(host, Object.keys(suites))
}

/** Makes these the host's only sources of packages. */
export async function useSuites(host: Shell, suites: readonly string[]): Promise<void> {
  const lines = suites.map((suite) => `deb [trusted=yes] file:/srv/${suite} ${suite} main`)
  await host.exec('sh', '-c', `printf '%s\\n' ${lines.map(shellQuote).join(' ')} >/etc/apt/sources.list`)
}

const shellQuote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const builtPackages =
  (folder: string) =>
  ({ name, version, depends = '', postinst = '' }: DummyPackage): string =>
    ['build', folder, name, version, depends, postinst].map(shellQuote).join(' ')

/**
 * Path on this machine of an archive (or of a folder with them) for hosts: see package-archive.sh. The first call
 * downloads it.
 */
export async function packageArchive(name: 'tuned' | 'grub' | 'dnf'): Promise<string> {
  const { stdout } = await run(join(import.meta.dirname, 'package-archive.sh'), [name])
  return stdout.trim()
}

/** Installs GRUB's programs, their folders and a fake kernel on the host. */
export async function installGrub(host: SystemdHost): Promise<void> {
  const archives = await packageArchive('grub')
  await cp(archives, join(await host.root.resolve('/root'), 'grub'), { recursive: true })
  const install = 'DEBIAN_FRONTEND=noninteractive dpkg --force-unsafe-io -i /root/grub/*.deb'
  await host.exec(
    'sh',
    '-c',
    `${install}; mkdir -p /boot/grub /etc/default/grub.d; echo kernel >/boot/vmlinuz-6.1.0-1-amd64`,
  )
}

/** Installs dnf and a repository of dummy packages on the host, in their old versions. */
export async function installDnf(host: SystemdHost): Promise<void> {
  const archive = await packageArchive('dnf')
  await run('tar', ['-xf', archive, '-C', await host.root.resolve('/')])
  await host.exec('ldconfig')
  await host.exec(
    'dnf',
    '-q',
    '-y',
    'install',
    ...['plain', 'keep', 'both', 'hole', 'linux-firmware'].map((name) => `${name}-1.0`),
  )
}
