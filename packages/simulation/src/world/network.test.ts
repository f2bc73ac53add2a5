import type { TransportResponse } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import { Choices } from './choices.ts';
import type { FaultRates, RequestFault, StreamFault } from './faults.ts';
import type { ModelResponse, ServerStream } from './server.ts';
import { Simulation } from './simulation.ts';

const ORIGIN = 'https://server';

/** Starts a client and a server that records the requests it receives; the test sends lines on `streams`. */
function start(choices: Choices, faults: Partial<FaultRates> = {}) {
  const simulation = new Simulation({ choices });
  const arrived: string[] = [];
  const streams: ServerStream[] = [];
  let closed = 0;
  const receive = ({ method, path }: { method: string; path: string }): ModelResponse => {
    arrived.push(`${method} ${path}`);
    if (path !== '/stream') return { status: 200, body: 'done' };
    return {
      status: 200,
      open: (stream) => {
        streams.push(stream);
        return () => {
          closed += 1;
        };
      },
    };
  };
  const reject = (status: number, seconds?: number) => ({
    status,
    body: 'no',
    headers: { 'retry-after': String(seconds) },
  });
  const rates: FaultRates = {
    request: 0,
    requestFaults: ['lost'],
    line: 0,
    streamFaults: ['cut'],
    ...faults,
  };
  simulation.network.serve(ORIGIN, { receive, reject }, rates);
  simulation.network.faulty = true;
  const world = simulation.start('client');
  const transport = world.connect({ origin: ORIGIN });
  return { simulation, world, transport, arrived, streams, closed: () => closed };
}

/** Sends one request that is hit by the given fault, and returns what the client and the server observed. */
async function sendUnder(fault: RequestFault, giveUpMs = 5_000) {
  // If no choices are recorded, every choice is 0, which is the shortest delay. A rate of 1 makes the fault certain.
  const started = start(Choices.replayed([]), { request: 1, requestFaults: [fault] });
  const { simulation, transport, world, arrived } = started;
  const giveUp = new AbortController();
  world.after(giveUpMs, () => giveUp.abort(new Error('timed out')));
  let outcome = 'nothing';
  transport
    .request({ method: 'POST', path: '/x', headers: {}, signal: giveUp.signal })
    .then(
      (response) => `${response.status} after ${response.header('retry-after') ?? '-'}`,
      (error: Error) => error.message,
    )
    .then((result) => (outcome = `${result} at ${world.monotonic()}`));
  await simulation.run({ until: 60_000 });
  return { outcome, arrived, counted: simulation.counts.of(`request ${fault}`) };
}

describe('requests', () => {
  test.for<readonly [RequestFault, string, number]>([
    ['lost', 'connect ECONNREFUSED at 1', 0],
    ['half-open', 'timed out at 5000', 0],
    ['refused', '500 after undefined at 2', 0],
    ['throttled', '429 after 1 at 2', 0],
    ['reset', 'read ECONNRESET at 2', 1],
    ['answer lost', 'timed out at 5000', 1],
    ['late', '200 after - at 1002', 1],
  ])('fault "%s": the client sees "%s", the server receives %i requests', async ([fault, outcome, count]) => {
    const sent = await sendUnder(fault);
    expect(sent.outcome).toBe(outcome);
    expect(sent.arrived).toHaveLength(count);
    expect(sent.counted).toBe(1);
  });

  test('a late request arrives even after the client timed out', async () => {
    const { outcome, arrived } = await sendUnder('late', 500);
    expect(outcome).toBe('timed out at 500');
    expect(arrived).toEqual(['POST /x']);
  });

  test('a request in transit arrives after its sender crashed, and the sender gets no response', async () => {
    const { simulation, transport, world, arrived } = start(Choices.replayed([]));
    simulation.network.faulty = false;
    let responded = false;
    world.after(1, () => {
      void transport.request({ method: 'POST', path: '/x', headers: {} }).then(() => (responded = true));
    });
    simulation.schedule.after(1.5, () => world.process.crash());
    await simulation.run({ until: 1_000 });
    expect(arrived).toEqual(['POST /x']);
    expect(responded).toBe(false);
    expect(simulation.counts.of('request arrived after a crash')).toBe(1);
  });

  test('a process that has just crashed sends no request', async () => {
    const { simulation, transport, world, arrived } = start(Choices.replayed([]));
    world.after(1, () => {
      world.process.crash();
      void transport.request({ method: 'POST', path: '/x', headers: {} });
    });
    await simulation.run({ until: 1_000 });
    expect(arrived).toEqual([]);
  });

  test('a partition separates one process from one server until heal is called', async () => {
    const { simulation, transport, arrived } = start(Choices.replayed([]));
    const other = simulation.start('other').connect({ origin: ORIGIN });
    const send = (from: typeof transport, path: string) =>
      void from.request({ method: 'POST', path, headers: {} }).catch(() => undefined);
    simulation.network.partition('client', ORIGIN);
    send(transport, '/partitioned');
    send(other, '/other');
    await simulation.run({ until: 60_000 });
    simulation.network.heal('client', ORIGIN);
    send(transport, '/healed');
    await simulation.run({ until: 120_000 });
    expect(arrived).toEqual(['POST /other', 'POST /healed']);
  });
});

