import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  budget,
  installMirror,
  type MirrorPart,
  manifestPath,
  Random,
  Ssvirt,
  startControlPlane,
  startMirror,
  startPostgres,
  startToxiproxy,
  temporaryFolder,
} from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { machinePath } from './with-mirror.ts';

const ROUNDS = budget(20, 100);
const SEED = Number(process.env.CHAOS_SEED ?? 20261117);
/**
 * Number of rounds between two checks. At a check, the changes pause until the table agrees with the changes that the
 * test made.
 */
const CHECK_EVERY = 10;
/** Minimum number of changes in a round. Without it, a round on a slow machine could end after very few changes. */
const MIN_CHANGES = 10;
const NAMESPACE = 'default';
const NAMES = Array.from({ length: 20 }, (_, i) => `vm-${i}`);

/**
 * States that a VM goes through, in this order. Each state is mapped to a row status of the same name. So the row shows
 * which change was written last.
 */
const STATES = [
  ...[
    'Running',
    'Migrating',
    'Starting',
    'Stopping',
    'Terminating',
    'Paused',
    'Provisioning',
    'CrashLoopBackOff',
  ],
  ...[
    'WaitingForVolumeBinding',
    'WaitingForReceiver',
    'ErrorUnschedulable',
    'ErrImagePull',
    'ImagePullBackOff',
  ],
  ...['ErrorPvcNotFound', 'DataVolumeError', 'Unknown'],
];
/**
 * Maximum number of changes of a VM between two checks. It is less than half of the number of states: no state repeats
 * between a check and the second check after it. So the order of any two recorded states is unambiguous.
 */
const MAX_CHANGES = 7;

/** A VM, its row, and its progress through `STATES`. */
interface Machine {
  readonly name: string;
  readonly rowId: string;
  /**
   * Number of changes of state since the VM was created. The index of the current state is this number modulo the
   * number of states.
   */
  step: number;
  /** `step` at the last check. */
  stepAtCheck: number;
  isDeleted: boolean;
}

/**
 * Two replicas mirror VMs that change all the time. The test breaks connections to the database and to the API server.
 * It kills, pauses and stops replicas, and crashes the database in the middle of transactions. A trigger records every
 * status that a row ever had.
 */
