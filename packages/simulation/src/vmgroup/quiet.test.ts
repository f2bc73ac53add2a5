import { VmGroup } from '@vmwright/operator';
import { expect, test } from 'vitest';
import { API_SERVER, startApiServer } from '../apiserver/simulated.ts';
import { runSeed } from '../runner/seed.ts';
import { Replicas } from '../scenario/replicas.ts';
import type { Scenario } from '../scenario/scenario.ts';
import { Traffic } from '../scenario/traffic.ts';
import { Address } from '../vcenter/address.ts';
import { simulatedVcenter, VCENTER, VCENTER_FAULTS } from '../vcenter/simulated.ts';
import type { Simulation } from '../world/simulation.ts';
import { readyOf, SERVED_VMGROUP } from './objects.ts';
import { vmGroupProgram } from './program.ts';
import { ThirdParties } from './third-parties.ts';
import { FRESH, User } from './user.ts';

const USER = { username: 'operator', password: 'the-password-of-vcenter' };
const SPEC = { replicas: 1, cpu: 1, memory: 1, template: 'small' };
const SECOND = { namespace: 'default', name: 'second' };
const SETTLING_MS = 10 * 60_000;
const OUTAGE_MS = 60_000;
/** Time within which a new group has a status, even if vCenter is unreachable. */
const REPORTED_MS = 2_000;
/**
 * Maximum time until groups continue after an outage. It includes the retry interval, the health check, and the
 * requests that create, label and rename the folder of a new group.
 */
const BACK_MS = 10_000;

/** Starts one operator and a vCenter without faults. */
function quiet(simulation: Simulation) {
  const { schedule, network } = simulation;
  network.faulty = false;
  const server = startApiServer(simulation);
  server.serveResource(SERVED_VMGROUP);
  const vcenter = simulatedVcenter(simulation, USER);
  const traffic = new Traffic(simulation);
  traffic.serve(API_SERVER, server);
  traffic.serve(VCENTER, vcenter, VCENTER_FAULTS);
  const program = vmGroupProgram({ ...USER, onQueue: () => undefined, onLog: () => undefined });
  const replicas = new Replicas({ simulation, traffic, names: ['alpha'], program });
  new ThirdParties(simulation, vcenter, replicas, new Address(vcenter, vcenter)).setUp();
  replicas.start();
  const wait = (ms: number) => simulation.run({ until: schedule.now + ms });
  return { server, vcenter, user: new User(simulation), wait };
}

test('the view and the filter of a folder are removed after its only group is deleted', async () => {
  const views: number[] = [];
  const filters: number[] = [];
  const folders: Scenario = {
    name: 'folders',
    mustHappen: [],
    run: async (simulation) => {
      const { wait, vcenter, user } = quiet(simulation);
      const containerViews = () => {
        const [session] = vcenter.sessions;
        return [...(session?.views.values() ?? [])].filter(({ ref }) => ref.type === 'ContainerView').length;
      };
      const count = async () => {
        const [session] = vcenter.sessions;
        filters.push(Math.max(...[...(session?.collectors.values() ?? [])].map(({ size }) => size)));
        // Counts twice and takes the lower number, because the operator's garbage collector has its own view while it
        // runs.
        const first = containerViews();
        await wait(5_000);
        views.push(Math.min(first, containerViews()));
      };
      const names = Array.from({ length: 12 }, (_, i) => ({ namespace: 'default', name: `own-${i}` }));
      for (const group of names)
        user.create(group, { ...SPEC, replicas: 0, placement: { folder: group.name } });
      await wait(SETTLING_MS);
      await count();
      for (const group of names) user.delete(group);
      await wait(SETTLING_MS);
      await count();
      return [];
    },
  };
  expect((await runSeed(folders, 1)).violations).toEqual([]);
  expect({ views, filters }).toEqual({ views: [12, 0], filters: [12, 0] });
});

test('every group reports a vCenter outage immediately and continues within seconds after the outage has ended', async () => {
  const reasons: Record<string, readonly (string | undefined)[]> = {};
  const outage: Scenario = {
    name: 'outage',
    mustHappen: [],
    run: async (simulation) => {
      const { server, vcenter, user, wait } = quiet(simulation);
      const readyReasons = () => [...server.objects(VmGroup)].map((group) => readyOf(group).reason);
      user.create(FRESH, SPEC);
      await wait(SETTLING_MS);

      vcenter.outOfOrder = true;
      for (const { key } of vcenter.sessions) vcenter.kill(key);
      await wait(OUTAGE_MS);
      reasons.during = readyReasons();
      user.create(SECOND, SPEC);
      const isThere = () => [...server.objects(VmGroup)].length > 1;
      while (!isThere()) await wait(10);
      await wait(REPORTED_MS);
      reasons.created = readyReasons();
      vcenter.outOfOrder = false;
      await wait(BACK_MS);
      reasons.back = readyReasons();
      await wait(SETTLING_MS);
      reasons.settled = readyReasons();
      return [];
    },
  };
  expect((await runSeed(outage, 1)).violations).toEqual([]);
  const { back, ...others } = reasons;
  expect(back).toHaveLength(2);
  expect(back).not.toContain('VcenterUnreachable');
  expect(others).toEqual({
    during: ['VcenterUnreachable'],
    created: ['VcenterUnreachable', 'VcenterUnreachable'],
    settled: ['Running', 'Running'],
  });
});
