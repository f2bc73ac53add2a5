import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['packages/*/{src,test,examples}/**/*.test.ts', 'tools/**/*.test.ts'],
    reporters: ['default', ['json', { outputFile: '.vitest/results.json' }]],
    globalSetup: ['packages/testbed/src/vitest/global-setup.ts'],
    // Tests wait on real programs: a KubeVirt control plane needs 20 s from nothing on two cores.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    // The default of one second fails where other programs have the cores; what never comes is ended by the test's limit.
    expect: { poll: { timeout: 80_000, interval: 20 } },
    execArgv: ['--disable-warning=ExperimentalWarning'], // node:sqlite, for the lock on the cache of programs
  },
});
