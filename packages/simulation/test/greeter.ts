import { Client, defineKind, Manager, type ObjectOf, schema, silentLogger } from '@vmwright/runtime';
import {
  type ApiServer,
  accessTo,
  type Choices,
  type SimulatedWorld,
  Simulation,
  type SimulationOptions,
  startApiServer,
} from '@vmwright/simulation';

/** A kind with a text that a controller makes. */
export const Greeting = defineKind({
  group: 'simulation-test.vmwright.dev',
  version: 'v1',
  kind: 'Greeting',
  plural: 'greetings',
  spec: schema.object({ name: schema.string({ minLength: 1 }) }),
  status: schema.object({ text: schema.string(), observedGeneration: schema.integer() }),
});
export type Greeting = ObjectOf<typeof Greeting>;

/** While things go wrong, and until all must be well again. */
const TROUBLE_MS = 60_000;
const CALM_MS = 300_000;

export interface Outcome {
  readonly hash: string;
  readonly steps: number;
  readonly simulation: Simulation;
  readonly server: ApiServer;
}

/** The program under test, as it would be on a machine. */
function startGreeter(world: SimulatedWorld): Promise<void> {
  const manager = new Manager({ world, access: accessTo(), name: 'greeter', log: silentLogger });
  manager.control({
    for: Greeting,
    reconcile: async (greeting, { setStatus }) => {
      const text = `Hello, ${greeting.spec.name}!`;
      await setStatus(greeting, { text, observedGeneration: greeting.metadata.generation ?? 0 });
    },
  });
  return manager.run(new AbortController().signal);
}

/** One history: greetings come, change and go while the network fails and the program crashes; then all heals. */
export async function greetings(
  choices: Choices,
  options: Omit<SimulationOptions, 'choices'> = {},
): Promise<Outcome> {
  const simulation = new Simulation({ choices, ...options });
  const { schedule, network } = simulation;
  const server = startApiServer(simulation);
  server.serve(Greeting);
  network.faulty = true;
  let greeter = simulation.start('greeter');
  void startGreeter(greeter);
  const user = simulation.start('user');
  const client = new Client({ world: user, access: accessTo(), fieldManager: 'user' });
  const attempt = (act: () => Promise<unknown>) => void act().catch(() => undefined);
  for (let i = 0; i < 3; i++) {
    const metadata = { namespace: 'default', name: `greeting-${i}` };
    const rename = (name: string) => attempt(() => client.apply(Greeting, { metadata, spec: { name } }));
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
    schedule.after(choices.pick(TROUBLE_MS), () => {
      simulation.note('greeter', 'crashes and comes back');
      greeter.process.crash();
      greeter = simulation.start('greeter');
      void startGreeter(greeter);
    });
  if (choices.oneIn(2)) schedule.after(choices.pick(TROUBLE_MS), () => server.compact());
  await simulation.run({ until: TROUBLE_MS });
  network.faulty = false;
  await simulation.run({
    until: TROUBLE_MS + CALM_MS,
    done: () => schedule.now > TROUBLE_MS + 90_000 && isConverged(server),
  });
  return { hash: simulation.trace.hash, steps: schedule.steps, simulation, server };
}

export function isConverged(server: ApiServer): boolean {
  return server.objects(Greeting).every((greeting) => {
    const { spec, status, metadata } = greeting;
    return (
      JSON.stringify(status) ===
      JSON.stringify({ text: `Hello, ${nameIn(spec)}!`, observedGeneration: metadata.generation })
    );
  });
}

function nameIn(spec: unknown): unknown {
  return typeof spec === 'object' && spec !== null && 'name' in spec ? spec.name : undefined;
}
