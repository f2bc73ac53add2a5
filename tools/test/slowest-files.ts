import { relative } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

const MAX_FILES = 10;

/** Prints the ten slowest test files after a run of more than ten files. */
export class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    if (modules.length <= MAX_FILES) return;
    const files = modules
      .map((module) => ({ name: relative(process.cwd(), module.moduleId), ms: module.diagnostic().duration }))
      .sort((a, b) => b.ms - a.ms);
    const total = files.reduce((sum, { ms }) => sum + ms, 0);
    console.log(`\nSlowest of ${files.length} test files (${seconds(total)} in all):`);
    for (const { name, ms } of files.slice(0, MAX_FILES)) console.log(`${seconds(ms).padStart(8)}  ${name}`);
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
