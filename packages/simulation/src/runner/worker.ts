/** Worker thread of a `WorkerPool`. */
import { parentPort, workerData } from 'node:worker_threads';
import { isRegistry, scenarioNamed } from './named.ts';
import { runSeed } from './seed.ts';
import { NOTHING, sum, type Tally, tallyOf } from './tally.ts';
import type { Task, WorkerInput, WorkerMessage } from './task.ts';

const { registry, preload, at: shared }: WorkerInput = workerData;
const at = new Int32Array(shared);
const send = (message: WorkerMessage) => parentPort?.postMessage(message);

// Imports these modules in order, before the modules that they may mutate are loaded.
for (const module of preload) await import(module);
const scenarios: unknown = await import(registry);

/**
 * Runs a task. It writes two numbers for the watchdog: the index of the running seed to `at[0]`, and the number of
 * events to `at[1]`.
 */
async function runTask({ scenario: name, from, count, stopAtFirst }: Task): Promise<Tally> {
  if (!isRegistry(scenarios)) throw new Error(`${registry} exports no list named scenarios`);
  const scenario = scenarioNamed(name, scenarios);
  let tally = NOTHING;
  for (let done = 0; done < count; done++) {
    Atomics.store(at, 0, done);
    const outcome = await runSeed(scenario, from + done, { onEvent });
    tally = sum(tally, tallyOf(outcome, cpuMs()));
    if (stopAtFirst && tally.violating > 0) break;
  }
  return tally;
}

const onEvent = () => void Atomics.add(at, 1, 1);

/** Returns the CPU time of this thread since the last call. */
const cpuMs = (
  (last = process.threadCpuUsage()) =>
  () => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    return (user + system) / 1_000;
  }
)();

parentPort?.on('message', (task: Task) => {
  runTask(task).then(
    (tally) => send({ tally }),
    (error: Error) => send({ error: error.message }),
  );
});
send({ ready: true });
