import { Client, defineKind, Manager, schema, silentLogger } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import { accessTo, startApiServer } from '../apiserver/simulated.ts';
import type { Scenario, Violation } from '../scenario/scenario.ts';
import { REQUEST_FAULTS, STREAM_FAULTS } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import type { SimulatedWorld } from '../world/world.ts';

/** Sample kind: its controller writes a greeting into the status. */
export const Greeting = defineKind({
  group: 'simulation-test.vmwright.dev',
  version: 'v1',
  kind: 'Greeting',
  plural: 'greetings',
  spec: schema.object({ name: schema.string({ minLength: 1 }) }),
  status: schema.object({ text: schema.string(), observedGeneration: schema.integer() }),
});

/** Durations of the fault phase and of the convergence phase. */
const FAULT_MS = 60_000;
const CONVERGENCE_MS = 300_000;

function scenarioOf(name: string, careless: boolean): Scenario {
  return {
    name,
    mustHappen: [
      ...REQUEST_FAULTS.map((fault) => `request ${fault}`),
      ...STREAM_FAULTS.map((fault) => `stream ${fault}`),
      'request arrived after a crash',
      'request arrived after the client gave up',
      'the greeter crashed',
      'a greeting was renamed after it was greeted',
      'the watch history was compacted',
    ],
    run: async (simulation) => unanswered(await greetings(simulation, careless), simulation.schedule.now),
  };
}

/** The smallest scenario: one controller that only writes statuses. */
export const greeter = scenarioOf('greeter', false);

/**
 * The greeter scenario with a bug: the controller skips objects that already have a status, even if the spec has
 * changed.
 */
export const carelessGreeter = scenarioOf('careless-greeter', true);

/** Starts the program under test. */
function startGreeter(world: SimulatedWorld, careless: boolean): Promise<void> {
  const manager = new Manager({ world, access: accessTo(), name: 'greeter', log: silentLogger });
  world.work.observe(manager);
  manager.control({
    for: Greeting,
    reconcile: async (greeting, { setStatus }) => {
      if (careless && greeting.status !== undefined) return;
      const text = `Hello, ${greeting.spec.name}!`;
      await setStatus(greeting, { text, observedGeneration: greeting.metadata.generation ?? 0 });
    },
  });
  return manager.run(new AbortController().signal);
}

/**
 * Executes one run: greetings are created, changed and deleted while the network fails and the program crashes; then
 * the faults stop.
 */
export async function greetings(simulation: Simulation, careless = false): Promise<ApiServer> {
  const { schedule, network, choices, counts } = simulation;
  const server = startApiServer(simulation);
  server.serve(Greeting);
  network.faulty = true;
  let greeter = simulation.start('greeter');
  void startGreeter(greeter, careless);
  const user = simulation.start('user');
  const client = new Client({ world: user, access: accessTo(), fieldManager: 'user' });
  const attempt = (act: () => Promise<unknown>) => void act().catch(() => undefined);
  for (let i = 0; i < 3; i++) {
    const metadata = { namespace: 'default', name: `greeting-${i}` };
    const rename = (name: string) => {
      const before = server.objects(Greeting).find((greeting) => greeting.metadata.name === metadata.name);
      if (before?.status !== undefined) counts.add('a greeting was renamed after it was greeted');
      attempt(() => client.apply(Greeting, { metadata, spec: { name } }));
    };
    schedule.after(choices.pick(20_000), () => rename('World'), user.process);
    if (choices.oneIn(2)) schedule.after(20_000 + choices.pick(20_000), () => rename('Moon'), user.process);
    if (choices.oneIn(3))
      schedule.after(
        40_000 + choices.pick(20_000),
        () => attempt(() => client.delete(Greeting, metadata)),
        user.process,
      );
  }
  for (let crashes = choices.pick(3); crashes > 0; crashes--)
    schedule.after(choices.pick(FAULT_MS), () => {
      simulation.note('greeter', 'crashes and restarts');
      counts.add('the greeter crashed');
      greeter.process.crash();
      greeter = simulation.start('greeter');
      void startGreeter(greeter, careless);
    });
  if (choices.oneIn(2))
    schedule.after(choices.pick(FAULT_MS), () => {
      counts.add('the watch history was compacted');
      server.compact();
    });
  await simulation.run({ until: FAULT_MS });
  network.faulty = false;
  await simulation.run({
    until: FAULT_MS + CONVERGENCE_MS,
    done: () => schedule.now > FAULT_MS + 90_000 && unanswered(server, schedule.now).length === 0,
  });
  return server;
}

/** Returns a violation for each greeting with a status that does not match its spec. */
export function unanswered(server: ApiServer, atMs: number): readonly Violation[] {
  return [...server.objects(Greeting)].flatMap(({ spec, status, metadata }) => {
    const wanted = { text: `Hello, ${nameIn(spec)}!`, observedGeneration: metadata.generation };
    if (JSON.stringify(status) === JSON.stringify(wanted)) return [];
    const detail = `${metadata.name} has the status ${JSON.stringify(status)} instead of ${JSON.stringify(wanted)}`;
    return [{ invariant: 'every greeting is answered once the faults have stopped', atMs, detail }];
  });
}

function nameIn(spec: unknown): unknown {
  return typeof spec === 'object' && spec !== null && 'name' in spec ? spec.name : undefined;
}
