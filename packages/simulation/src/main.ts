/** `make simulate`: runs many seeds of the real code, or replays one seed and prints its trace. */
import { type Arguments, parse } from './runner/arguments.ts';
import { scenarioNamed } from './runner/named.ts';
import { ProgressLine } from './runner/progress.ts';
import * as registry from './runner/registry.ts';
import { regressionSeeds, runRegressionSeeds } from './runner/regression-seeds.ts';
import { formatRun, problems, regressionLines, replayCommand, summary } from './runner/report.ts';
import { runSeed, runTape } from './runner/seed.ts';
import { runSeeds } from './runner/seeds.ts';
import { shrink } from './runner/shrink.ts';
import { firstViolation } from './runner/tally.ts';
import { WorkerPool } from './runner/worker-pool.ts';
import type { Scenario } from './scenario/scenario.ts';

process.stdout.on('error', () => process.exit(1)); // the reader closed the pipe

/** Time limit for shrinking a failing run. */
const SHRINK_SECONDS = 60;

const say = (text: string) => void process.stdout.write(`${text}\n`);

try {
  const args = parse(process.argv.slice(2), process.env);
  const scenarios =
    args.scenario === undefined ? registry.scenarios : [scenarioNamed(args.scenario, registry)];
  const passed =
    args.seed === undefined ? await many(args, scenarios) : await one(args.seed, args, scenarios);
  if (!passed) process.exitCode = 1;
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}

async function many(args: Arguments, scenarios: readonly Scenario[]): Promise<boolean> {
  const { from, count, minutes, workers } = args;
  const regressions = await runRegressionSeeds(regressionSeeds(), registry);
  for (const line of regressionLines(regressions)) say(line);
  let passed = regressions.every(({ violations }) => violations.length === 0);
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort()); // stops early with a report; a second SIGINT exits immediately
  const line = new ProgressLine(process.stderr);
  await using pool = new WorkerPool(workers === undefined ? {} : { workers });
  for (const scenario of scenarios) {
    const result = await runSeeds(scenario.name, {
      pool,
      from,
      ...(count !== undefined && { count }),
      ...(minutes !== undefined && { minutes: minutes / scenarios.length }),
      signal: stop.signal,
      onProgress: (progress) => line.update(scenario.name, progress),
    });
    line.clear();
    say(`${summary(scenario, result)}\n`);
    passed &&= problems(scenario, result).length === 0;
    const first = firstViolation(result);
    if (first !== undefined)
      say(`replay the first violation with: ${replayCommand(scenario.name, first.seed)}\n`);
    if (stop.signal.aborted) break;
  }
  return passed;
}

async function one(seed: number, args: Arguments, scenarios: readonly Scenario[]): Promise<boolean> {
  let passed = true;
  for (const scenario of scenarios) {
    const outcome = await runSeed(scenario, seed, { story: true, tape: true });
    const [violation] = outcome.violations;
    passed &&= violation === undefined;
    if (!args.shrink || violation === undefined) {
      say(formatRun(`seed ${seed} of ${scenario.name}`, outcome));
      continue;
    }
    process.stderr.write(`shrinking seed ${seed} for at most ${SHRINK_SECONDS} s\n`);
    const shows = async (candidate: readonly number[]) => {
      const { violations, lines } = await runTape(scenario, candidate);
      return violations.some(({ invariant }) => invariant === violation.invariant) ? lines : undefined;
    };
    const signal = AbortSignal.timeout(SHRINK_SECONDS * 1_000);
    const { tape, tries } = await shrink(outcome.tape, shows, { signal });
    const title = `seed ${seed} of ${scenario.name}, shrunk from ${outcome.tape.length} choices to ${tape.length} in ${tries} tries`;
    say(formatRun(title, await runTape(scenario, tape, { story: true })));
  }
  return passed;
}
