/** A thread that runs histories for a `Crew`. */
import { parentPort, workerData } from 'node:worker_threads';
import { isRegistry, scenarioNamed } from './named.ts';
import { runSeed } from './seed.ts';
import { NOTHING, sum, type Tally, tallyOf } from './tally.ts';
import type { Given, Task, Told } from './task.ts';

const { registry, before, at: shared }: Given = workerData;
const at = new Int32Array(shared);
const tell = (told: Told) => parentPort?.postMessage(told);

// One after the other, and before any of our code is loaded that they may want to change on its way in.
for (const module of before) await import(module);
const scenarios: unknown = await import(registry);

/** Tells by `at` which seed runs, and how many events there were: from outside one sees where it hangs. */
async function carryOut({ scenario: name, from, count, stopAtFirst }: Task): Promise<Tally> {
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

/** Of this thread, since it was asked last: others may have the core in between. */
const cpuMs = (
  (last = process.threadCpuUsage()) =>
  () => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    return (user + system) / 1_000;
  }
)();

parentPort?.on('message', (task: Task) => {
  carryOut(task).then(
    (tally) => tell({ tally }),
    (error: Error) => tell({ error: error.message }),
  );
});
tell({ ready: true });
