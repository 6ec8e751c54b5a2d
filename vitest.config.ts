import { defineConfig } from 'vitest/config'

/**
 * Unit tests are beside their source. Everything that needs real parts is under test/ and runs one file at a time.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            'src/**/*.test.ts',
            'build/**/*.test.ts',
            'bench/**/*.test.ts',
            'test/fixtures/*.test.ts',
            'test/model/**/*.test.ts',
            'test/conformance/rows.test.ts',
            'test/chaos/**/*.test.ts',
            'test/faults/**/*.test.ts',
            'test/fleet/**/*.test.ts',
            'test/support/*.test.ts',
          ],
          environment: 'node',
          // Each worker runs many files: starting a process and importing everything again for each file takes more CPU
          // than the tests. Forks, not threads: a test sets the umask.
          isolate: false,
          pool: 'forks',
          globalSetup: ['test/support/memory-folder.ts'],
          testTimeout: 30_000, // searches take seconds, many on a busy machine
        },
      },
      {
        test: {
          name: 'real',
          include: ['test/host/**/*.test.ts', 'test/cluster/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          environment: 'node',
          testTimeout: 180_000,
          hookTimeout: 300_000,
          globalSetup: ['test/e2e/setup.ts'],
          fileParallelism: false,
          sequence: { concurrent: false },
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
          fileParallelism: false,
          sequence: { concurrent: false },
        },
      },
    ],
  },
})
