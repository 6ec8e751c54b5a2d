import { defineCommand } from '../framework/command.ts'
import { exitCodes } from '../framework/command-error.ts'

/** The whole life cycle of a package, before it reaches a node. */
export const packageRun = defineCommand({
  name: 'package run',
  summary: 'run the whole life cycle of a package on a throw-away host',
  description:
    'Boots a host with systemd-nspawn; needs Linux and root, but no cluster. Runs apply, config, upgrade, an ' +
    'interrupt, post-interrupt and uninstall. Each is killed in the middle, run to its end and run again, with its ' +
    'check. With --from, a second host is upgraded from an earlier version. After the uninstall it lists what the ' +
    'package left behind: files, kernel settings, units. With --only it does all that to one stage. The host is ' +
    'removed, also after ctrl-C. Kernel settings are copies; kernel arguments, modules and disks are absent. ' +
    'Without a base it prints how to make one.',
  arguments: { folder: { summary: 'folder of the package', complete: 'files' } },
  flags: {
    from: {
      type: 'text',
      placeholder: 'FOLDER',
      summary: 'an earlier version of the package, to upgrade from',
      complete: 'files',
    },
    only: {
      type: 'text',
      placeholder: 'STAGE',
      choices: ['apply', 'config', 'interrupt', 'post-interrupt', 'upgrade', 'uninstall'],
      summary: 'this stage alone: what a node does before it runs once, and nothing runs after it',
    },
    config: { type: 'list', placeholder: 'KEY=FILE', summary: 'a key of configMap, with the content of a file' },
    env: { type: 'list', placeholder: 'NAME=VALUE', summary: 'a variable of env' },
    interrupt: {
      type: 'text',
      placeholder: 'TYPE',
      choices: ['reboot', 'service', 'restartAllServices', 'noop', 'none'],
      default: 'reboot',
      summary: 'interrupt of the package',
    },
    service: { type: 'list', placeholder: 'UNIT', summary: 'what --interrupt service restarts' },
    root: {
      type: 'text',
      placeholder: 'FOLDER',
      summary: 'root folder of the system to boot, not changed; by default /var/lib/machines/skyhook-package-run',
      complete: 'files',
    },
    network: {
      type: 'text',
      placeholder: 'NETWORK',
      choices: ['none', 'host'],
      default: 'none',
      summary: 'none, or host: the network of this machine, for packages that download',
    },
    stepTimeout: {
      type: 'duration',
      placeholder: 'DURATION',
      default: 600_000,
      summary: 'a step that takes longer fails',
    },
    ignore: {
      type: 'list',
      placeholder: 'PATTERN',
      summary:
        'what may be left behind: a file, a folder with its content, a kernel setting or a unit; * and ? as in a shell',
    },
    keep: { type: 'boolean', summary: 'keep the files of the host, and print where they are' },
  },
  example: 'kubectl skyhook package run my-tuning --config greeting.txt=greeting.txt',
  exitCodes: {
    [exitCodes.failed]: 'an act failed, something is left behind, or this machine cannot boot a host',
    [exitCodes.notFound]: 'the package or the base does not exist',
  },
  otherExamples: ['kubectl skyhook package run my-tuning --config greeting.txt=greeting.txt --only config'],
  formats: ['table', 'json'],
  isLocal: true,
  run: async (context, { arguments: given, flags }) => {
    const { runPackage } = await import('../package/run/run-package.ts')
    return await runPackage(context, given, flags)
  },
})
