import { expect, test } from 'vitest';
import { API_SERVER, startApiServer } from '../apiserver/simulated.ts';
import { runSeed } from '../runner/seed.ts';
import { Replicas } from '../scenario/replicas.ts';
import type { Scenario } from '../scenario/scenario.ts';
import { Traffic } from '../scenario/traffic.ts';
import { Address } from '../vcenter/address.ts';
import { simulatedVcenter, VCENTER, VCENTER_FAULTS } from '../vcenter/simulated.ts';
import { labelsOf } from './external-resources.ts';
import { SERVED_VMGROUP } from './objects.ts';
import { vmGroupProgram } from './program.ts';
import { methodOf } from './requests.ts';
import { ThirdParties } from './third-parties.ts';
import { FRESH, User } from './user.ts';

/**
 * Maximum number of WaitForUpdatesEx calls in an hour: one per minute, and one more at the end of each
 * session.
 */
const WAITS = 66;
/**
 * Methods with which garbage collection lists the folders. Each run creates a view, reads its pages and destroys it.
 */
const GC_METHODS = [
  'CreateContainerView',
  'RetrievePropertiesEx',
  'ContinueRetrievePropertiesEx',
  'DestroyView',
];
const USER = { username: 'operator', password: 'the-password-of-vcenter' };
const SETTLING_MS = 10 * 60_000;
const HOUR_MS = 60 * 60_000;
/** Session lifetime; vCenter's default is 30 minutes. */
const SESSION_MS = 10 * 60_000;
const SECOND = { namespace: 'default', name: 'second' };
const SPEC = { replicas: 3, cpu: 1, memory: 1, template: 'small' };

test('in an idle hour with expiring sessions, the operator calls WaitForUpdatesEx once per minute and writes nothing', async () => {
  const calls = new Map<string, number>();
  const written: string[] = [];
  let machines = 0;
  const idle: Scenario = {
    name: 'idle',
    mustHappen: [],
    run: async (simulation) => {
      const { schedule, network } = simulation;
      network.faulty = false;
      const server = startApiServer(simulation);
      server.serveResource(SERVED_VMGROUP);
      const vcenter = simulatedVcenter(simulation, USER);
      const traffic = new Traffic(simulation);
      traffic.serve(API_SERVER, server);
      traffic.serve(VCENTER, vcenter, VCENTER_FAULTS);
      const program = vmGroupProgram({ ...USER, onQueue: () => undefined, onLog: () => undefined });
      const replicas = new Replicas({ simulation, traffic, names: ['alpha', 'beta'], program });
      const thirdParties = new ThirdParties(simulation, vcenter, replicas, new Address(vcenter, vcenter));
      const user = new User(simulation);
      const wait = (ms: number) => simulation.run({ until: schedule.now + ms });
      thirdParties.setUp();
      replicas.start();
      user.create(FRESH, SPEC);
      await wait(SETTLING_MS);

      let isIdle = true;
      traffic.onSend((sent) => {
        if (!isIdle) return;
        const method = methodOf(sent);
        if (method !== '') calls.set(method, (calls.get(method) ?? 0) + 1);
        else if (!sent.path.includes('/leases')) written.push(`${sent.method} ${sent.path}`);
      });
      for (let idleMs = 0; idleMs < HOUR_MS; idleMs += SESSION_MS) {
        await wait(SESSION_MS);
        thirdParties.killSessions();
      }
      isIdle = false;

      user.create(SECOND, { ...SPEC, replicas: 1 });
      await wait(SETTLING_MS);
      machines = [...vcenter.machines.all()].filter((machine) => labelsOf(machine) !== undefined).length;
      return [];
    },
  };
  expect((await runSeed(idle, 1)).violations).toEqual([]);
  expect(written).toEqual([]);
  const sessions = calls.get('Login') ?? 0;
  expect(sessions).toBe(HOUR_MS / SESSION_MS - 1);
  const { WaitForUpdatesEx: waits = 0, ...others } = Object.fromEntries(calls);
  expect(waits).toBeLessThanOrEqual(WAITS + 2 * sessions);
  for (const method of GC_METHODS) delete others[method];
  const each = ['RetrieveServiceContent', 'Login', 'CreatePropertyCollector', 'CreateFilter', 'Logout'];
  expect(others).toEqual(Object.fromEntries(each.map((method) => [method, sessions])));
  expect(machines).toBe(SPEC.replicas + 1);
});
