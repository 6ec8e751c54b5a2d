import { defineConfig } from 'vitest/config'
import { integrationTests, modelTests, searchTests, skippedTests, unitTests } from './build/test/projects.ts'

/**
 * Tests whose result depends on the version of the API server: requests, permissions, definitions, policies, chart. Not
 * `plain-manifests`, `takeover` and `viewer-role`: the same objects by kubectl instead of helm, and the tool's requests
 * under RBAC, which are the same for each version.
 */
const apiServer = [
  'attacks',
  'chart',
  'definitions',
  'lease-attacks',
  'leases',
  'node-attacks',
  'node-writer',
  'one-slot',
  'optional-policies',
  'permissions',
  'reflector',
  'release-life',
  'slot-permissions',
  'stolen-token',
].map((name) => `test/cluster/${name}.test.ts`)

/** Each has a sandbox of its own, which takes a quarter of a core. */
const hostWorkers = 2

/** As the sandbox has it: an emulated machine needs several times as long. */
const timeFactor = Number(process.env['SANDBOX_PATIENCE'] ?? 1)

/**
 * Unit tests are beside their source. What needs real parts is under test/ and runs one file at a time, or two.
 */
export default defineConfig({
  test: {
    // Node.js removes the types by itself: without vite's transforms there is a tenth less to do.
    experimental: { viteModuleRunner: false },
    projects: [
      {
        test: {
          name: 'unit',
          ...unitTests,
          environment: 'node',
          // Each worker runs many files: starting a process and importing everything again for each file takes more CPU
          // than the tests. Forks, not threads: a test sets the umask.
          isolate: false,
          pool: 'forks',
          globalSetup: ['test/kit/files/memory-folder.ts'],
          testTimeout: 300_000, // against hanging alone: seconds take minutes on a busy machine
        },
      },
      {
        test: {
          name: 'integration', // needs no root
          include: integrationTests,
          exclude: skippedTests,
          environment: 'node',
          isolate: false,
          pool: 'forks',
          globalSetup: ['test/kit/files/memory-folder.ts'],
          testTimeout: 120_000, // of events that come within seconds, on a busy machine
        },
      },
      {
        test: {
          name: 'model', // needs nothing real either; `make test` searches everything, with the lowest priority
          include: modelTests,
          exclude: skippedTests,
          environment: 'node',
          isolate: false,
          pool: 'forks',
          testTimeout: 1_200_000,
        },
      },
      {
        test: {
          name: 'search', // as `model`, but not in `make check`
          include: searchTests,
          environment: 'node',
          isolate: false,
          pool: 'forks',
          testTimeout: 1_200_000,
        },
      },
      {
        test: {
          name: 'tool', // the command-line tool as it is shipped, in processes of its own, some with a terminal
          include: ['test/tool/*.test.ts'],
          environment: 'node',
          testTimeout: 60_000,
          fileParallelism: false, // a pressed tab has its time
        },
      },
      {
        test: {
          name: 'monitoring', // Debian's Prometheus on recorded series; needs no root
          include: ['test/monitoring/**/*.test.ts'],
          environment: 'node',
          testTimeout: 300_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'dashboard', // Debian's Chromium on the page of the command-line tool; root installs it
          include: ['test/dashboard/**/*.test.ts'],
          exclude: ['test/dashboard/sandbox.test.ts'],
          environment: 'node',
          testTimeout: 600_000, // axe-core takes seconds for each form of the page, minutes on a busy machine
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'release', // `make release`, from copies of the working tree; needs no root
          include: ['test/release/**/*.test.ts'],
          environment: 'node',
          testTimeout: 120_000,
          hookTimeout: 900_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'cluster', // kube-apiserver and etcd, and what else needs real parts but no host
          include: ['test/cluster/**/*.test.ts', 'test/gitops/evaluator/*.test.ts'],
          environment: 'node',
          isolate: false, // the files of a process share an API server (test/cluster/shared-cluster.ts)
          pool: 'forks',
          maxWorkers: 2, // most of the longest files wait for a Lease, a backoff or a rollout
          testTimeout: 180_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'hosts',
          include: ['test/host/**/*.test.ts', 'test/e2e/**/*.test.ts', 'test/dashboard/sandbox.test.ts'],
          environment: 'node',
          testTimeout: 180_000 * timeFactor,
          hookTimeout: 300_000 * timeFactor,
          expect: { poll: { timeout: 20_000 * timeFactor } }, // of what a host does at once, on a busy machine
          globalSetup: ['test/e2e/setup.ts'],
          maxWorkers: hostWorkers,
          sequence: { concurrent: false },
        },
      },
      {
        test: {
          name: 'oldest', // a part of `cluster` on the kube-apiserver of the oldest supported version
          include: apiServer,
          environment: 'node',
          isolate: false, // as in `cluster`
          pool: 'forks',
          maxWorkers: 2,
          env: { KUBERNETES: 'oldest' },
          testTimeout: 180_000,
          hookTimeout: 900_000, // the first one builds it
        },
      },
      {
        test: {
          name: 'conformance',
          include: ['test/conformance/**/*.test.ts'],
          exclude: ['test/conformance/rows.test.ts'],
          environment: 'node',
          testTimeout: 180_000,
          hookTimeout: 300_000,
          globalSetup: ['test/e2e/setup.ts'],
          maxWorkers: hostWorkers,
          sequence: { concurrent: false },
        },
      },
    ],
  },
})
