import { isDeepStrictEqual } from 'node:util';
import type { Client } from '@vmwright/runtime';
import { Choices } from '@vmwright/simulation';
import { DirectServer } from './direct.ts';
import type { KindName } from './kinds.ts';
import { type Operation, type Sequence, sequence } from './operations.ts';
import { type Result, Side } from './side.ts';

/** The first difference between the model and the real server. */
export interface Difference {
  readonly seed: number;
  /** The operations up to the difference. */
  readonly operations: readonly Operation[];
  readonly at: string;
  readonly real: unknown;
  readonly model: unknown;
}

export interface Compared {
  readonly difference: Difference | undefined;
  readonly operations: number;
  /** Operations and their outcomes, to measure the coverage. */
  readonly outcomes: readonly string[];
}

export interface RealServer {
  /** Clients of two field managers. */
  readonly clients: readonly [Client, Client];
  readonly namespace: string;
  /** Sleeps between two checks for the effects of the garbage collector. */
  readonly pause: (ms: number) => Promise<void>;
}

/** Timeout for the garbage collector of the real server. */
const GC_TIMEOUT_MS = 30_000;

/** Runs one sequence on the real server and on the model, and returns the first difference. */
export async function compare(seed: number, server: RealServer): Promise<Compared> {
  const comparison = new Comparison(seed, server);
  try {
    const difference = await comparison.run();
    const { outcomes, sequence: executed } = comparison;
    return {
      difference: difference && { seed, ...difference },
      operations: executed.operations.length,
      outcomes,
    };
  } finally {
    await comparison.cleanUp();
  }
}

class Comparison {
  readonly sequence: Sequence;
  readonly outcomes: string[] = [];
  readonly #choices: Choices;
  readonly #pause: RealServer['pause'];
  readonly #direct = new DirectServer();
  readonly #real: Side;
  readonly #model: Side;
  readonly #kinds: readonly KindName[];

  constructor(seed: number, { clients, namespace, pause }: RealServer) {
    this.#choices = Choices.seeded(seed);
    this.sequence = sequence(this.#choices);
    this.#pause = pause;
    const { operations, scaling } = this.sequence;
    const [alpha, beta] = clients;
    const modelled = [
      this.#direct.client(alpha.fieldManager),
      this.#direct.client(beta.fieldManager),
    ] as const;
    this.#real = new Side(clients, namespace, `s${seed}`, !scaling);
    this.#model = new Side(modelled, namespace, `s${seed}`, !scaling);
    this.#kinds = [...new Set(operations.map((each) => ('ref' in each ? each.ref.kind : each.kind)))];
  }

  async run(): Promise<Omit<Difference, 'seed'> | undefined> {
    const { operations, scaling } = this.sequence;
    const kind = this.#kinds[this.#choices.pick(this.#kinds.length)] ?? 'thing';
    const from = { real: await this.#real.version(kind), model: await this.#model.version(kind) };
    for (const [index, operation] of operations.entries()) {
      const difference = await this.#perform(operation);
      if (difference !== undefined)
        return { ...difference, at: `${difference.at} ${index}`, operations: operations.slice(0, index + 1) };
    }
    for (const each of this.#kinds) {
      const [real, model] = [await this.#real.objects(each), await this.#model.objects(each)];
      if (!isDeepStrictEqual(real, model))
        return { operations, at: `the final objects of ${each}`, real, model };
    }
    if (scaling) return undefined;
    const watching = {
      selector: this.#choices.one([undefined, 'x=1', 'x', 'y'] as const),
      metadataOnly: this.#choices.oneIn(4),
      inOrder: !this.outcomes.includes('garbage collected'),
    };
    const real = await this.#real.events(kind, from.real, watching);
    const model = await this.#model.events(kind, from.model, watching);
    if (isDeepStrictEqual(real, model)) return undefined;
    return { operations, at: `a watch of ${kind}: ${JSON.stringify(watching)}`, real, model };
  }

  /** Removes finalizers from the objects on the real server, so that they can be deleted. */
  cleanUp(): Promise<void> {
    return this.#real.cleanUp(this.#kinds);
  }

  async #perform(operation: Operation): Promise<Pick<Difference, 'at' | 'real' | 'model'> | undefined> {
    const [real, model] = [await this.#real.perform(operation), await this.#model.perform(operation)];
    this.outcomes.push(`${operation.do} ${outcomeOf(real)}`);
    if (!isDeepStrictEqual(real, model)) return { at: 'operation', real, model };
    if (!this.#direct.settle()) return undefined;
    this.outcomes.push('garbage collected');
    const wanted = await this.#model.objects('configmap');
    const found = await this.#real.waitForObjects('configmap', wanted, GC_TIMEOUT_MS, this.#pause);
    if (isDeepStrictEqual(found, wanted)) return undefined;
    return { at: 'garbage collection after operation', real: found, model: wanted };
  }
}

function outcomeOf(result: Result): string {
  if ('ok' in result) return 'succeeds';
  const { error } = result;
  return `gets ${typeof error === 'object' && error !== null && 'code' in error ? error.code : 'an error'}`;
}
