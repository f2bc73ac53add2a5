import { setTimeout as sleep } from 'node:timers/promises';
import { budget, field, type Part, Random } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { installed, QUICK_ELECTION } from './installed.ts';
import { audit, createMachine, deleteObject, imagePath, imageSpec, machinePath } from './kubevirt-world.ts';

const ROUNDS = budget(2, 100);
const SEED = Number(process.env.CHAOS_SEED ?? 20261119);
const NAMESPACE = 'default';
const FARM = 'vmdi-farm';
/** Longest time between two kills: about the time from a VirtualMachine without an image to a running machine. */
const FLOW_MS = 6_000;

/**
 * In each round, three VirtualMachines are created, two of which share an image that does not exist yet, and then deleted with
 * their images. Operators are killed at random moments of both. The test then counts what exists, independently of the operator.
 */
test(`kills of operators neither duplicate nor leak anything (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
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
  const kills = () => Promise.all(operators.map(restart));

  for (let round = 1; round <= ROUNDS; round++) {
    const story = `round ${round} of seed ${SEED}`;
    const images = ['shared', 'single'].map((name) => ({ name: `${name}-${round}`, namespace: FARM }));
    const [shared, single] = images;
    if (shared === undefined || single === undefined) throw new Error('two images');
    const machines = [
      { name: `first-${round}`, image: shared },
      { name: `second-${round}`, image: shared, ignoreOnDeploy: true },
      { name: `third-${round}`, image: single },
    ];
    const create = machines.map(async (machine) => {
      const manifest = { ...machine, namespace: NAMESPACE, template: imageSpec() };
      await expect
        .poll(() => createMachine(cluster, manifest).then(() => 'created', String), { message: story })
        .toBe('created');
    });
    await Promise.all([...create, kills()]);
    await expect
      .poll(async () => (await audit(cluster)).problems, { message: story, timeout: 120_000, interval: 300 })
      .toEqual([]);
    const found = await audit(cluster);
    expect(found.machines.length, story).toBe(3);
    expect(found.images.map(({ metadata }) => metadata.name).toSorted(), story).toEqual(
      images.map(({ name }) => name).toSorted(),
    );
    const shownReferences = found.images.map((image) => field(image, 'status', 'references'));
    expect(shownReferences.toSorted(), story).toEqual([1, 2]);

    const paths = [
      ...machines.map(({ name }) => machinePath(NAMESPACE, name)),
      ...images.map(({ namespace, name }) => imagePath(namespace, name)),
    ];
    const remove = paths.map((path) =>
      // The webhook rejects the deletion of an image while a VirtualMachine refers to it.
      expect.poll(() => deleteObject(cluster, path), { message: story, timeout: 120_000 }).toBe(true),
    );
    await Promise.all([...remove, kills()]);
    await expect
      .poll(
        async () => {
          const { problems, machines: left, images: kept } = await audit(cluster);
          return [...problems, ...left, ...kept].length;
        },
        { message: story, timeout: 120_000, interval: 300 },
      )
      .toBe(0);
  }
}, 1_800_000);
