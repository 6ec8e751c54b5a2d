import { version } from '../schemas/version.ts'

// Each command loads only what it needs: a child must not need the memory of an agent.

const usage = `usage: skyhookd agent    run the agent of this node
       skyhookd unpack   unpack an image (started by the agent itself)
       skyhookd census   count for the cluster (started by the elected agent itself)
       skyhookd validate PATH [-o text|json|github]   check a package: a folder, or an archive with its image
       skyhookd version
`

async function main([command = '', ...parameters]: readonly string[]): Promise<number> {
  switch (command) {
    case 'agent':
      return await runAgentOfThisMachine()
    case 'unpack':
      await runUnpackChildOfThisMachine()
      return 0
    case 'census':
      await (await import('./census/process.ts')).runCensusProcess(process)
      return 0
    case 'validate':
      return await runValidateOnThisMachine(parameters)
    case 'version':
      process.stdout.write(`${version}\n`)
      return 0
    default:
  }
  process.stderr.write(usage)
  return 2
}

async function runUnpackChildOfThisMachine(): Promise<void> {
  const [{ runUnpackChild }, { systemClock, systemRandom }] = await Promise.all([
    import('../packages/store/unpack-child.ts'),
    import('./platform/system-clock.ts'),
  ])
  await runUnpackChild({ clock: systemClock, random: systemRandom })
}

async function runValidateOnThisMachine(parameters: readonly string[]): Promise<number> {
  const [{ runValidate }, { systemRandom }, { tmpdir }] = await Promise.all([
    import('./validate.ts'),
    import('./platform/system-clock.ts'),
    import('node:os'),
  ])
  return await runValidate(parameters, {
    random: systemRandom,
    workingDirectory: process.cwd(),
    temporaryFolder: tmpdir(),
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
  })
}

async function runAgentOfThisMachine(): Promise<number> {
  const [{ runAgent }, { systemPlatform }, { readSettings, readProviderSettings }] = await Promise.all([
    import('./agent.ts'),
    import('./platform/platform.ts'),
    import('./settings/settings.ts'),
  ])
  const settings = readSettings(process.env)
  return await runAgent(settings, systemPlatform(settings, readProviderSettings(process.env)))
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
    // open sockets must not keep a stopped agent alive
    if (process.argv[2] === 'agent' || process.argv[2] === 'census') process.exit(code)
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    process.exit(70) // EX_SOFTWARE: a bug
  },
)
