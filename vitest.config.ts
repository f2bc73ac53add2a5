import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['packages/*/{src,test,examples}/**/*.test.ts', 'tools/**/*.test.ts'],
    reporters: ['default', ['json', { outputFile: '.vitest/results.json' }]],
    globalSetup: ['packages/testbed/src/vitest/global-setup.ts'],
    // Tests wait for real programs: a KubeVirt control plane takes 20 s to start on two cores.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    // The default of 1 s is too short on a busy machine; a condition that never holds is ended by the test's timeout.
    expect: { poll: { timeout: 80_000, interval: 20 } },
    execArgv: ['--disable-warning=ExperimentalWarning'], // node:sqlite, which locks the cache of programs
  },
});
