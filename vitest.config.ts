import { defineConfig } from 'vitest/config';
import { SlowestFiles } from './tools/test/slowest-files.ts';
import { unitFiles } from './tools/test/unit-files.ts';

const isUnit = process.env.UNIT !== undefined;

export default defineConfig({
  test: {
    include: isUnit
      ? [...unitFiles()]
      : ['packages/*/{src,test,examples}/**/*.test.ts', 'tools/**/*.test.ts'],
    reporters: ['default', ['json', { outputFile: '.vitest/results.json' }], new SlowestFiles()],
    globalSetup: isUnit ? [] : ['packages/testbed/src/vitest/global-setup.ts'],
    // Most files wait for other programs: with two on two cores, a third of the CPU time was idle.
    maxWorkers: isUnit ? 2 : 3,
    // Unit tests share their modules, which saves a third of their CPU time.
    isolate: !isUnit,
    // Tests wait for real programs: a KubeVirt control plane takes 20 s to start on two cores.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    // The default of one second fails on a busy machine. A condition that is never met ends with the test's timeout.
    expect: { poll: { timeout: 80_000, interval: 20 } },
    execArgv: ['--disable-warning=ExperimentalWarning'], // node:sqlite, for the lock on the cache of programs
  },
});
