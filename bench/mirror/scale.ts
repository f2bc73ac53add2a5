import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from '../bar.ts';
import { RUNNING, STALE, startEnvironment, untilAll } from './bench.ts';
import type { Programs } from './programs.ts';

const VMS = Number(process.env.SCALE ?? 100_000);
const SETTLE_MS = 10_000;
const RESYNC = '30s';

/**
 * Measures our controller with very many VMs: its memory, and the duration of its start and of a resync. The VMs are
 * small. Their size does not matter, because the cache keeps the same few fields of every VM.
 */
export async function* scale({ controllers }: Programs): AsyncGenerator<Row> {
  await using environment = await startEnvironment(VMS, 'small');
  const { cluster, table } = environment;
  await table.reset(STALE);
  const start = await controllers('ours', cluster, table, { CONTROLLER_RESYNC_PERIOD: RESYNC });
  const started = Date.now();
  await using program = start();
  await untilAll(program, table, VMS, RUNNING.row);
  const { cpu } = program.usage();
  const { last } = await table.commits();
  yield { name: `${VMS} VMs, start to last row (s)`, ours: (last - started) / 1000 };
  yield { name: `${VMS} VMs, start to last row: CPU (s)`, ours: cpu };
  const lines = await program.waitForLines((all) => all.some(isResync));
  yield { name: `${VMS} VMs, resync (s)`, ours: durationOf(lines.find(isResync) ?? '') / 1000 };
  await sleep(SETTLE_MS); // gives V8 time to free the memory that the resync used
  const { rss, peak } = program.usage();
  yield { name: `${VMS} VMs: memory (MB)`, ours: rss, bar: { atMost: 400 } };
  yield { name: `${VMS} VMs: largest memory (MB)`, ours: peak };
}

function isResync(line: string): boolean {
  return line.includes('"trigger":"resync"') && line.includes('"durationMs":');
}

function durationOf(line: string): number {
  return Number(/"durationMs":(\d+)/.exec(line)?.[1]);
}
