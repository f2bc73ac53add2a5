import type { CloudWorld } from '@vmwright/cloud';
import { responseOf } from '@vmwright/core/testing';
import { nodeWorld } from '@vmwright/runtime';
import { Cloud } from '../../src/cloud/cloud.ts';
import { PROHIBITED } from './operations.ts';

/** What machines do in a cloud; the same is told to the real one. */
export interface Machines {
  readonly boots: 'at once' | 'never' | 'and fails';
  readonly stops: 'at once' | 'never';
}

/** The model without a simulated world around it: it answers at once, and its machines move when they are told to. */
export class DirectCloud {
  readonly world: CloudWorld;
  readonly #planned: (() => void)[] = [];

  constructor(apiKey: string, { boots, stops }: Machines) {
    const cloud = new Cloud({
      apiKey,
      environment: {
        now: () => nodeWorld.now(),
        uuid: () => nodeWorld.uuid(),
        after: (ms, act) => {
          if (Number.isFinite(ms)) this.#planned.push(act);
        },
        bootMs: () => (boots === 'never' ? Number.POSITIVE_INFINITY : 0),
        wipeMs: () => (stops === 'never' ? Number.POSITIVE_INFINITY : 0),
        bootFails: () => boots === 'and fails',
        lagMs: () => 0,
        longestPage: 1_000,
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
          const answer = cloud.receive(request);
          const body = 'body' in answer ? answer.body : '';
          return responseOf({ status: answer.status, body });
        },
        close: async () => undefined,
      }),
    };
  }

  /** Lets the machines do what they have to. */
  settle(): void {
    for (let next = this.#planned.shift(); next !== undefined; next = this.#planned.shift()) next();
  }
}

/** The config file of a real cloud with such machines. */
export function configOf({ boots, stops }: Machines): object {
  const soon = { min: 0, max: 0 };
  const never = { min: 3_600_000, max: 3_600_000 };
  return {
    observeEveryMs: 10,
    simulated: {
      bootMs: boots === 'never' ? never : soon,
      stopMs: stops === 'never' ? never : soon,
      failureProbability: boots === 'and fails' ? 1 : 0,
    },
  };
}
