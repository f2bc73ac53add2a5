import { setTimeout as sleep } from 'node:timers/promises';
import { budget, type Cluster, field, type Part, Random } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { installed, QUICK_ELECTION } from './installed.ts';
import {
  audit,
  createMachine,
  deleteObject,
  imagePath,
  imageSpec,
  machinePath,
  type NewMachine,
} from './kubevirt-world.ts';

const ROUNDS = budget(4, 100);
const SEED = Number(process.env.CHAOS_SEED ?? 20261119);
const NAMESPACE = 'default';
const FARM = 'vmdi-farm';
/**
 * In each round, operators are killed within this time after the VirtualMachines are created. A VirtualMachine with a
 * missing image takes about this time to start.
 */
const FLOW_MS = 3_000;
/** Maximum time until a round has converged. */
const ROUND_MS = 120_000;

/**
 * Each round creates three VirtualMachines, and deletes those of the previous round with their images. Two of the new
 * VirtualMachines share an image that does not exist yet. Operators are killed at random moments of the round. A round
 * ends when exactly the objects of this round and their children exist. The test counts them without the operator.
 */
test(`when operators are killed, no object is duplicated or leaked (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const random = new Random(SEED);
  await using stack = new AsyncDisposableStack();
  const env = await installed(stack, { kubevirt: true, args: QUICK_ELECTION });
  const { cluster } = env.controlPlane;
  await cluster.kubectl(['create', 'namespace', FARM]);
  const operators = [env.operator, await env.replica()];
  const restart = async (operator: Part) => {
    await sleep(random.below(FLOW_MS));
    await operator.kill();
    await sleep(random.below(300)); // duration of the downtime
    await operator.start();
  };
  let previous: readonly NewMachine[] = [];
  const startedAt = performance.now();
  for (let round = 1; round <= ROUNDS; round++) {
    const story = `round ${round} of seed ${SEED}`;
    const current = machinesOf(round);
    // Kills the leader, the standby or both. If only the standby is killed, the work stays with the leader.
    const killed = random.chance(1 / 3) ? operators : [random.pick(operators)];
    const work = [...current.map((each) => create(cluster, each, story)), remove(cluster, previous, story)];
    await Promise.all([...work, ...killed.map(restart)]);
    await converged(cluster, current, story);
    previous = current;
  }
  await remove(cluster, previous, 'the end');
  await converged(cluster, [], 'the end');
  console.info(`${((performance.now() - startedAt) / 1_000 / ROUNDS).toFixed(1)} s a round`);
}, 3_000_000);

/**
 * Returns the machines of a round. Blank images are ready sooner than imported ones, so the kills interrupt different
 * steps. Only one machine runs, because each start uses two CPU cores for a second.
 */
function machinesOf(round: number): readonly NewMachine[] {
  const namespace = NAMESPACE;
  const shared = { name: `shared-${round}`, namespace: FARM };
  const single = { name: `single-${round}`, namespace: FARM };
  const blank = { secretRef: '', sourceType: 'blank', diskSize: '1Gi', snapshotClass: 'testbed' };
  return [
    { namespace, name: `first-${round}`, image: shared, template: imageSpec() },
    { namespace, name: `second-${round}`, image: shared, template: imageSpec(), ignoreOnDeploy: true },
    { namespace, name: `third-${round}`, image: single, template: blank, ignoreOnDeploy: true },
  ];
}

/** Creates a machine; retries while the webhook does not answer. */
async function create(cluster: Cluster, machine: NewMachine, message: string): Promise<void> {
  const attempt = () => createMachine(cluster, machine).then(() => 'created', String);
  await expect.poll(attempt, { message, timeout: ROUND_MS }).toBe('created');
}

/**
 * Requests the deletion of machines and their images. Retries while the webhook does not answer, or finds a reference
 * to an image.
 */
async function remove(cluster: Cluster, machines: readonly NewMachine[], message: string): Promise<void> {
  const paths = machines.flatMap(({ namespace, name, image }) => [
    machinePath(namespace, name),
    imagePath(image.namespace, image.name),
  ]);
  const attempt = (path: string) => () => deleteObject(cluster, path);
  await Promise.all(
    paths.map((path) => expect.poll(attempt(path), { message, timeout: ROUND_MS }).toBe(true)),
  );
}

/** Waits until exactly these machines and their images exist, each with one child of each kind. */
async function converged(cluster: Cluster, machines: readonly NewMachine[], message: string): Promise<void> {
  const expected = {
    problems: [],
    machines: machines.map(({ name }) => name).toSorted(),
    images: [...new Set(machines.map(({ image }) => image.name))]
      .map((name) => [name, machines.filter(({ image }) => image.name === name).length])
      .toSorted(),
  };
  const counted = async () => {
    const { problems, machines: found, images } = await audit(cluster);
    return {
      problems,
      machines: found.map(({ metadata }) => metadata.name).toSorted(),
      images: images.map((image) => [image.metadata.name, field(image, 'status', 'references')]).toSorted(),
    };
  };
  await expect.poll(counted, { message, timeout: ROUND_MS, interval: 200 }).toEqual(expected);
}