describe('streams', () => {
  /** Reads a stream of ten lines. The reader closes the stream after `leaveAfter` lines. */
  async function read(
    choices: Choices,
    faults: Partial<FaultRates> = {},
    leaveAfter = Number.POSITIVE_INFINITY,
  ) {
    const started = start(choices, faults);
    const { simulation, transport, streams, world } = started;
    const lines: string[] = [];
    let end = 'open';
    const follow = async (response: TransportResponse) => {
      for await (const line of response.lines()) {
        lines.push(line);
        if (lines.length >= leaveAfter) break;
      }
      end = 'ended';
    };
    transport
      .request({ method: 'GET', path: '/stream', headers: {}, lasting: true })
      .then(follow)
      .catch((error: Error) => (end = error.message));
    for (let i = 0; i < 10; i++) simulation.schedule.after(30_000 + i, () => streams[0]?.send(String(i)));
    simulation.schedule.after(30_010, () => streams[0]?.end());
    return { ...started, lines, end: () => end, world };
  }

  test('a stream delivers all lines in order, although their delays differ', async () => {
    for (let seed = 1; seed <= 50; seed++) {
      const { simulation, lines, end } = await read(Choices.seeded(seed));
      await simulation.run({ until: 120_000 });
      expect(lines).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
      expect(end()).toBe('ended');
    }
  });

  test.for<readonly [StreamFault, string]>([
    ['cut', 'read ECONNRESET'],
    ['stalled', 'open'],
  ])('stream fault "%s": earlier lines arrive, then the reader has state "%s"', async ([fault, outcome]) => {
    const { simulation, lines, end, closed } = await read(Choices.seeded(5), {
      line: 6,
      streamFaults: [fault],
    });
    await simulation.run({ until: 120_000 });
    expect(lines.length).toBeLessThan(10);
    expect(lines).toEqual(lines.map((_, index) => String(index)));
    expect(end()).toBe(outcome);
    expect(closed()).toBe(1);
    expect(simulation.counts.of(`stream ${fault}`)).toBe(1);
  });

  test('a stream breaks when its server restarts, after delivering the lines already sent', async () => {
    const { simulation, lines, end, closed } = await read(Choices.seeded(3));
    simulation.schedule.after(30_004.5, () => simulation.network.cut(ORIGIN));
    await simulation.run({ until: 120_000 });
    expect(lines).toEqual(['0', '1', '2', '3', '4']);
    expect([end(), closed()]).toEqual(['read ECONNRESET', 1]);
  });

  test('a stream is closed at the server when its reader stops reading or crashes', async () => {
    const left = await read(Choices.seeded(1), {}, 3);
    await left.simulation.run({ until: 120_000 });
    expect([left.lines.length, left.closed()]).toEqual([3, 1]);
    const crashed = await read(Choices.seeded(1));
    crashed.simulation.schedule.after(29_999, () => crashed.world.process.crash());
    await crashed.simulation.run({ until: 120_000 });
    expect([crashed.lines.length, crashed.closed(), crashed.end()]).toEqual([0, 1, 'open']);
  });

  test('a stream buffers lines in order while the reader is paused', async () => {
    const { simulation, lines, world } = await read(Choices.seeded(2));
    simulation.schedule.after(29_000, () => world.process.pause());
    simulation.schedule.after(100_000, () => world.process.resume());
    await simulation.run({ until: 99_999 });
    expect(lines).toEqual([]);
    await simulation.run({ until: 120_000 });
    expect(lines).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
  });
});
