/** Which test files belong to the vitest projects that need nothing real. */

/** Beside their sources as unit tests are, but with a process or a socket. Each waits for events, never for a time. */
export const integrationTests = ['src', 'build', 'bench', 'test'].map((folder) => `${folder}/**/*.integration.test.ts`)

/** `make check` takes a sample of each, `make test` searches everything (test/kit/effort.ts). */
export const modelTests = ['test/model/**/*.test.ts']

/** They know no real time either, but take too long for `make check`. */
export const searchTests = [
  'test/faults/failing-lives.test.ts',
  'test/kit/host/crashes.test.ts',
  'test/fleet/run/census-kills.test.ts',
  'test/fleet/foretold/*.test.ts',
  'test/fleet/waiting/*.test.ts',
  'test/takeover/nodewright.test.ts',
  'test/takeover/replay.test.ts',
]

/** Unit tests that take a sample; `make prove` searches everything. */
export const sampledTests = ['src/daemon/ways-back.test.ts']

/** Left out of `make check`, which has a minute. */
const longTests = [
  'src/**/hostile-*.test.ts',
  ...sampledTests,
  'src/cli/reason/status/closed-nodes.test.ts',
  'src/daemon/full-annotations.test.ts',
  'src/packages/install/root-dir-power-cut.test.ts',
  'src/packages/step/log-limit.test.ts',
  'src/packages/store/{slow-registry,unpack-child}.integration.test.ts',
  'test/kit/host/{host-faults,lives,simulated-root}.test.ts',
  'test/fleet/run/{lives,runs,uncounted}.test.ts',
  'test/model/batches.test.ts',
  'test/model/explain/{agents,hosts,packages,several}.test.ts',
  'test/model/fleet/fleet.test.ts',
  'test/promises/budget-runs.test.ts',
]

export const skippedTests = process.env['SKIP_LONG'] === '1' ? longTests : []

/** They know no real time; build/checks/unit-tests.ts holds them to it. */
export const unitTests = {
  include: [
    'src/**/*.test.ts',
    'build/**/*.test.ts',
    'bench/**/*.test.ts',
    'demo/**/*.test.ts',
    'test/fixtures/*.test.ts',
    'test/conformance/rows.test.ts',
    'test/chaos/**/*.test.ts',
    'test/faults/**/*.test.ts',
    'test/fleet/**/*.test.ts',
    'test/gitops/*.test.ts',
    'test/mutants/*.test.ts',
    'test/promises/*.test.ts',
    'test/kit/**/*.test.ts',
    'test/takeover/*.test.ts',
  ],
  exclude: [...modelTests, ...searchTests, ...integrationTests, ...skippedTests],
}
