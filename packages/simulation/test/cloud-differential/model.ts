import type { CloudWorld } from '@vmwright/cloud';
import { responseOf } from '@vmwright/core/testing';
import { nodeWorld } from '@vmwright/runtime';
import { Cloud } from '../../src/cloud/cloud.ts';
import { PROHIBITED } from './operations.ts';

/** Behaviour of machines. The model and the real cloud are configured with the same behaviour. */
export interface Machines {
  readonly boots: 'immediately' | 'never' | 'fails';
  readonly stops: 'immediately' | 'never';
}

/** The model of the cloud, without a simulation. It responds immediately, and its machines change state in `settle`. */
export class DirectCloud {
  readonly world: CloudWorld;
  readonly #scheduled: (() => void)[] = [];

  constructor(apiKey: string, { boots, stops }: Machines) {
    const cloud = new Cloud({
      apiKey,
      environment: {
        now: () => nodeWorld.now(),
        uuid: () => nodeWorld.uuid(),
        after: (ms, act) => {
          if (Number.isFinite(ms)) this.#scheduled.push(act);
        },
        bootMs: () => (boots === 'never' ? Number.POSITIVE_INFINITY : 0),
        wipeMs: () => (stops === 'never' ? Number.POSITIVE_INFINITY : 0),
        bootFails: () => boots === 'fails',
        lagMs: () => 0,
        maxPageSize: 1_000,
        note: () => undefined,
      },
    });
    for (const line of PROHIBITED) {
      const [name = '', ...reason] = line.split(' ');
      cloud.prohibit(name, reason.length === 0 ? undefined : reason.join(' '));
    }
    this.world = {
      ...nodeWorld,
      connect: () => ({
        request: async (request) => {
          const response = cloud.receive(request);
          const body = 'body' in response ? response.body : '';
          return responseOf({ status: response.status, body });
        },
        close: async () => undefined,
      }),
    };
  }

  /** Runs all scheduled state changes. */
  settle(): void {
    for (let next = this.#scheduled.shift(); next !== undefined; next = this.#scheduled.shift()) next();
  }
}

/** Returns the config file of a real cloud with the given machines. */
export function configOf({ boots, stops }: Machines): object {
  const soon = { min: 0, max: 0 };
  const never = { min: 3_600_000, max: 3_600_000 };
  return {
    observeEveryMs: 10,
    simulated: {
      bootMs: boots === 'never' ? never : soon,
      stopMs: stops === 'never' ? never : soon,
      failureProbability: boots === 'fails' ? 1 : 0,
    },
  };
}