test(`faults neither lose, revert nor resurrect a row (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const random = new Random(SEED);
  await using stack = new AsyncDisposableStack();
  const { cluster } = stack.use(await startControlPlane());
  const postgres = stack.use(await startPostgres());
  const ssvirt = stack.use(await Ssvirt.install(postgres));
  const toxiproxy = stack.use(await startToxiproxy());
  await cluster.apply([manifestPath('kubevirt-crds')]);
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/virtualmachines.kubevirt.io']);
  await installMirror(cluster);
  await ssvirt.query(`
    CREATE TABLE history (nr bigserial, id text, status text, pid int DEFAULT pg_backend_pid(), at timestamptz DEFAULT clock_timestamp());
    CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO history (id, status) VALUES (new.id, new.status); RETURN new; END $$;
    CREATE TRIGGER remember AFTER UPDATE ON vms FOR EACH ROW EXECUTE FUNCTION remember();`);

  const config = join(await temporaryFolder('mirror-chaos'), 'config.yaml');
  const mapping = { ...Object.fromEntries(STATES.map((state) => [state, state])), Deleted: 'Deleted' };
  await writeFile(config, JSON.stringify({ controller: { statusMapping: mapping } }));
  const replica = async (name: string) => {
    const database = await toxiproxy.proxy({
      name: `${name}-db`,
      upstream: `${postgres.host}:${postgres.port}`,
    });
    const api = await toxiproxy.proxy({ name: `${name}-api`, upstream: new URL(cluster.access.server).host });
    const mirror = stack.use(
      await startMirror({
        cluster,
        database: { url: postgres.url.replace(`${postgres.host}:${postgres.port}`, database.address) },
        server: `https://${api.address}`,
        args: [`--config=${config}`],
        env: {
          CONTROLLER_LEASE_DURATION: '2s',
          CONTROLLER_BASE_DELAY: '50ms',
          CONTROLLER_MAX_DELAY: '500ms',
          CONTROLLER_RESYNC_PERIOD: '5s',
        },
      }),
    );
    return { mirror, database, api };
  };
  const replicas = [await replica('first'), await replica('second')] as const;

  const machines = new Map<string, Machine>();
  const all: Machine[] = [];
  const create = async (name: string) => {
    const rowId = await ssvirt.insertVm({ namespace: NAMESPACE, name, age: 3_600 - all.length });
    await cluster.api.create(machinePath(NAMESPACE, '').replace(/\/$/, ''), {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name },
      spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } } },
    });
    // The mirror marks the row of a deleted VM only if the row has a status that the mirror writes. A VM may be deleted
    // before the mirror has seen it, so the row gets such a status here.
    await ssvirt.query(`UPDATE vms SET status = 'STOPPED' WHERE id = $1 AND status = 'INSTANTIATING'`, [
      rowId,
    ]);
    const machine: Machine = { name, rowId, step: 0, stepAtCheck: 0, isDeleted: false };
    machines.set(name, machine);
    all.push(machine);
    await show(machine);
  };
  const show = ({ name, step }: Machine) =>
    cluster.api.merge(`${machinePath(NAMESPACE, name)}/status`, {
      status: { printableStatus: STATES[step % STATES.length] },
    });
  const change = async () => {
    const name = random.pick(NAMES);
    const machine = machines.get(name);
    if (machine === undefined) return create(name);
    if (machine.step - machine.stepAtCheck < MAX_CHANGES && !random.chance(0.15)) {
      machine.step += 1;
      await show(machine);
      return;
    }
    machines.delete(name);
    machine.isDeleted = true;
    await cluster.api.delete(machinePath(NAMESPACE, name));
  };

  const restarted = async ({ mirror }: { readonly mirror: MirrorPart }) => {
    await mirror.part.kill();
    await sleep(random.below(200)); // duration of the downtime
    await mirror.part.start();
  };
  const either = () => random.pick(replicas);
  const during = async (ms: number, toxics: readonly Promise<AsyncDisposable>[]) => {
    await using active = new AsyncDisposableStack();
    for (const toxic of await Promise.all(toxics)) active.use(toxic);
    await sleep(ms);
  };
  const faults = [
    { name: 'a replica is killed', strike: () => restarted(either()) },
    { name: 'both replicas are killed', strike: () => Promise.all(replicas.map(restarted)) },
    {
      name: 'a replica stops cleanly',
      strike: async () => {
        const { part } = either().mirror;
        await part.stop();
        await part.start();
      },
    },
    {
      name: 'a replica sleeps longer than its lease',
      strike: async () => {
        const { part } = either().mirror;
        part.pause();
        await sleep(3_000);
        part.resume();
      },
    },
    {
      name: 'the database crashes',
      strike: async () => {
        await postgres.part.kill();
        await postgres.part.start();
      },
    },
    {
      name: 'answers of the database get lost',
      strike: () =>
        during(
          500,
          replicas.map((each) => each.database.reset()),
        ),
    },
    {
      name: 'the database vanishes',
      strike: () =>
        during(
          1_500,
          replicas.map((each) => each.database.halfOpen()),
        ),
    },
    {
      name: 'the database is slow',
      strike: () =>
        during(
          1_000,
          replicas.map((each) => each.database.latency(150, 100)),
        ),
    },
    { name: 'a replica loses the API server', strike: () => during(2_500, [either().api.halfOpen()]) },
    {
      name: 'connections to the API server are reset',
      strike: () =>
        during(
          500,
          replicas.map((each) => each.api.reset()),
        ),
    },
  ];

  const count = new Map<string, number>();
  for (const [index, fault] of random.cycles(faults, ROUNDS).entries()) {
    count.set(fault.name, (count.get(fault.name) ?? 0) + 1);
    let isStriking = true;
    const changes = (async () => {
      for (let made = 0; isStriking || made < MIN_CHANGES; made++) {
        await retried(change);
        await sleep(random.below(20)); // pace of the changes
      }
    })();
    await sleep(random.below(250));
    await fault.strike();
    isStriking = false;
    await changes;
    if ((index + 1) % CHECK_EVERY !== 0) continue;

    const story = `after round ${index + 1} of seed ${SEED}, last fault: ${fault.name}`;
    await expect.poll(differences, { message: story, interval: 200 }).toEqual([]);
    expect(await reverted(), story).toEqual([]);
    for (const machine of all) machine.stepAtCheck = machine.step;
    await ssvirt.query('TRUNCATE history');
  }
  expect(count.size).toBe(faults.length);
  // Guards against a test without effect: VMs were deleted and re-created.
  expect(all.length).toBeGreaterThan(NAMES.length);
  expect(all.some(({ isDeleted }) => isDeleted)).toBe(true);

  /** Repeats a change until it succeeds, because it fails while the database is down. */
  async function retried(act: () => Promise<unknown>): Promise<void> {
    await expect.poll(() => act().then(() => true), { interval: 100 }).toBe(true);
  }

  function expected(machine: Machine): string {
    return machine.isDeleted ? 'Deleted' : (STATES[machine.step % STATES.length] ?? '');
  }

  async function differences(): Promise<readonly string[]> {
    const rows = new Map((await ssvirt.rows(NAMESPACE)).map(({ id, status }) => [id, status]));
    return all.flatMap((machine) => {
      const status = rows.get(machine.rowId);
      return status === expected(machine)
        ? []
        : [`${machine.name}: ${status} instead of ${expected(machine)}`];
    });
  }

  /** Returns the rows that went back to an older state, or changed after the deletion of their VM. */
  async function reverted(): Promise<readonly string[]> {
    const history = await ssvirt.query(
      `SELECT id, status, status || ' (' || pid || ' at ' || to_char(at, 'MI:SS.MS') || ')' AS text FROM history ORDER BY nr`,
    );
    return all.flatMap((machine) => {
      const own = history.filter(({ id }) => id === machine.rowId);
      const statuses = own.map(({ status }) => String(status));
      let last = -1;
      for (const status of statuses) {
        const at =
          status === 'Deleted' || status === 'DELETING'
            ? MAX_CHANGES + (status === 'Deleted' ? 2 : 1)
            : stepOf(machine, status);
        if (at < last) return [`${machine.name} showed ${own.map(({ text }) => text).join(', ')}`];
        last = at;
      }
      return [];
    });
  }

  /**
   * Returns the number of changes between the last check and the change to this status; -1 for a status that is not in
   * `STATES`.
   */
  function stepOf({ stepAtCheck }: Machine, status: string): number {
    const at = STATES.indexOf(status);
    if (at === -1) return -1; // the row has its initial status
    return (at - (stepAtCheck % STATES.length) + STATES.length) % STATES.length;
  }
}, 1_200_000);
