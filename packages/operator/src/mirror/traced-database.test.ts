import type { TracedCall, Tracer } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { DatabaseError, type Session } from './database.ts';
import { tracedDatabase } from './traced-database.ts';

test('statements are recorded with their duration, number of rows and SQLSTATE', async () => {
  const calls: TracedCall[] = [];
  const tracer: Tracer = { span: (_name, _attributes, work) => work(SPAN), call: (call) => calls.push(call) };
  const world = { at: 0, monotonic: () => world.at };
  const session: Session = {
    acquire: async () => undefined,
    release: async () => undefined,
    async *rows() {},
    find: async () => {
      world.at += 5;
      return [];
    },
    check: async () => undefined,
    write: () => Promise.reject(new DatabaseError('read-only', '25006', 'session')),
    [Symbol.asyncDispose]: async () => undefined,
  };
  const database = tracedDatabase({ open: async () => session }, tracer, world);
  await using traced = await database.open(new AbortController().signal);
  expect(await traced.find(['a', 'b'])).toEqual([]);
  await expect(traced.write([{ id: 'x', status: 'POWERED_ON' }], [0])).rejects.toThrow('read-only');
  const common = { 'db.system.name': 'postgresql' };
  expect(calls).toEqual([
    {
      name: 'postgresql find',
      durationMs: 5,
      isError: false,
      attributes: { ...common, 'db.operation.name': 'find', 'db.operation.batch.size': 2 },
    },
    {
      name: 'postgresql write',
      durationMs: 0,
      isError: true,
      attributes: {
        ...common,
        'db.operation.name': 'write',
        'db.operation.batch.size': 1,
        'db.response.status_code': '25006',
      },
    },
  ]);
});

const SPAN = { traceId: '', set: () => undefined };
